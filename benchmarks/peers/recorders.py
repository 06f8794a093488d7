#!/usr/bin/env python3
"""Table of a run of strobe_record_bench: CPU nanoseconds a range, ratios to Strobe's range, percentiles of one range,
bytes on disk, memory; and whether each goal holds. Prints Markdown."""

import argparse
import json
import sys

NAMES = {
    "two_rdtsc": "two rdtsc",
    "range_with_int": "Strobe, 1 integer",
    "range_with_frame": "Strobe, frame alone",
    "range_with_category": "Strobe, category",
    "range_dynamic_name": "Strobe, dynamic name",
    "range_disabled": "Strobe, off",
    "nvtx_push_pop": "NVTX, no tool",
    "lttng_ust": "LTTng-UST, 1 integer",
    "lttng_ust_dynamic_name": "LTTng-UST, dynamic name",
    "torch_record_function_off": "RecordFunction, off",
    "torch_record_function": "RecordFunction, Kineto",
}
THREADS = (1, 2, 8)


def read(path):
    """name -> (each, threads) -> run; and the reasons of what was skipped."""
    with open(path) as file:
        report = json.load(file)
    runs, skipped = {}, {}
    for run in report["benchmarks"]:
        if run.get("run_type") == "aggregate" and run.get("aggregate_name") != "median":
            continue
        name, each = run["run_name"].split("/")[0], "each:1" in run["run_name"]
        if run.get("error_occurred"):
            skipped[name] = run.get("error_message", "")
        elif run.get("aggregate_name") == "median" or (each, run.get("threads", 1)) not in runs.get(name, {}):
            runs.setdefault(name, {})[each, run.get("threads", 1)] = run
    return runs, skipped


def row(cells):
    print("| " + " | ".join(cells) + " |")


def print_times(runs):
    row(["recorder"] + [f"{n} thread{'s' * (n > 1)}, ns" for n in THREADS] + ["of Strobe's range", "p50 / p99 / p99.9, ns"])
    row(["---"] * (len(THREADS) + 3))
    base = runs["range_with_int"][False, 1]["cpu_time"]
    for key, name in NAMES.items():
        if key not in runs:
            continue
        cells = [name]
        for n in THREADS:
            run = runs[key].get((False, n))
            cells.append(f"{run['cpu_time']:.1f}" if run else "")
        cells.append(f"{runs[key][False, 1]['cpu_time'] / base:.2f}")
        each = runs[key].get((True, 1))
        cells.append(" / ".join(f"{each[p]:.0f}" for p in ("p50_ns", "p99_ns", "p999_ns")) if each else "")
        row(cells)


def goals(runs):
    """(text, measured, most) of each goal that this run can decide."""
    def cpu(name, threads=1):
        return runs[name][False, threads]["cpu_time"]

    for n in THREADS:
        yield f"range with an integer beyond two rdtsc, {n} threads, ns", cpu("range_with_int", n) - cpu("two_rdtsc", n), 12
        if "lttng_ust" in runs:
            yield f"range with an integer of LTTng's, {n} threads", cpu("range_with_int", n) / cpu("lttng_ust", n), 0.2
        yield f"dynamic name, {n} threads, ns", cpu("range_dynamic_name", n), 60
        yield f"switched off, {n} threads, ns", cpu("range_disabled", n), 2
    yield "99.9th percentile of one range, 1 thread, ns", runs["range_with_int"][True, 1]["p999_ns"], 500
    if "bytes_on_disk" in runs:
        disk = runs["bytes_on_disk"][False, 1]
        yield "bytes a range, not compressed", disk["plain_bytes_a_range"], 8
        yield "bytes a range, compressed", disk["bytes_a_range"], 6.5
    if "long_recording" in runs:
        long = runs["long_recording"][False, 1]
        yield "memory growth over 20 million ranges, MB", long["resident_mb_end"] - long["resident_mb_early"], 1


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("json", help="what strobe_record_bench wrote with --benchmark_out")
    runs, skipped = read(parser.parse_args().json)
    for needed in ("two_rdtsc", "range_with_int", "range_dynamic_name", "range_disabled"):
        if needed not in runs:
            sys.exit(f"recorders: {needed} is not in the run: run strobe_record_bench without a filter")
    print_times(runs)
    for name, reason in skipped.items():
        print(f"\nNot measured: {NAMES.get(name, name)}: {reason}.")
    if "long_recording" in runs:
        long = runs["long_recording"][False, 1]
        print(f"\nWith the drain's work a range costs {long['cpu_ns_a_range_with_drain']:.0f} ns of CPU time.")
    print()
    row(["goal", "at most", "measured", "holds"])
    row(["---"] * 4)
    missed = 0
    for text, measured, most in goals(runs):
        missed += measured > most
        row([text, f"{most:g}", f"{measured:.2f}", "yes" if measured <= most else "NO"])
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
