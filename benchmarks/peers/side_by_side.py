#!/usr/bin/env python3
"""Strobe beside its peers and its limits, in one run: A B A B ..., ratios by round, the median quoted.

Machines are noisy, so only ratios within a run mean anything; the spread is shown with each. Cases:
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


class Bench:
    def __init__(self, args):
        self.strobe = str(pathlib.Path(args.build) / "bin/strobe")
        self.python = args.python
        self.video = args.video
        self.rounds = args.rounds
        self.model = ["--model", args.cfg, "--weights", args.weights]
        self.cfg, self.weights = args.cfg, args.weights
        self.frames = args.frames
        self.scratch = pathlib.Path(tempfile.mkdtemp(prefix="strobe-bench-"))
        self.rows = []

    def run(self, engine, *flags, model=None):
        command = [self.strobe, "run", "--input", self.video, *(model or self.model), "--engine", engine, "--quiet",
                   "--format", "json", "--frames", str(self.frames), "-o", str(self.scratch / "out"), *flags]
        return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["runs"][0]

    def engines(self):
        info = subprocess.run([self.strobe, "info", "--format", "json"], check=True, capture_output=True, text=True)
        return [engine["name"] for engine in json.loads(info.stdout)["engines"] if engine["built"]]

    def row(self, case, what, values, goal):
        ordered = sorted(values)
        self.rows.append({"case": case, "what": what, "median": statistics.median(values), "min": ordered[0],
                          "max": ordered[-1], "rounds": len(values), "goal": goal})
        row = self.rows[-1]
        print(f"{case:8} {what:58} {row['median']:8.3f}  [{row['min']:.3f} .. {row['max']:.3f}]  goal {goal}", flush=True)

    def limit(self):
        for engine in self.engines():
            for name, model in (("yolo-fastest", None), ("yolov4-tiny", ["--model", "yolov4-tiny"])):
                shares = []
                for _ in range(self.rounds):
                    run = self.run(engine, "--profile-runs", "0", model=model)
                    shares.append(run["end_to_end_fps"] / run["limit_fps"])
                self.row("limit", f"{engine}, {name}: end-to-end / limit", shares, ">= 0.95")

    def script(self):
        ours_flags = ["--limit-seconds", "0", "--profile-runs", "0", "--codec", "mpeg4"]
        for engine, goal in (("opencv", ">= 1.3"), ("openvino", ">= 2")):
            if engine not in self.engines():
                continue
            ratios, peer_fps, peer_share = [], [], []
            for _ in range(self.rounds):
                ours = self.run(engine, *ours_flags)
                command = [self.python, str(HERE / "opencv_script.py"), self.video, self.cfg, self.weights, "--frames",
                           str(self.frames), "--out", str(self.scratch / "peer.mp4")]
                peer = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
                ratios.append(ours["end_to_end_fps"] / peer["end_to_end_fps"])
                peer_fps.append(peer["end_to_end_fps"])
                peer_share.append(peer["end_to_end_fps"] / peer["inference_fps"])
            self.row("script", f"{engine}: end-to-end / the OpenCV {peer['opencv']} script's", ratios, goal)
            self.row("script", "  the script's own end-to-end FPS", peer_fps, "-")
            self.row("script", "  the script's own end-to-end / inference", peer_share, "-")

    def app(self, ir):
        if not ir:
            print("app      skipped: needs --ir MODEL.xml", file=sys.stderr)
            return
        app = pathlib.Path(self.python).parent / "benchmark_app"
        for hint in ("throughput", "latency"):
            ratios = []
            for _ in range(self.rounds):
                ours = self.run("openvino", "--hint", hint, "--limit-seconds", "5", "--profile-runs", "0", "--no-video",
                                "--frames", "8", model=["--model", ir])["inference_fps"]
                peer = subprocess.run([str(app), "-m", ir, "-hint", hint, "-t", "5", "-infer_precision", "f32"],
                                      check=True, capture_output=True, text=True).stdout
                ratios.append(ours / float(re.search(r"Throughput:\s+([0-9.]+) FPS", peer).group(1)))
            self.row("app", f"openvino {hint}: inference FPS / benchmark_app's", ratios, ">= 0.97")

    def record(self):
        flags = ["--limit-seconds", "0", "--profile-runs", "0"]
        ratios = []
        for _ in range(2 * self.rounds):
            on = self.run("openvino", *flags)["end_to_end_fps"]
            off = self.run("openvino", *flags, "--no-record")["end_to_end_fps"]
            ratios.append(on / off)
        self.row("record", "openvino: end-to-end FPS, recording on / off", ratios, "> 0.99")

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
    parser.add_argument("--json", default="", help="also write the rows here")
    args = parser.parse_args()
    bench = Bench(args)
    for case in args.cases or ["limit", "script", "app", "record", "start"]:
        bench.app(args.ir) if case == "app" else getattr(bench, case)()
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(bench.rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
