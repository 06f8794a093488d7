#!/usr/bin/env python3
"""Strobe beside its peers and its limits, in one run: A B A B ..., ratios by round, the median quoted.

Machines are noisy, so only ratios within a run mean anything; the spread is shown with each. A round in which other
programs took more than a twentieth of the cores is repeated, up to --tries times; what stayed disturbed is counted. Cases:
  limit     end-to-end FPS over limit_fps, every engine that is built
  script    end-to-end FPS of strobe over the plain OpenCV script's, engines opencv and openvino
  app       strobe's inference FPS over OpenVINO's benchmark_app on the same IR, hint and threads
  record    end-to-end FPS with recording over that without
  start     time of `strobe --version`
"""
import argparse
import json
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent


def quiet(run):
    return not any(note.startswith("other ") for note in run.get("notes", []))


class Bench:
    def __init__(self, args):
        self.strobe = str(pathlib.Path(args.build) / "bin/strobe")
        self.python = args.python
        self.video = args.video
        self.rounds = args.rounds
        self.model = ["--model", args.cfg, "--weights", args.weights]
        self.cfg, self.weights = args.cfg, args.weights
        self.frames, self.tries = args.frames, args.tries
        self.scratch = pathlib.Path(tempfile.mkdtemp(prefix="strobe-bench-"))
        self.rows = []

    def run(self, engine, *flags, model=None, frames=None):
        command = [self.strobe, "run", "--input", self.video, *(model or self.model), "--engine", engine, "--quiet",
                   "--format", "json", "--frames", str(frames or self.frames), "-o", str(self.scratch / "out"), *flags]
        return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["runs"][0]

    def rounds_of(self, measure):
        """`rounds` values of measure(), which returns (value, whether the machine was quiet)."""
        values, disturbed = [], 0
        for _ in range(self.rounds):
            for _ in range(self.tries):
                value, quiet = measure()
                if quiet:
                    break
            disturbed += not quiet
            values.append(value)
        return values, disturbed

    def engines(self):
        info = subprocess.run([self.strobe, "info", "--format", "json"], check=True, capture_output=True, text=True)
        return [engine["name"] for engine in json.loads(info.stdout)["engines"] if engine["built"]]

    def row(self, case, what, values, goal, disturbed=0):
        ordered = sorted(values)
        self.rows.append({"case": case, "what": what, "median": statistics.median(values), "min": ordered[0],
                          "max": ordered[-1], "rounds": len(values), "goal": goal, "disturbed": disturbed})
        row = self.rows[-1]
        print(f"{case:8} {what:58} {row['median']:8.3f}  [{row['min']:.3f} .. {row['max']:.3f}]  goal {goal}"
              + (f"  ({disturbed} of {len(values)} rounds disturbed)" if disturbed else ""), flush=True)

    def limit(self):
        for engine in self.engines():
            for name, model in (("yolo-fastest", None), ("yolov4-tiny", ["--model", "yolov4-tiny"])):
                def share():
                    run = self.run(engine, "--profile-runs", "0", model=model)
                    strict = min(run["slowest_stage"]["fps"], 1e3 * run["cores"] / run["cpu_alone_ms_per_frame"])
                    return (run["end_to_end_fps"] / run["limit_fps"], run["end_to_end_fps"] / strict,
                            run["end_to_end_fps"], run["inference_fps"]), quiet(run)
                values, disturbed = self.rounds_of(share)
                what = [f"{engine}, {name}: end-to-end / limit", "  the same with every stage's CPU time alone",
                        "  end-to-end FPS", "  inference FPS"]
                for column, title in enumerate(what):
                    self.row("limit", title, [value[column] for value in values], "-" if column else ">= 0.95", disturbed)

    def script(self):
        ours_flags = ["--limit-seconds", "0", "--profile-runs", "0", "--codec", "mpeg4"]
        for engine, goal in (("opencv", ">= 1.3"), ("openvino", ">= 2")):
            if engine not in self.engines():
                continue
            def side_by_side():
                ours = self.run(engine, *ours_flags)
                command = [self.python, str(HERE / "opencv_script.py"), self.video, self.cfg, self.weights, "--frames",
                           str(self.frames), "--out", str(self.scratch / "peer.mp4")]
                peer = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
                return (ours["end_to_end_fps"] / peer["end_to_end_fps"], peer["end_to_end_fps"],
                        peer["end_to_end_fps"] / peer["inference_fps"]), quiet(ours)
            values, disturbed = self.rounds_of(side_by_side)
            what = [f"{engine}: end-to-end / the OpenCV script's", "  the script's own end-to-end FPS",
                    "  the script's own end-to-end / inference"]
            for column, title in enumerate(what):
                self.row("script", title, [value[column] for value in values], "-" if column else goal, disturbed)

    def app(self, ir):
        if not ir:
            print("app      skipped: needs --ir MODEL.xml", file=sys.stderr)
            return
        app = pathlib.Path(self.python).parent / "benchmark_app"
        for hint in ("throughput", "latency"):
            def against_app():
                ours = self.run("openvino", "--hint", hint, "--limit-seconds", "5", "--profile-runs", "0", "--no-video",
                                frames=8, model=["--model", ir])
                peer = subprocess.run([str(app), "-m", ir, "-hint", hint, "-t", "5", "-infer_precision", "f32"],
                                      check=True, capture_output=True, text=True).stdout
                theirs = float(re.search(r"Throughput:\s+([0-9.]+) FPS", peer).group(1))
                return ours["inference_fps"] / theirs, quiet(ours)
            ratios, disturbed = self.rounds_of(against_app)
            self.row("app", f"openvino {hint}: inference FPS / benchmark_app's", ratios, ">= 0.97", disturbed)

    def record(self):
        flags = ["--limit-seconds", "0", "--profile-runs", "0"]
        def on_and_off():
            on = self.run("openvino", *flags)
            off = self.run("openvino", *flags, "--no-record")["end_to_end_fps"]
            return on["end_to_end_fps"] / off, quiet(on)
        self.rounds *= 3  # the effect is smaller than the noise of one round
        ratios, disturbed = self.rounds_of(on_and_off)
        self.rounds //= 3
        self.row("record", "openvino: end-to-end FPS, recording on / off", ratios, "> 0.99", disturbed)

    def start(self):
        times = []
        for _ in range(20):
            begin = time.perf_counter()
            subprocess.run([self.strobe, "--version"], check=True, capture_output=True)
            times.append(1e3 * (time.perf_counter() - begin))
        self.row("start", "strobe --version, ms", times, "< 20")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", default=["limit", "script", "app", "record", "start"])
    parser.add_argument("--build", required=True)
    parser.add_argument("--python", default=sys.executable, help="with opencv-python-headless < 4.12 and openvino")
    parser.add_argument("--video", required=True)
    parser.add_argument("--cfg", required=True)
    parser.add_argument("--weights", required=True)
    parser.add_argument("--ir", default="", help="OpenVINO IR of a network, for the case app")
    parser.add_argument("--frames", type=int, default=168)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tries", type=int, default=3)
    parser.add_argument("--json", default="", help="also write the rows here")
    args = parser.parse_args()
    bench = Bench(args)
    for case in args.cases or ["limit", "script", "app", "record", "start"]:
        bench.app(args.ir) if case == "app" else getattr(bench, case)()
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(bench.rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
