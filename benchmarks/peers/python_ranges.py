#!/usr/bin/env python3
"""What one range costs in Python: strobe.range against PyPI's nvtx and against a context manager that does nothing.

    PYTHONPATH=build/release/lib/python build/deps/venv/bin/python3 benchmarks/peers/python_ranges.py

All in one run, in turn, the lower quartile of many repetitions; one line of JSON with --json. nvtx is measured
without a tool, and with the injection library of `strobe record` as its tool (found beside the package, or --inject).
"""
import argparse
import itertools
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

COUNT = 2_000  # a pass is shorter than a time slice, so that most are not disturbed


class Empty:
    __slots__ = ()

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        return None


def loop(body, names):
    """A function that runs `body` COUNT times, on local variables only."""
    space = {"repeat": itertools.repeat}
    exec(f"def run(count, {', '.join(names)}):\n    for _ in repeat(None, count):\n        {body}\n", space)
    run, values = space["run"], tuple(names.values())
    return lambda: run(COUNT, *values)


def measure(cases, rounds):
    """Nanoseconds of one, of each case: the lower quartile of rounds in which the cases take turns."""
    times = {name: [] for name in cases}
    for _ in range(rounds):
        for name, run in cases.items():
            start = time.perf_counter_ns()
            run()
            times[name].append((time.perf_counter_ns() - start) / COUNT)
    return {name: statistics.quantiles(values, n=4)[0] for name, values in times.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=301)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--inject", help="libstrobe_inject.so, the tool that listens to nvtx")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        return child(options)
    import strobe
    inject = options.inject or str(pathlib.Path(strobe.__file__).parents[2] / "strobe/libstrobe_inject.so")
    results = {}
    for tool in ("none", "strobe"):
        if tool == "strobe" and not os.path.exists(inject):
            print(f"python_ranges: no {inject}: nvtx is measured without a tool only", file=sys.stderr)
            continue
        with tempfile.TemporaryDirectory() as folder:
            environment = dict(os.environ)
            if tool == "strobe":
                environment |= {"NVTX_INJECTION64_PATH": inject, "STROBE_RECORD_FOLDER": folder}
            command = [sys.executable, __file__, "--child", tool, "--rounds", str(options.rounds)]
            said = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout
            results |= json.loads(said)
    show(results, options.json)


def child(options):
    import nvtx
    import strobe
    cases = {"pass": loop("pass", {"nothing": None}),
             "empty with": loop("with empty: pass", {"empty": Empty()})}
    hoisted, inline = {"one": strobe.range("work")}, {"range": strobe.range}
    if options.child == "none":
        cases |= {"strobe.range, off": loop('with range("work"): pass', inline),
                  "nvtx.annotate, no tool": loop('with annotate("work"): pass', {"annotate": nvtx.annotate})}
        print(json.dumps(measure(cases, options.rounds)))
        return
    noted = nvtx.annotate("work")
    domain = nvtx.get_domain("bench")
    attributes = domain.get_event_attributes(message="work")
    cases |= {"strobe.range": loop('with range("work"): pass', inline),
              "strobe.range, made before": loop("with one: pass", hoisted),
              "strobe.range, frame and payload": loop('with range("work", frame=7, size=3): pass', inline),
              "@strobe.range": loop("called()", {"called": strobe.range(lambda: None)}),
              "function": loop("called()", {"called": lambda: None}),
              "strobe.push, pop": loop('push("work"); pop()', {"push": strobe.push, "pop": strobe.pop}),
              "nvtx.annotate, recorded": loop('with annotate("work"): pass', {"annotate": nvtx.annotate}),
              "nvtx.annotate, made before, recorded": loop("with one: pass", {"one": noted}),
              "nvtx domain push, pop, recorded": loop(
                  "push(attributes); pop()", {"push": domain.push_range, "pop": domain.pop_range,
                                              "attributes": attributes})}
    assert strobe.recording(), "strobe did not join the recording"
    results = measure(cases, options.rounds)
    records, dropped, _ = strobe._strobe._stop()
    if dropped > 0:
        print(f"python_ranges: {dropped} of {records + dropped} records were dropped", file=sys.stderr)
    print(json.dumps(results))


def show(results, as_json):
    empty = results["empty with"]
    if as_json:
        print(json.dumps({name: round(value, 1) for name, value in results.items()}))
        return
    for name, value in results.items():
        print(f"{name:40} {value:8.1f} ns  {value - empty:+8.1f} ns beyond an empty with")
    if "nvtx.annotate, recorded" in results:
        beyond = {name: results[name] - empty for name in results}
        print(f"nvtx / strobe, both recorded: {results['nvtx.annotate, recorded'] / results['strobe.range']:.2f}; "
              f"beyond the empty with: {beyond['nvtx.annotate, recorded'] / beyond['strobe.range']:.2f}")
    print(f"nvtx without a tool / strobe while not recording: "
          f"{results['nvtx.annotate, no tool'] / results['strobe.range, off']:.2f}")


if __name__ == "__main__":
    sys.exit(main())
