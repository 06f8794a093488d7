#!/usr/bin/env python3
"""Forecasts held against real co-runs on this machine's first two cores.

Sets of two to four tenants are drawn from a pool. Each tenant of a set runs alone; then all run together under each
policy, three times at phases that are drawn, the policies in turn, so that a machine whose speed wanders (others on its
host) wanders for all of them. `strobe forecast` says from the runs alone what the latencies together are. Printed:
median errors of p50 and p99 of the forecast and of its two baselines, the share of sets within 25 % at p99, and
Kendall's tau of the order of the policies. A command that is repeated goes on where it stopped.

    corun.py build/release/bin/strobe VIDEO -o FOLDER [--sets 40] [--seconds 4] [--quiet CMD]
"""
import argparse
import csv
import itertools
import json
import pathlib
import random
import resource
import shlex
import statistics
import subprocess
import sys
import time

import numpy as np

POLICIES = ["fifo", "priority", "concurrent"]
# name: model, frames a second (no two commensurate, so that phases wander), milliseconds of the device a frame
POOL = {
    "person": ("person-tiny", 19.3, 10), "squeeze": ("squeezenet1_1", 23.7, 10), "mobile": ("mobilenet_v2", 28.1, 9),
    "resnet": ("resnet18", 9.7, 32), "spin": ("spin:6ms", 36.7, 6), "spin_long": ("spin:12ms", 14.9, 12),
    "stream": ("stream:6ms", 31.3, 6), "squeeze_slow": ("squeezenet1_1", 11.9, 10),
    "mobile_slow": ("mobilenet_v2", 16.1, 9), "person_slow": ("person-tiny", 12.7, 10),
}


def tenant_yaml(name, video, offset_ms):
    model, rate, ms = POOL[name]
    source = "synthetic" if ":" in model else video
    priority = list(POOL).index(name)
    return (f"  - {{name: {name}, model: \"{model}\", source: {source}, rate: {rate}, offset: {offset_ms:.1f}ms, "
            f"priority: {priority}, deadline: {2.5 * ms:.1f}ms, queue: 4}}\n")


def experiment(names, video, policies, repeat, seconds, rng, file):
    text = (f"name: corun\nisolation: threads\nduration: {seconds}s\nwarmup: 500ms\n"
            "defaults: {engine: openvino, threads: 1}\ntenants:\n")
    text += "".join(tenant_yaml(name, video, 0) for name in names)
    text += "grid:\n  phases:\n"
    for k in range(repeat):
        offsets = ", ".join(f"{name}.offset: {rng.uniform(0, 1000 / POOL[name][1]):.1f}ms" for name in names)
        text += f"    - {{name: p{k}, {offsets}}}\n"
    file.write_text(text + f"  policy: [{', '.join(policies)}]\n")


def delays_ms(cell):
    """Latencies of finished frames by tenant."""
    found = {}
    for path in cell.glob("delays_*.csv"):
        with open(path, newline="") as lines:
            for row in csv.DictReader(lines):
                found.setdefault(row["tenant"], []).append(1000 * float(row["e2e_delay"]))
    return found


def misses(cells):
    """Share of the frames that were due and had no result in time, by tenant."""
    due, missed = {}, {}
    for cell in cells:
        for path in cell.glob("tenants_*.csv"):
            with open(path, newline="") as lines:
                for row in csv.DictReader(lines):
                    due[row["tenant"]] = due.get(row["tenant"], 0) + int(row["frames"])
                    missed[row["tenant"]] = (missed.get(row["tenant"], 0)
                                             + int(row["frames"]) * float(row["miss_share"] or 0))
    return {name: missed[name] / due[name] for name in due if due[name]}


def cpu_seconds():
    """Of the whole machine but this program's children, steal included."""
    words = pathlib.Path("/proc/stat").read_text().splitlines()[0].split()[1:9]
    user, nice, system, _, _, irq, soft, steal = (int(w) / 100 for w in words)
    own = resource.getrusage(resource.RUSAGE_CHILDREN)
    return user + nice + system + irq + soft + steal - own.ru_utime - own.ru_stime


def draw_sets(count, rng, left_out=()):
    sets = set()
    names = list(POOL)
    while len(sets) < count:
        chosen = tuple(sorted(rng.sample(names, rng.choice([2, 3, 3, 4])), key=names.index))
        use = sum(POOL[n][1] * POOL[n][2] for n in chosen) / 1000
        if 0.35 <= use <= 0.85 and chosen not in left_out:
            sets.add(chosen)
    return sorted(sorted(sets), key=lambda s: rng.random())  # the same in every process


def kendall(a, b):
    """tau of pairs that differ by more than 2 % in both."""
    score = []
    for i, j in itertools.combinations(range(len(a)), 2):
        if abs(a[i] - a[j]) > 0.02 * a[j] and abs(b[i] - b[j]) > 0.02 * b[j]:
            score.append(1 if (a[i] - a[j]) * (b[i] - b[j]) > 0 else -1)
    return score


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("strobe")
    parser.add_argument("video")
    parser.add_argument("-o", "--output", required=True, type=pathlib.Path)
    parser.add_argument("--sets", type=int, default=40)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--seed", type=int, default=1, help="of the sets and their phases")
    parser.add_argument("--tuned-on", type=pathlib.Path, action="append", default=[],
                        help="folder of an earlier call, whose sets are not drawn again")
    parser.add_argument("--quiet", default="", help="put before commands that measure")
    parser.add_argument("--measure", action="store_true", help="measure only, without forecasts")
    parser.add_argument("--pause", type=float, default=0, help="with --measure: seconds after each set")
    args = parser.parse_args()
    rng = random.Random(args.seed)
    args.output.mkdir(parents=True, exist_ok=True)

    def strobe(*words, measured=False):
        command = (shlex.split(args.quiet) if measured else []) + [args.strobe, *map(str, words)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode not in (0, 1):
            sys.exit(f"{' '.join(command)}: {done.stderr.strip()}")
        return done.stdout

    left_out = {tuple(names) for folder in args.tuned_on for names in json.loads((folder / "sets.json").read_text())}
    sets = draw_sets(args.sets, rng, left_out)
    (args.output / "sets.json").write_text(json.dumps(sets))
    rows = []
    calibration = args.output / "calibration.json"
    if not calibration.exists():
        strobe("calibrate", "-o", calibration, measured=True)
    for number, names in enumerate(sets):
        folder = args.output / f"set_{number}"
        folder.mkdir(exist_ok=True)
        others, began = cpu_seconds(), time.monotonic()
        for name in names:
            experiment([name], args.video, ["fifo"], 1, 2 * args.seconds, rng, folder / f"{name}.yaml")
            strobe("run", folder / f"{name}.yaml", "-o", folder / name, measured=True)
        experiment(names, args.video, POLICIES, 3, args.seconds, rng, folder / "set.yaml")
        strobe("run", folder / "set.yaml", "-o", folder / "together", measured=True)
        others = (cpu_seconds() - others) / (time.monotonic() - began)
        print(f"set {number + 1}/{args.sets}: {' '.join(names)}; other programs used {others:.2f} of a core",
              file=sys.stderr, flush=True)
        if args.measure:
            time.sleep(args.pause)
            continue
        solo = {name: next((folder / name).glob("*/trace.sqlite")) for name in names}
        for policy in POLICIES:
            measured = {}
            cells = list((folder / "together").glob(f"*policy={policy}*"))
            missed = misses(cells)
            for cell in cells:
                for name, values in delays_ms(cell).items():
                    measured.setdefault(name, []).append(values)
            answer = json.loads(strobe("forecast", *[solo[n] for n in names], "--policy", policy, "--calibration",
                                       calibration, "--format", "json"))
            for row in answer["forecast"]:
                runs = measured.get(row["tenant"], [])
                values = np.concatenate(runs) if runs else np.array([])
                if len(values) < 30:
                    continue
                rows.append({"set": number, "size": len(names), "policy": policy, "tenant": row["tenant"],
                             "frames": len(values), "p50": float(np.quantile(values, 0.5)),
                             "p99": float(np.quantile(values, 0.99)),
                             "miss": missed[row["tenant"]], "forecast_miss": row["miss_rate"],
                             "run_p50": [float(np.quantile(v, 0.5)) for v in runs],
                             "run_p99": [float(np.quantile(v, 0.99)) for v in runs],
                             **{f"{kind}_{q}": (row if kind == "forecast" else row[kind])[f"{q}_ms"]
                                for kind in ("forecast", "equal_share", "no_interference") for q in ("p50", "p99")}})
        (args.output / "rows.json").write_text(json.dumps(rows))
    if args.measure:
        return

    print(f"{len(rows)} tenants in {args.sets} sets under {len(POLICIES)} policies")
    for policy in [*POLICIES, "all"]:
        of = [r for r in rows if policy in (r["policy"], "all")]
        line = f"{policy:11}"
        for kind in ("forecast", "equal_share", "no_interference"):
            errors = {q: [abs(r[f"{kind}_{q}"] - r[q]) / r[q] for r in of] for q in ("p50", "p99")}
            line += f"  {kind} p50 {100 * statistics.median(errors['p50']):5.1f} % p99 {100 * statistics.median(errors['p99']):5.1f} %"
            if kind == "forecast":
                line += f" (within 25 % at p99: {100 * sum(e <= 0.25 for e in errors['p99']) / len(of):.0f} %)"
        off = [abs(r["forecast_miss"] - r["miss"]) for r in of]
        line += (f"  misses {100 * statistics.mean(r['miss'] for r in of):.1f} % of frames, forecast within 3 points: "
                 f"{100 * sum(o <= 0.03 for o in off) / len(of):.0f} % of tenants, off by {100 * statistics.mean(off):.1f} "
                 "points in the mean")
        noise = statistics.median(abs(a - b) / b for r in of for a, b in [(r["run_p50"][0], r["run_p50"][-1])])
        noise99 = statistics.median(abs(a - b) / b for r in of for a, b in [(r["run_p99"][0], r["run_p99"][-1])])
        print(f"{line}  run to run p50 {100 * noise:.1f} % p99 {100 * noise99:.1f} %")
    by_set = {}
    for r in rows:
        by_set.setdefault((r["set"], r["policy"]), []).append(abs(r["forecast_p99"] - r["p99"]) / r["p99"])
    within = [statistics.median(errors) <= 0.25 for errors in by_set.values()]
    print(f"sets within 25 % at p99 (median tenant): {100 * sum(within) / len(within):.0f} % of {len(within)}")
    score = []
    for number in {r["set"] for r in rows}:
        for name in {r["tenant"] for r in rows if r["set"] == number}:
            of = {r["policy"]: r for r in rows if r["set"] == number and r["tenant"] == name}
            if len(of) == len(POLICIES):
                score += kendall([of[p]["forecast_p50"] for p in POLICIES], [of[p]["p50"] for p in POLICIES])
    if score:
        print(f"order of policies by p50 (pairs that differ by > 2 %): tau {statistics.mean(score):.2f} of {len(score)} pairs")


if __name__ == "__main__":
    main()
