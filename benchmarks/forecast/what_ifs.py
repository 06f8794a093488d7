#!/usr/bin/env python3
"""What-ifs held against changes that were really made, on this machine's first two cores.

Several tenants run together at two drawn phases; then again with one change each: work of another length, a tenant
removed or added, another rate, priorities swapped, another policy, one core. `strobe what-if` (for an added tenant
`strobe forecast`, from the trace together and one of the newcomer alone) says from the unchanged runs what the changed
ones will show. Printed: errors of p50 and p99 of it and of two baselines, and how often the direction of a change is
right. A command that is repeated goes on where it stopped.

    what_ifs.py build/release/bin/strobe VIDEO -o FOLDER [--calibration FILE] [--seconds 4] [--quiet CMD]
"""
import argparse
import copy
import json
import pathlib
import random
import shlex
import statistics
import subprocess
import sys
import time

import numpy as np

from corun import POOL, delays_ms

PHASES = 2
# Tenants, policy, and the changes: what is asked, and what is done.
BASES = [
    (["spin", "mobile", "person_slow"], "fifo",
     [("work", "spin", 0.5), ("work", "spin", 1.5), ("remove", "mobile"), ("rate", "mobile", 0.6), ("policy", "concurrent"),
      ("cores",), ("add", "stream")]),
    (["spin_long", "squeeze", "person"], "priority",
     [("work", "spin_long", 0.5), ("swap", "spin_long", "person"), ("remove", "squeeze"), ("rate", "person", 0.6),
      ("policy", "fifo"), ("add", "mobile_slow")]),
    (["spin", "squeeze", "stream"], "concurrent",
     [("work", "spin", 1.8), ("work", "stream", 0.5), ("remove", "squeeze"), ("rate", "squeeze", 0.6), ("policy", "priority"),
      ("cores",)]),
    (["resnet", "spin", "squeeze_slow"], "fifo",
     [("work", "spin", 0.5), ("remove", "resnet"), ("rate", "resnet", 0.6), ("policy", "priority"), ("policy", "concurrent"),
      ("add", "person_slow")]),
    (["resnet", "mobile_slow", "spin_long"], "priority",
     [("work", "spin_long", 0.4), ("swap", "resnet", "spin_long"), ("remove", "resnet"), ("rate", "spin_long", 1.5),
      ("policy", "concurrent"), ("cores",)]),
    (["resnet", "person", "spin"], "concurrent",
     [("work", "spin", 0.5), ("work", "spin", 1.5), ("remove", "person"), ("rate", "spin", 0.6), ("policy", "fifo"),
      ("add", "stream")]),
]


def tenant_of(name):
    model, rate, _ = POOL[name]
    return {"model": model, "rate": rate, "priority": list(POOL).index(name)}


def changed(base, policy, change):
    """Tenants, policy and cores after the change."""
    tenants, cores = copy.deepcopy(base), None
    kind = change[0]
    if kind == "work":
        word, ms = tenants[change[1]]["model"].split(":")
        tenants[change[1]]["model"] = f"{word}:{float(ms.removesuffix('ms')) * change[2]:g}ms"
    elif kind == "remove":
        del tenants[change[1]]
    elif kind == "add":
        tenants[change[1]] = tenant_of(change[1])
    elif kind == "rate":
        tenants[change[1]]["rate"] = round(tenants[change[1]]["rate"] * change[2], 3)
    elif kind == "swap":
        a, b = tenants[change[1]], tenants[change[2]]
        a["priority"], b["priority"] = b["priority"], a["priority"]
    elif kind == "policy":
        policy = change[1]
    elif kind == "cores":
        cores = "0"
    return tenants, policy, cores


def question(base, change):
    kind = change[0]
    if kind == "work":
        return ["--scale", f"tenant={change[1]},stage=infer:{change[2]}"]
    if kind == "remove":
        return ["--remove", f"tenant={change[1]}"]
    if kind == "rate":
        return ["--rate", f"tenant={change[1]}:{round(base[change[1]]['rate'] * change[2], 3)}"]
    if kind == "swap":
        return ["--priority", f"tenant={change[1]}:{base[change[2]]['priority']}", "--priority",
                f"tenant={change[2]}:{base[change[1]]['priority']}"]
    return ["--policy", change[1]] if kind == "policy" else ["--cores", "1"]


def experiment(tenants, policy, cores, offsets, video, seconds, file):
    text = (f"name: what-if\nisolation: threads\nduration: {seconds}s\nwarmup: 500ms\npolicy: {policy}\n"
            f"defaults: {{engine: openvino, threads: 1{'' if cores is None else f', cores: {cores!r}'}}}\ntenants:\n")
    for name, of in tenants.items():
        source = "synthetic" if ":" in of["model"] else video
        text += (f"  - {{name: {name}, model: \"{of['model']}\", source: {source}, rate: {of['rate']}, "
                 f"offset: {offsets[name]:.1f}ms, priority: {of['priority']}, deadline: 100ms, queue: 4}}\n")
    file.write_text(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("strobe")
    parser.add_argument("video")
    parser.add_argument("-o", "--output", required=True, type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--calibration", type=pathlib.Path, help="of strobe calibrate; made when it is missing")
    parser.add_argument("--quiet", default="", help="put before commands that measure")
    parser.add_argument("--measure", action="store_true", help="measure only")
    parser.add_argument("--pause", type=float, default=0, help="seconds after each round of runs")
    args = parser.parse_args()
    rng = random.Random(3)
    args.output.mkdir(parents=True, exist_ok=True)
    calibration = args.calibration or args.output / "calibration.json"

    def strobe(*words, measured=False):
        command = (shlex.split(args.quiet) if measured else []) + [args.strobe, *map(str, words)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode not in (0, 1):
            sys.exit(f"{' '.join(command)}: {done.stderr.strip()}")
        return done.stdout

    def run(name, tenants, policy, cores, offsets, seconds):
        file = args.output / f"{name}.yaml"
        experiment(tenants, policy, cores, offsets, args.video, seconds, file)
        strobe("run", file, "-o", args.output / name, measured=True)
        return next((args.output / name).glob("*/trace.sqlite"))

    if not calibration.exists() and not args.measure:
        strobe("calibrate", "-o", calibration, measured=True)
    rows, number = [], 0
    for b, (names, policy, changes) in enumerate(BASES):
        base = {name: tenant_of(name) for name in names}
        traces = {}
        for phase in range(PHASES):
            offsets = {name: rng.uniform(0, 1000 / POOL[name][1]) for name in POOL}
            traces[phase] = run(f"base_{b}_{phase}", base, policy, None, offsets, args.seconds)
            for c, change in enumerate(changes):
                traces[phase, c] = run(f"change_{b}_{c}_{phase}", *changed(base, policy, change), offsets, args.seconds)
                if change[0] == "add":
                    added = {change[1]: tenant_of(change[1])}
                    traces[phase, "solo"] = run(f"solo_{b}_{phase}", added, policy, None, offsets, args.seconds)
            traces[phase, "again"] = run(f"again_{b}_{phase}", base, policy, None, offsets, args.seconds)
            time.sleep(args.pause)
        print(f"base {b + 1}/{len(BASES)} measured", file=sys.stderr, flush=True)
        if args.measure:
            continue

        def figures(key):
            """Means over the phases of each tenant's quantiles."""
            found = {}
            for phase in range(PHASES):
                for name, values in delays_ms(traces[phase if key is None else (phase, key)].parent).items():
                    if len(values) >= 15:
                        found.setdefault(name, []).append([np.quantile(values, 0.5), np.quantile(values, 0.99)])
            return {name: np.mean(of, axis=0) for name, of in found.items() if len(of) == PHASES}

        before, again = figures(None), figures("again")
        for c, change in enumerate(changes):
            predicted = {}
            for phase in range(PHASES):
                if change[0] == "add":
                    answer = json.loads(strobe("forecast", traces[phase], traces[phase, "solo"], "--policy", policy,
                                               "--calibration", calibration, "--format", "json"))["forecast"]
                    unchanged = {}
                else:
                    answer = json.loads(strobe("what-if", traces[phase], *question(base, change), "--calibration",
                                               calibration, "--format", "json"))["tenants"]
                    unchanged = {of["tenant"]: of["before"] for of in answer}
                for of in answer:
                    what = {"what_if": of if change[0] == "add" else of["after"], "equal_share": of["equal_share"],
                            "no_interference": of["no_interference"], "before": unchanged.get(of["tenant"])}
                    for kind, its in what.items():
                        if its is not None and its["p50_ms"] is not None:
                            predicted.setdefault((of["tenant"], kind), []).append([its["p50_ms"], its["p99_ms"]])
            for name, measured in figures(c).items():
                row = {"change": number, "what": " ".join(map(str, change)), "base": b, "policy": policy, "tenant": name}
                row["measured"] = list(measured)
                row["measured_before"] = row["noise"] = None
                if name in before and name in again:
                    row["measured_before"] = list((before[name] + again[name]) / 2)
                    row["noise"] = list(abs(again[name] / before[name] - 1))
                for kind in ("what_if", "equal_share", "no_interference", "before"):
                    if (name, kind) in predicted:
                        row[kind] = list(np.mean(predicted[name, kind], axis=0))
                if "what_if" in row:
                    rows.append(row)
            number += 1
    if args.measure:
        return
    (args.output / "rows.json").write_text(json.dumps(rows))

    print(f"{number} changes, {len(rows)} tenants in them")
    kinds = sorted({row["what"].split()[0] for row in rows})
    for kind in [*kinds, "all"]:
        of = [row for row in rows if kind in (row["what"].split()[0], "all")]
        line = f"{kind:7} {len(of):3} "
        for which in ("what_if", "equal_share", "no_interference"):
            error = [statistics.median(abs(r[which][q] / r["measured"][q] - 1) for r in of) for q in (0, 1)]
            line += f"  {which} p50 {100 * error[0]:5.1f} % p99 {100 * error[1]:5.1f} %"
        print(line)
    for q, label in ((0, "p50"), (1, "p99")):
        known = [row for row in rows if row["measured_before"] is not None]
        right, clear = [], []
        for row in known:
            real = row["measured"][q] / row["measured_before"][q] - 1
            said = row["what_if"][q] / row.get("before", row["measured_before"])[q] - 1
            if abs(real) > 0.05:
                right.append(float(said * real > 0))
                if abs(real) > row["noise"][q]:
                    clear.append(right[-1])
        print(f"{label}: unchanged runs differ by {100 * statistics.median(row['noise'][q] for row in known):.1f} %; direction"
              f" right in {int(sum(right))} of {len(right)} changes larger than 5 % ({100 * statistics.mean(right or [0]):.0f} %), in"
              f" {int(sum(clear))} of the {len(clear)} larger than the noise, too ({100 * statistics.mean(clear or [0]):.0f} %)")


if __name__ == "__main__":
    main()
