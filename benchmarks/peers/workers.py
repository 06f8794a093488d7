#!/usr/bin/env python3
"""workers.py: a plain Python worker against `strobe run` on the same video, network and batch, in turn; then one bound
worker alone against one on each core at the same time.

Prints a table; --json keeps every round. FPS is that of the whole worker: reading, preprocessing, network, post-processing.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile


def run(command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stderr}")
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    parser.add_argument("--python", required=True)
    parser.add_argument("--video", required=True)
    parser.add_argument("--ir", required=True)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--json", required=True)
    args = parser.parse_args()
    strobe = pathlib.Path(args.build) / "bin/strobe"
    script = pathlib.Path(__file__).with_name("worker_script.py")
    common = ["--input", args.video, "--model", args.ir, "--engine", "openvino", "--batch-size", args.batch, "--max-steps",
              args.steps, "--no-video", "--limit-seconds", 0, "--profile-runs", 0]
    rounds = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        workers = "\n".join(f"  - {{name: w{core}, core-bind: \"{core}\"}}" for core in range(args.cores))
        keys = {"input": args.video, "model": args.ir, "engine": "openvino", "batch-size": args.batch,
                "max-steps": args.steps, "no-video": True, "limit-seconds": 0, "profile-runs": 0}
        (folder / "workers.yaml").write_text(f"defaults: {json.dumps(keys)}\nworkers:\n{workers}\n")
        for number in range(args.rounds):
            plain = run([args.python, script, args.video, args.ir, "--batch", args.batch, "--steps", args.steps, "--csv",
                         folder / "plain.csv"])
            ours = run([strobe, "run", *common, "-q", "--format", "json", "-o", folder / "ours"])["runs"][0]
            alone = run([strobe, "run", *common, "--core-bind", 0, "-q", "--format", "json", "-o",
                         folder / "alone"])["runs"][0]
            together = run([strobe, "run", "--config", folder / "workers.yaml", "-q", "--format", "json", "-o",
                            folder / "together"])
            fps = [worker["runs"][0]["end_to_end_fps"] for worker in together["workers"]]
            rounds.append({"python": plain["fps"], "strobe": ours["end_to_end_fps"], "one_bound": alone["end_to_end_fps"],
                           "all_bound": fps})
            print(f"round {number + 1}/{args.rounds}: python {plain['fps']:.1f}, strobe {ours['end_to_end_fps']:.1f}, one "
                  f"bound {alone['end_to_end_fps']:.1f}, each of {args.cores} {fps}", file=sys.stderr)
    pathlib.Path(args.json).write_text(json.dumps({"batch": args.batch, "steps": args.steps, "rounds": rounds}, indent=1))

    def spread(values):
        return f"{statistics.median(values):8.2f} [{min(values):.2f}..{max(values):.2f}]"

    print(f"plain Python worker      {spread([r['python'] for r in rounds])} FPS")
    print(f"strobe run               {spread([r['strobe'] for r in rounds])} FPS")
    print(f"  ratio                  {spread([r['strobe'] / r['python'] for r in rounds])}")
    print(f"one worker on core 0     {spread([r['one_bound'] for r in rounds])} FPS")
    print(f"{args.cores} workers, one a core    {spread([sum(r['all_bound']) for r in rounds])} FPS in all")
    print(f"  ratio                  {spread([sum(r['all_bound']) / r['one_bound'] for r in rounds])}")


if __name__ == "__main__":
    main()
