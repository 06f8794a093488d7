#!/usr/bin/env python3
"""Strobe on synthetic traces of ten million ranges: import, every command, the analyses alone, the report in a browser.

Each command is run --rounds times; least wall time, its CPU time (all threads), the largest resident memory. On a shared
machine the CPU time is what can be relied on: a wall time far above it was spent waiting for a core.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import time


class Scale:
    def __init__(self, args):
        self.bin, self.folder, self.rounds, self.rows = pathlib.Path(args.build) / "bin", pathlib.Path(args.out), args.rounds, []
        self.folder.mkdir(parents=True, exist_ok=True)
        self.count = args.count

    def run(self, program, *arguments):
        begin = time.perf_counter()
        process = subprocess.Popen([self.bin / program, *map(str, arguments)], stdout=subprocess.PIPE)
        output = process.stdout.read()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            sys.exit(f"scale: {program} {' '.join(map(str, arguments))} ended with {process.returncode}")
        return {"wall_s": time.perf_counter() - begin, "cpu_s": used.ru_utime + used.ru_stime,
                "memory_mb": used.ru_maxrss / 1000}, output

    def row(self, what, goal, *command):
        best = min((self.run("strobe", *command)[0] for _ in range(self.rounds)), key=lambda cost: cost["wall_s"])
        self.tell({"what": what, "goal": goal, **best})

    def tell(self, row):
        self.rows.append(row)
        print(f"{row['what']:52} {row['wall_s']:8.2f} s  {row['cpu_s']:8.2f} s CPU  {row.get('memory_mb', 0):7.0f} MB"
              f"  goal {row['goal']}", flush=True)

    def make(self, kind, name):
        path = self.folder / name
        if not path.exists():
            self.run("strobe_scale_trace", kind, path, self.count)
        return path

    def analyses(self, title, trace):
        for line in self.run("strobe_scale_analyses", trace)[1].decode().splitlines():
            found = json.loads(line)
            if "error" not in found and "cpu_ms" in found:
                self.tell({"what": f"{title}: {found['what']}, in memory", "goal": "< 2 s", "wall_s": found["ms"] / 1e3,
                           "cpu_s": found["cpu_ms"] / 1e3})

    def all(self):
        kineto, pipeline, spool = self.make("kineto", "k.json"), self.make("pipeline", "p.sqlite"), self.make("spool", "spool")
        k, recovered = self.folder / "k.sqlite", self.folder / "s.sqlite"
        self.row(f"import Kineto JSON ({kineto.stat().st_size / 1e9:.1f} GB)", "< 20 s", "import", kineto, "-o", k, "--quiet")
        self.row("recover the recorder's spool", "< 20 s", "recover", spool, "-o", recovered)
        for by in ("range", "operator", "kernel", "api", "memcpy"):
            self.row(f"stats --by {by}, Kineto", "< 3 s", "stats", k, "--by", by)
        self.row("stats --by range, pipeline", "< 3 s", "stats", pipeline)
        for command in ("kernels", "memcpy", "idle", "launches", "advise"):
            self.row(f"{command}, Kineto", "-", command, k)
        self.row("critical-path of a range, Kineto", "-", "critical-path", k, "--range", "ProfilerStep#5")
        self.row("query, Kineto", "-", "query", k, "SELECT kind, COUNT(*), SUM(end - start) FROM STROBE_RANGE GROUP BY 1")
        self.row("what-if, pipeline", "-", "what-if", pipeline, "--scale", "stage:infer=0.5")
        self.row("report, pipeline", "-", "report", pipeline, "-o", self.folder / "p.html", "--quiet")
        self.row("report, Kineto", "-", "report", k, "-o", self.folder / "k.html", "--quiet")
        self.analyses("Kineto", k)
        self.analyses("pipeline", pipeline)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True)
    parser.add_argument("--out", required=True, help="folder of the traces, about 6 GB; what is there is used again")
    parser.add_argument("--count", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", default="")
    args = parser.parse_args()
    scale = Scale(args)
    scale.all()
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(scale.rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
