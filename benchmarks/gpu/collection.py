#!/usr/bin/env python3
"""What collecting on a GPU costs, and whether what it says is true: `strobe record` and torch.profiler on one loop.

    python3 benchmarks/gpu/collection.py --strobe build/bare/bin/strobe -o out [--device cuda] [--rounds 5]

Overhead: milliseconds a step of a loop of PyTorch, alone, recorded and under torch.profiler, in turns, a process each; medians
over the rounds as ratios to the loop alone (goals: below 1.02, and a fifth of what torch.profiler adds).
Kernels: the same launches (by name and number) in both tools' traces, and in two of torch.profiler's, which is how much two
runs differ (goal: within 1 %).
Clocks: a kernel begins after its launch was called and has ended when a synchronisation returns. The smallest distances
bound how far the device's times may be off against the ranges of the CPU (goal: 2 us).
With --device cpu, the cost alone. --traces STROBE PROFILER compares traces that are there.
"""
import argparse
import bisect
import collections
import json
import pathlib
import sqlite3
import statistics
import subprocess
import sys
import time

STEPS_A_LOOK = 10  # between two synchronisations


def loop(options):
    """The loop itself, in a process of its own: prints milliseconds of each step."""
    import contextlib

    import torch

    device = torch.device(options.device)
    torch.manual_seed(1)
    layers = []
    for _ in range(options.layers):
        layers += [torch.nn.Conv2d(options.channels, options.channels, 3, padding=1), torch.nn.ReLU()]
    network = torch.nn.Sequential(*layers).to(device).eval()
    picture = torch.randn(1, options.channels, 56, 56)
    if device.type == "cuda":
        picture = picture.pin_memory()
    wait = torch.cuda.synchronize if device.type == "cuda" else lambda: None
    mark = torch.cuda.nvtx.range if device.type == "cuda" else lambda name: contextlib.nullcontext()

    def steps():
        for _ in range(STEPS_A_LOOK):
            with mark("step"), torch.no_grad():
                network(picture.to(device, non_blocking=True)).sum()
        wait()

    for _ in range(3):
        steps()
    times = []
    profiler = contextlib.nullcontext()
    if options.child == "profiler":
        kinds = [torch.profiler.ProfilerActivity.CPU]
        kinds += [torch.profiler.ProfilerActivity.CUDA] if device.type == "cuda" else []
        profiler = torch.profiler.profile(activities=kinds)
    with profiler:
        for _ in range(options.steps // STEPS_A_LOOK):
            begin = time.perf_counter()
            steps()
            times.append(1e3 * (time.perf_counter() - begin) / STEPS_A_LOOK)
    if options.child == "profiler":
        profiler.export_chrome_trace(options.output + "/profiler.json")
    print(json.dumps(times))


def run_child(options, mode, trace=None):
    command = [sys.executable, __file__, "--child", "profiler" if mode == "profiler" else "loop", "-o", options.output]
    for name in ("device", "steps", "layers", "channels"):
        command += [f"--{name}", str(getattr(options, name))]
    if mode == "record":
        command = [options.strobe, "record", "--quiet", "-o", trace, "--", *command]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return statistics.median(json.loads(done.stdout.splitlines()[-1]))


def overhead(options):
    """Ratios to the loop alone, of each round."""
    ratios = collections.defaultdict(list)
    alone_ms = []
    for _ in range(options.rounds):
        alone = run_child(options, "alone")
        alone_ms.append(alone)
        ratios["alone again"].append(run_child(options, "alone") / alone)
        ratios["strobe record"].append(run_child(options, "record", options.output + "/strobe.sqlite") / alone)
        ratios["torch.profiler"].append(run_child(options, "profiler") / alone)
    result = {"step_ms": statistics.median(alone_ms)}
    for name, values in ratios.items():
        result[name] = {"ratio": statistics.median(values), "low": min(values), "high": max(values)}
    added = {name: result[name]["ratio"] - 1 for name in ("strobe record", "torch.profiler")}
    if added["torch.profiler"] > 0:
        result["share_of_torch_profilers"] = added["strobe record"] / added["torch.profiler"]
    return result


def kernels_of(trace):
    """Lengths in ns by (name, number of the launch among those of that name)."""
    seen, lengths = collections.Counter(), {}
    with sqlite3.connect(f"file:{trace}?mode=ro", uri=True) as store:
        rows = store.execute("""SELECT s.value, k.end - k.start FROM CUPTI_ACTIVITY_KIND_KERNEL k
                                JOIN StringIds s ON s.id = k.demangledName ORDER BY k.start""")
        for name, length in rows:
            lengths[name, seen[name]] = length
            seen[name] += 1
    return lengths


def compare_kernels(one, other):
    """How much longer the same launches are in one: the median of the ratios, their spread, and the sums."""
    a, b = kernels_of(one), kernels_of(other)
    both = sorted(a.keys() & b.keys())
    if not both:
        return {"launches": 0, "only_one": len(a), "only_other": len(b)}
    ratios = sorted(a[key] / b[key] for key in both if b[key] > 0)
    return {"launches": len(both), "only_one": len(a) - len(both), "only_other": len(b) - len(both),
            "median_ratio": statistics.median(ratios), "p5": ratios[len(ratios) // 20], "p95": ratios[-1 - len(ratios) // 20],
            "sum_ratio": sum(a[key] for key in both) / sum(b[key] for key in both)}


def clocks(trace):
    """Between which two values (us) what has to be added to the device's times lies."""
    with sqlite3.connect(f"file:{trace}?mode=ro", uri=True) as store:
        launched = store.execute("""SELECT MIN(k.start - r.start), COUNT(*), SUM(k.start < r.start)
                                    FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN CUPTI_ACTIVITY_KIND_RUNTIME r
                                    ON r.correlationId = k.correlationId AND r.globalTid / 16777216 = k.globalPid / 16777216
                                    """).fetchone()
        ends = [row[0] for row in store.execute("SELECT end FROM CUPTI_ACTIVITY_KIND_KERNEL ORDER BY end")]
        waits = store.execute("""SELECT r.start, r.end FROM CUPTI_ACTIVITY_KIND_RUNTIME r JOIN StringIds s ON s.id = r.nameId
                                 WHERE s.value LIKE '%DeviceSynchronize%' ORDER BY r.start""").fetchall()
    after = []
    for begin, end in waits:
        # The last kernel that had ended when the call returned, of those that it really waited for.
        last = bisect.bisect_right(ends, end) - 1
        if last >= 0 and ends[last] >= begin:
            after.append(end - ends[last])
    result = {"launches": launched[1], "before_their_launch": launched[2] or 0, "waits": len(after)}
    if launched[0] is not None:
        result["lowest_us"] = -launched[0] / 1e3
    if after:
        result["highest_us"] = min(after) / 1e3
    return result


def bound(clock, name):
    return f"{abs(clock[name]):.2f} us" if name in clock else "any time"


def show(result):
    cost = result.get("overhead")
    if cost:
        print(f"a step of {cost['step_ms']:.3f} ms; time beside the loop alone:")
        for name in ("alone again", "strobe record", "torch.profiler"):
            print(f"  {name:16} {cost[name]['ratio']:.4f} [{cost[name]['low']:.4f} .. {cost[name]['high']:.4f}]")
        if "share_of_torch_profilers" in cost:
            print(f"  strobe record adds {cost['share_of_torch_profilers']:.2f} of what torch.profiler adds")
    for name, one in result.get("kernels", {}).items():
        print(f"{name}: {one['launches']} launches in both, {one['only_one']} and {one['only_other']} in one alone" +
              (f"; lengths {one['median_ratio']:.4f} [{one['p5']:.4f} .. {one['p95']:.4f}], sum {one['sum_ratio']:.4f}"
               if one["launches"] else ""))
    if "clocks" in result:
        one = result["clocks"]
        print(f"clocks: {one['launches']} launches, {one['before_their_launch']} kernels before their launch; the device's "
              f"times may be late by {bound(one, 'lowest_us')} and early by {bound(one, 'highest_us')} at most "
              f"({one['waits']} waits)")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--strobe", default="build/release/bin/strobe")
    parser.add_argument("-o", "--output", default="gpu-collection")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--layers", type=int, default=20)
    parser.add_argument("--channels", type=int, default=64)
    parser.add_argument("--traces", nargs=2, metavar=("STROBE", "PROFILER"))
    parser.add_argument("--child", choices=("loop", "profiler"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        return loop(options)
    out = pathlib.Path(options.output)
    out.mkdir(parents=True, exist_ok=True)
    result = {}
    if options.traces:
        own, peer = options.traces
        result["kernels"] = {"strobe / torch.profiler": compare_kernels(own, peer)}
        result["clocks"] = clocks(own)
    else:
        result["overhead"] = overhead(options)
        if options.device != "cpu":
            traces = []
            for number in range(2):
                run_child(options, "profiler")
                traces.append(str(out / f"profiler{number}.sqlite"))
                subprocess.run([options.strobe, "import", str(out / "profiler.json"), "-o", traces[-1]], check=True)
            own = str(out / "strobe.sqlite")
            result["kernels"] = {"strobe / torch.profiler": compare_kernels(own, traces[0]),
                                 "torch.profiler, twice": compare_kernels(traces[1], traces[0])}
            result["clocks"] = clocks(own)
    (out / "collection.json").write_text(json.dumps(result, indent=1) + "\n")
    show(result)


if __name__ == "__main__":
    sys.exit(main())
