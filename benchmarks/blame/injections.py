#!/usr/bin/env python3
"""Blame on real cores, where what delays whom is planted and so known.

    injections.py build/release/bin/strobe [-o FOLDER] [--seconds 10] [--core 0] [--other 1]

Six cases; a row each: what is known from outside of strobe, what `strobe blame` says, how far apart the two may be.
Needs two cores with nothing else on them, and the right to see the kernel's switches for cases 1 and 2. Exit code 1
when a case fails.
"""
import argparse
import collections
import ctypes
import json
import os
import pathlib
import shlex
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np


class Experiment:
    def __init__(self, args, folder):
        self.args, self.folder = args, folder

    def run(self, name, tenants, policy="concurrent", watch=None, quiet=True):
        """Runs one cell; the path of its trace. watch(pid) is called once its process is there."""
        lines = [f"name: {name}", f"policy: {policy}", "isolation: threads", f"duration: {self.args.seconds}s",
                 "warmup: 500ms", "tenants:"]
        for tenant in tenants:
            words = {"source": "synthetic", **tenant}
            lines.append("  - {" + ", ".join(f'{key}: "{value}"' if key == "model" else f"{key}: {value}"
                                             for key, value in words.items()) + "}")
        file = self.folder / f"{name}.yaml"
        file.write_text("\n".join(lines) + "\n")
        command = [*(shlex.split(self.args.quiet) if quiet else []), self.args.strobe, "run", str(file), "-o", str(self.folder / name)]
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if watch:
            watch(child.pid)
        _, errors = child.communicate()
        if child.returncode != 0:
            sys.exit(f"{' '.join(command)}: {errors.strip()}")
        return next((self.folder / name).glob("*/trace.sqlite"))

    def blame(self, trace, *options):
        done = subprocess.run([self.args.strobe, "blame", str(trace), "--format", "json", *options],
                              capture_output=True, text=True)
        if done.returncode not in (0, 1):
            sys.exit(done.stderr.strip())
        return json.loads(done.stdout)


def total(blame, tenant, by=None, resource=None, column="ns"):
    return sum(cell[column] for cell in blame["cells"]
               if cell["tenant"] == tenant and (by is None or cell["by"] == by)
               and (resource is None or cell["resource"].startswith(resource)))


def stages(trace, tenant, name="infer"):
    """(start, end) of a stage, ns of the trace; and the thread that did it."""
    with sqlite3.connect(trace) as store:
        return store.execute(
            "SELECT r.start, r.end, l.tid FROM STROBE_RANGE r JOIN STROBE_LANE l ON l.id = r.laneId "
            "JOIN STROBE_RANGE_CATEGORY c ON c.rangeId = r.id JOIN StringIds t ON t.id = c.categoryId "
            "JOIN StringIds d ON d.id = c.domainId JOIN StringIds n ON n.id = r.nameId "
            "WHERE t.value = ? AND d.value = 'strobe.tenant' AND n.value = ? AND r.isAsync = 0 ORDER BY r.start",
            (tenant, name)).fetchall()


def window(trace):
    with sqlite3.connect(trace) as store:
        begin, end = store.execute("SELECT r.start, r.end FROM STROBE_RANGE r JOIN StringIds n ON n.id = r.nameId "
                                   "WHERE n.value = 'tenants'").fetchone()
        utc = store.execute("SELECT value FROM STROBE_META WHERE name = 'utc_start_ns'").fetchone()[0]
    return begin, end, int(utc)


class Waits(threading.Thread):
    """The kernel's own wait counters of all threads below a process, read 50 times a second."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pid, self.series, self.done = pid, collections.defaultdict(list), False

    def run(self):
        while not self.done:
            todo = [self.pid]
            while todo:
                pid = todo.pop()
                try:
                    for task in os.scandir(f"/proc/{pid}/task"):
                        wait = int(pathlib.Path(task.path, "schedstat").read_text().split()[1])
                        self.series[int(task.name)].append((time.time_ns(), wait))
                        todo += map(int, pathlib.Path(task.path, "children").read_text().split())
                except (OSError, IndexError):
                    continue
            time.sleep(0.02)

    def between(self, tid, begin, end):
        times, waits = map(np.array, zip(*self.series[tid]))
        return float(np.interp(end, times, waits) - np.interp(begin, times, waits))


def hog(core, seconds):
    """A process that is busy for so long and idle for as long, named "hog"; its start is printed to nobody."""
    pid = os.fork()
    if pid == 0:
        os.sched_setaffinity(0, {core})
        ctypes.CDLL(None).prctl(15, b"hog", 0, 0, 0)
        while True:
            until = time.monotonic() + seconds
            while time.monotonic() < until:
                pass
            time.sleep(seconds)
    return pid


def two_busy_tenants(lab):
    """1: two tenants on one core, always busy: the kernel's wait counters."""
    args, watched = lab.args, []

    def watch(pid):
        watched.append(Waits(pid))
        watched[0].start()

    tenant = {"model": "spin:6ms", "rate": 100, "cores": args.core, "queue": 2}
    trace = lab.run("busy", [{"name": "a", **tenant}, {"name": "b", **tenant}], watch=watch)
    watched[0].done = True
    blame = lab.blame(trace)
    begin, end, utc = window(trace)
    known = found = named = 0
    for name in "ab":
        known += watched[0].between(stages(trace, name)[0][2], utc + begin, utc + end)
        found += total(blame, name, resource="cpu:") + total(blame, name, resource="cpu:", column="absorbed_ns")
        named += total(blame, name, by="ab".replace(name, ""), resource="cpu:")
    yield "run queue, ms: kernel's counter", known / 1e6, found / 1e6, 0.02
    yield "  of it blamed on the other tenant", found / 1e6, named / 1e6, 0.05


def hog_on_and_off(lab):
    """2: another program on the tenant's core, half of the time: what it adds to the latency is its."""
    pid = hog(lab.args.core, 0.5)
    try:
        trace = lab.run("hog", [{"name": "a", "model": "spin:6ms", "rate": 17, "cores": lab.args.core}], quiet=False)
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    alone = lab.run("no_hog", [{"name": "a", "model": "spin:6ms", "rate": 17, "cores": lab.args.core}], quiet=False)

    def mean_ms(path):
        begin, end, _ = window(path)
        return np.mean([(b - a) / 1e6 for a, b, _ in stages(path, "a") if begin <= a <= end])

    blame = lab.blame(trace)
    frames = blame["tenants"][0]["frames"]
    of_hog = sum(p["ns"] for p in blame["programs"] if p["program"] == "hog")
    yield "hog, ms a frame: added to the stage", mean_ms(trace) - mean_ms(alone), of_hog / frames / 1e6, 0.05
    waits = total(blame, "a", resource="cpu:")
    yield "  share of waits for the core that is its", 1, of_hog / waits, 0.05


def lock_held(lab):
    """3: a lock that is held for 20 ms, asked for 5 ms after."""
    args = lab.args
    trace = lab.run("lock", [
        {"name": "holder", "model": "spin:20ms", "rate": 10, "cores": args.other},
        {"name": "waiter", "model": "spin:2ms", "rate": 10, "offset": "5ms", "cores": args.core}], policy="exclusive")
    blame = lab.blame(trace)
    frames = next(t["frames"] for t in blame["tenants"] if t["tenant"] == "waiter")
    held = np.median([(b - a) / 1e6 for a, b, _ in stages(trace, "holder")])
    yield "lock, ms a frame: held less 5 ms", held - 5, total(blame, "waiter", by="holder") / frames / 1e6, 0.05


def full_queue(lab):
    """4: frames come at 50 Hz, each takes 40 ms, two may wait: all beyond the own 40 ms is the tenant's own backlog."""
    trace = lab.run("queue", [{"name": "a", "model": "spin:40ms", "rate": 50, "queue": 2, "drop": "never",
                               "cores": lab.args.core}])
    blame = lab.blame(trace)
    tenant = blame["tenants"][0]
    begin, end, _ = window(trace)
    service = np.mean([b - a for a, b, _ in stages(trace, "a") if begin <= a <= end])
    known = tenant["latency_ns"] - tenant["frames"] * service
    yield "full queue, ms: latency less own work", known / 1e6, total(blame, "a", by="self") / 1e6, 0.05


def bandwidth(lab):
    """5: memory copies beside memory copies: the stretch."""
    args = lab.args
    calibration = lab.folder / "machine.json"
    subprocess.run([*shlex.split(args.quiet), args.strobe, "calibrate", "-o", str(calibration)], check=True,
                   stdout=subprocess.DEVNULL)
    one = {"name": "a", "model": "stream:6ms", "rate": 20, "cores": args.core}
    times = {}
    for name, more in (("alone", []), ("beside", [{"name": "b", "model": "stream:40ms", "rate": 30, "queue": 1,
                                                   "cores": args.other}])):
        trace = lab.run(name, [one, *more])
        begin, end, _ = window(trace)
        times[name] = np.mean([b - a for a, b, _ in stages(trace, "a") if begin <= a <= end]) / 1e6
    blame = lab.blame(trace, "--calibration", str(calibration))
    frames = blame["tenants"][0]["frames"]
    stretch = sum(cell["ns"] for cell in blame["cells"]
                  if cell["tenant"] == "a" and cell["by"] == "b" and not cell["resource"].startswith("cpu:"))
    yield "stretch, ms a frame: beside less alone", times["beside"] - times["alone"], stretch / frames / 1e6, 0.10


def nobody(lab):
    """6: each on a core of its own, seldom: nothing to blame."""
    args = lab.args
    trace = lab.run("apart", [{"name": "a", "model": "spin:6ms", "rate": 10, "cores": args.core},
                              {"name": "b", "model": "spin:6ms", "rate": 10, "offset": "50ms", "cores": args.other}])
    blame = lab.blame(trace)
    for tenant in blame["tenants"]:
        most = max((cell["ns"] for cell in blame["cells"] if cell["tenant"] == tenant["tenant"]), default=0)
        yield f"no contention, {tenant['tenant']}: largest cell / latency", 0, most / tenant["latency_ns"], 0.01


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("strobe")
    parser.add_argument("-o", "--output", type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--core", type=int, default=0)
    parser.add_argument("--other", type=int, default=1)
    parser.add_argument("--quiet", default="", help="put before commands that measure, e.g. 'nice -n -20'")
    parser.add_argument("--only", type=int, action="append", help="numbers of cases")
    args = parser.parse_args()
    cases = [two_busy_tenants, hog_on_and_off, lock_held, full_queue, bandwidth, nobody]
    failed = False
    with tempfile.TemporaryDirectory() as scratch:
        folder = args.output or pathlib.Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        print(f"{'case':46} {'known':>10} {'blame':>10} {'off by':>8} {'limit':>6}")
        for number, case in enumerate(cases, 1):
            if args.only and number not in args.only:
                continue
            for what, known, found, limit in case(Experiment(args, folder)):
                off = abs(found - known) / (known if known else 1)
                failed |= off > limit
                print(f"{number} {what:44} {known:10.3f} {found:10.3f} {100 * off:7.2f}% {100 * limit:5.0f}%"
                      f"{'' if off <= limit else '  MISSED'}", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
