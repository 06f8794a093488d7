#!/usr/bin/env python3
"""Strobe beside HolisticTraceAnalysis on one Kineto trace, in one run: A B A B ..., ratios by round, the median quoted.

Both go from the trace file to the same questions: device time and idle time by cause, kinds of device work, launches,
critical path of one iteration, each in one process (`strobe explain`); and Strobe again by the way of a trace file, an
import and five commands. Counted are the wall times from start to end, CPU times, and the largest resident memory.
The figures of both are compared first: where they differ, nothing is measured.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ANNOTATION, INSTANCE = "ProfilerStep", 1
IDLE = ("host_wait", "kernel_wait", "other")


def ask_hta(trace):
    """In HTA's own environment: its answers, in nanoseconds, as one line of JSON."""
    os.environ["CRITICAL_PATH_ADD_ZERO_WEIGHT_LAUNCH_EDGE"] = "1"  # as in its tests
    sys.path.pop(0)  # this file's folder: it has the name of HTA's package
    from hta.trace_analysis import TraceAnalysis
    analysis = TraceAnalysis(trace_files={0: trace}, trace_dir=os.path.dirname(trace))
    kinds, _ = analysis.get_gpu_kernel_breakdown(visualize=False)
    device = analysis.get_temporal_breakdown(visualize=False).iloc[0]
    idle = analysis.get_idle_time_breakdown(ranks=[0], visualize=False)[0]
    launches = analysis.get_cuda_kernel_launch_stats(ranks=[0], visualize=False)[0]
    graph, _ = analysis.critical_path_analysis(rank=0, annotation=ANNOTATION, instance_id=INSTANCE)
    path = graph.critical_path_nodes
    answers = {name: device[name + "_time(us)"] for name in ("idle", "compute", "non_compute")}
    answers |= {row.kernel_type.lower(): row.sum for row in kinds.itertuples() if "overlapping" not in row.kernel_type}
    answers |= {f"stream {row.stream} {row.idle_category}": row.idle_time for row in idle.itertuples()}
    answers |= {"launches": len(launches) / 1000, "launch delay": launches.launch_delay.sum(),
                "critical path": sum(graph.edges[pair]["weight"] for pair in zip(path, path[1:]))}
    print(json.dumps({name: round(1000 * float(value)) for name, value in answers.items()}))


def figures_of_strobe(device, kinds, launches, path):
    whole = next(row for row in device["rows"] if row["stream"] is None)
    figures = {name: whole[name + "_ns"] for name in ("idle", "compute", "non_compute")}
    figures |= {row["work"]: row["time_ns"] for row in kinds["rows"]}
    figures |= {f"stream {row['stream']} {cause}": row[cause + "_ns"]
                for row in device["rows"] if row["stream"] is not None for cause in IDLE}
    figures |= {"launches": sum(row["calls"] for row in launches["rows"]),
                "launch delay": sum(row["delay_total_ns"] for row in launches["rows"]), "critical path": path["length_ns"]}
    return figures


class Cost:
    """Of processes one after the other."""

    def __init__(self):
        self.wall = self.cpu = self.memory_mb = 0.0

    def run(self, command):
        begin = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        output = process.stdout.read()
        _, status, used = os.wait4(process.pid, 0)
        self.wall += time.perf_counter() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            sys.exit(f"hta: {' '.join(map(str, command))} ended with {process.returncode}")
        self.cpu += used.ru_utime + used.ru_stime
        self.memory_mb = max(self.memory_mb, used.ru_maxrss / 1000)
        return output.decode()


def run_strobe(strobe, trace):
    cost = Cost()
    tables = json.loads(cost.run([strobe, "explain", trace, "--rules", "hta", "--range", ANNOTATION, "--instance",
                                  str(INSTANCE), "--format", "json"]))
    return cost, figures_of_strobe(*(tables[key] for key in ("device_time", "work", "launches", "critical_path")))


def run_strobe_by_commands(strobe, trace, folder):
    cost, store = Cost(), str(folder / "trace.sqlite")
    cost.run([strobe, "import", trace, "-o", store, "--quiet"])
    ask = lambda *question: json.loads(cost.run([strobe, *question, "--format", "json"]))
    ask("kernels", store)
    return cost, figures_of_strobe(ask("idle", store, "--rules", "hta"), ask("idle", store, "--rules", "hta", "--work"),
                                   ask("launches", store, "--rules", "hta"),
                                   ask("critical-path", store, "--range", ANNOTATION, "--instance", str(INSTANCE),
                                       "--rules", "hta"))


def run_hta(python, trace):
    cost = Cost()
    output = cost.run([python, __file__, "--ask", trace])
    return cost, json.loads(output.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ask", metavar="TRACE", help="answer for HTA, in its environment")
    parser.add_argument("--build")
    parser.add_argument("--python", help="with traceinsight 0.6.1, or HolisticTraceAnalysis")
    parser.add_argument("--trace", help="a Kineto trace with at least three steps of the profiler")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", default="")
    args = parser.parse_args()
    if args.ask:
        return ask_hta(args.ask)
    strobe = str(pathlib.Path(args.build) / "bin/strobe")
    rounds = []
    with tempfile.TemporaryDirectory(prefix="strobe-hta-") as scratch:
        for number in range(args.rounds):
            ours, our_figures = run_strobe(strobe, args.trace)
            commands, figures_by_commands = run_strobe_by_commands(strobe, args.trace, pathlib.Path(scratch))
            theirs, their_figures = run_hta(args.python, args.trace)
            for figures in (our_figures, figures_by_commands):
                wrong = {name: (figures.get(name), value) for name, value in their_figures.items()
                         if figures.get(name) != value}
                if wrong:
                    sys.exit(f"hta: the answers differ (Strobe's, HTA's): {wrong}")
            if number == 0:
                print(f"hta      {len(their_figures)} figures of both agree", flush=True)
            rounds.append((ours, commands, theirs))
    rows = []
    for what, value, goal in (
            ("wall time, HTA's / Strobe's", lambda ours, commands, theirs: theirs.wall / ours.wall, ">= 50"),
            ("CPU time, HTA's / Strobe's", lambda ours, commands, theirs: theirs.cpu / ours.cpu, "-"),
            ("peak memory, Strobe's / HTA's", lambda ours, commands, theirs: ours.memory_mb / theirs.memory_mb, "<= 0.2"),
            ("wall time, HTA's / import and five commands", lambda ours, commands, theirs: theirs.wall / commands.wall, "-"),
            ("  Strobe: wall time, s", lambda ours, commands, theirs: ours.wall, "-"),
            ("  Strobe: CPU time, s", lambda ours, commands, theirs: ours.cpu, "-"),
            ("  Strobe: peak memory, MB", lambda ours, commands, theirs: ours.memory_mb, "-"),
            ("  HTA: wall time, s", lambda ours, commands, theirs: theirs.wall, "-"),
            ("  HTA: CPU time, s", lambda ours, commands, theirs: theirs.cpu, "-"),
            ("  HTA: peak memory, MB", lambda ours, commands, theirs: theirs.memory_mb, "-")):
        values = sorted(value(*pair) for pair in rounds)
        rows.append({"case": "hta", "what": what, "median": statistics.median(values), "min": values[0],
                     "max": values[-1], "rounds": len(values), "goal": goal})
        print(f"hta      {what:58} {rows[-1]['median']:8.3f}  [{values[0]:.3f} .. {values[-1]:.3f}]  goal {goal}", flush=True)
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
