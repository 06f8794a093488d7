"""`strobe record`: programs that were not written for it, and what can happen to them."""
import json
import os
import pathlib
import pty
import signal
import sqlite3
import subprocess
import sys
import time
import unittest

from support import STROBE, Case, strobe

BIN = pathlib.Path(os.environ.get("STROBE_TEST_BIN", "build/release/bin"))
PYTHON = os.environ.get("STROBE_TEST_PYTHON") or sys.executable

RANGES = """SELECT s.value AS name, COALESCE(c.value, '') AS category, COALESCE(d.value, '') AS domain, r.start, r.end,
  r.open, r.isAsync, r.id, l.pid, l.tid FROM STROBE_RANGE r JOIN StringIds s ON s.id = r.nameId
  JOIN STROBE_LANE l ON l.id = r.laneId LEFT JOIN STROBE_RANGE_CATEGORY rc ON rc.rangeId = r.id
  LEFT JOIN StringIds c ON c.id = rc.categoryId LEFT JOIN StringIds d ON d.id = rc.domainId ORDER BY r.id"""
MARKS = """SELECT s.value AS name, COALESCE(c.value, '') AS category, COALESCE(d.value, '') AS domain, m.time, m.id, l.pid
  FROM STROBE_MARK m JOIN StringIds s ON s.id = m.nameId JOIN STROBE_LANE l ON l.id = m.laneId
  LEFT JOIN STROBE_MARK_CATEGORY mc ON mc.markId = m.id LEFT JOIN StringIds c ON c.id = mc.categoryId
  LEFT JOIN StringIds d ON d.id = mc.domainId ORDER BY m.id"""
VALUE = "COALESCE(a.int64Value, a.doubleValue, (SELECT value FROM StringIds WHERE id = a.textId))"


def has_module(name):
    return subprocess.run([PYTHON, "-c", f"import {name}"], capture_output=True, check=False).returncode == 0


def needs(module):
    return unittest.skipUnless(has_module(module), f"the Python package {module} is absent from {PYTHON}")


class Trace:
    def __init__(self, path):
        self.path = path
        self.database = sqlite3.connect(path)
        self.database.row_factory = sqlite3.Row

    def rows(self, sql, *values):
        return self.database.execute(sql, values).fetchall()

    def ranges(self, domain=None):
        """Annotations only: processes are ranges of the domain "os"."""
        rows = [row for row in self.rows(RANGES) if row["domain"] != "os"]
        return rows if domain is None else [row for row in rows if row["domain"] == domain]

    def names(self, domain=None):
        return [row["name"] for row in self.ranges(domain)]

    def one(self, name):
        found = [row for row in self.rows(RANGES) if row["name"] == name]
        assert len(found) == 1, (name, found)
        return found[0]

    def processes(self):
        return [(row, self.arguments(row["name"], row["id"])) for row in self.rows(RANGES) if row["domain"] == "os"]

    def arguments(self, name, range_id=None):
        range_id = self.one(name)["id"] if range_id is None else range_id
        return dict(self.rows(f"SELECT k.value, {VALUE} FROM STROBE_ARGUMENT a JOIN StringIds k ON k.id = a.keyId "
                              "WHERE a.rangeId = ?", range_id))

    def marks(self):
        return [row for row in self.rows(MARKS) if row["name"] != "strobe.recording"]

    def mark(self, name):
        found = [row for row in self.marks() if row["name"] == name]
        assert len(found) == 1, (name, found)
        return found[0]

    def mark_arguments(self, name):
        return dict(self.rows(f"SELECT k.value, {VALUE} FROM STROBE_MARK_ARGUMENT a JOIN StringIds k ON k.id = a.keyId "
                              "WHERE a.markId = ?", self.mark(name)["id"]))

    def counter(self, name):
        return [row[0] for row in self.rows("SELECT c.value FROM STROBE_COUNTER c JOIN StringIds s ON s.id = c.nameId "
                                            "WHERE s.value = ? ORDER BY c.timestamp", name)]

    def fact(self, name):
        return dict(self.rows("SELECT name, value FROM STROBE_FACT")).get(name)

    def losses(self):
        return dict(self.rows("SELECT name, count FROM STROBE_LOSS"))


class RecordCase(Case):
    def setUp(self):
        super().setUp()
        self.trace = self.folder / "t.sqlite"

    def record(self, *command, flags=(), code=0, **keywords):
        self.done = strobe("record", "-o", self.trace, "--format", "json", *flags, "--", *command, **keywords)
        self.assertEqual(self.done.returncode, code, self.done.stderr)
        self.summary = json.loads([line for line in self.done.stderr.splitlines() if line.startswith("{")][-1])
        self.assertEqual(self.summary["exit_status"], code)
        self.assertFalse((self.folder / "t.sqlite.spool").exists())
        return Trace(self.trace)

    def python(self, text, *arguments, **keywords):
        script = self.folder / "program.py"
        script.write_text(text)
        return self.record(PYTHON, script, *arguments, **keywords)


class Nvtx(RecordCase):
    def test_every_function_of_the_c_interface(self):
        if not (BIN / "strobe_test_nvtx_calls").exists():
            self.skipTest("NVTX's headers were absent from the build")
        trace = self.record(BIN / "strobe_test_nvtx_calls")
        self.assertEqual(trace.losses(), {})
        self.assertEqual(sorted(trace.names("")), sorted(
            ["push a", "push w é", "push ex", "start a", "start w", "start ex", "other thread"]))
        self.assertGreaterEqual(trace.one("push w é")["start"], trace.one("push a")["start"])
        self.assertLessEqual(trace.one("push w é")["end"], trace.one("push a")["end"])
        self.assertEqual(trace.one("push ex")["category"], "category five")
        self.assertEqual(trace.arguments("push ex"), {"payload": "18446744073709551615", "color": 0xFF112233})
        for name in ("start a", "start w", "start ex", "domain start"):
            self.assertEqual((trace.one(name)["isAsync"], trace.one(name)["open"]), (1, 0), name)
        self.assertLess(trace.one("start a")["end"], trace.one("start ex")["end"])
        self.assertLess(trace.one("start ex")["end"], trace.one("start w")["end"])
        self.assertEqual(trace.arguments("start ex"), {"payload": 7})
        marks = {"signed 64": -64, "double": 2.5, "unsigned 32": 4000000000, "signed 32": -32, "float": 0.5}
        for name, value in marks.items():
            self.assertEqual(trace.mark_arguments(name), {"payload": value}, name)
        self.assertEqual(trace.mark("signed 64")["category"], "category five hundred")
        self.assertEqual(trace.mark("float")["category"], "category 9")
        self.assertEqual([trace.mark("mark a")["domain"], trace.mark("mark w")["domain"]], ["", ""])

        self.assertEqual(trace.names("library"), ["registered", "registered", "domain start"])
        self.assertEqual(trace.names("wide library"), ["registered wide"])
        self.assertEqual({row["category"] for row in trace.ranges("library")}, {"loading", ""})
        self.assertEqual((trace.mark("domain mark")["domain"], trace.mark("domain mark")["category"]),
                         ("library", "saving"))
        self.assertTrue(any("ended before one of another domain" in mark["name"] for mark in trace.marks()))

        layer = {"batch": 3, "loss": 0.25, "label": "conv", "shape": "[1, 2, 3]", "mode": "infer"}
        self.assertEqual(trace.arguments("with schema"), layer)
        self.assertEqual(trace.mark_arguments("layer"), layer)
        payload_ranges = [row for row in trace.ranges("extended") if row["name"] == "layer"]
        self.assertEqual([row["isAsync"] for row in payload_ranges], [0, 1])
        for row in payload_ranges:
            self.assertEqual(trace.arguments("layer", row["id"]), layer)
        self.assertEqual(trace.counter("extended/queue"), [4, 6])
        self.assertEqual(trace.counter("extended/rate"), [1.5])
        lanes = {row[0] for row in trace.rows("SELECT s.value FROM STROBE_LANE l JOIN StringIds s ON s.id = l.nameId")}
        self.assertLessEqual({"main thread", "named by another"}, lanes)

    @needs("nvtx")
    def test_python_package(self):
        trace = self.python("""
import nvtx, sys
@nvtx.annotate("step", color="red", domain="training", category="work")
def step(): pass
for i in range(100): step()
with nvtx.annotate("outer", payload=7):
    nvtx.mark("here", payload=1.5)
    nvtx.push_range("inner", domain="training"); nvtx.pop_range(domain="training")
handle = nvtx.start_range("loose"); nvtx.end_range(handle)
print("out of the program"); sys.exit(5)
""", code=5)
        self.assertEqual(self.done.stdout, "out of the program\n")
        names = trace.names()
        self.assertEqual([names.count(name) for name in ("step", "outer", "inner", "loose")], [100, 1, 1, 1])
        step = next(row for row in trace.ranges() if row["name"] == "step")
        self.assertEqual((step["domain"], step["category"]), ("training", "work"))
        self.assertEqual(trace.arguments("step", step["id"])["color"] & 0xFFFFFF, 0xFF0000)
        self.assertEqual(trace.arguments("outer")["payload"], 7)
        self.assertEqual(trace.mark_arguments("here")["payload"], 1.5)
        self.assertEqual((self.summary["ranges"], self.summary["dropped"]), (103, 0))
        stats = json.loads(strobe("stats", self.trace, "--by", "range", "--format", "json").stdout)
        step = next(row for row in stats["rows"] if "step" in row.values() or "step" in str(row.get("name")))
        self.assertEqual(step["count"], 100)
        rows = strobe("query", self.trace, "SELECT COUNT(*) AS n FROM NVTX_EVENTS WHERE eventType = 59 AND domainId != 0",
                      "--format", "csv")
        self.assertIn("101", rows.stdout)
        report = self.folder / "report.html"
        done = strobe("report", self.trace, "-o", report)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("step", report.read_text())

    @needs("nvtx")
    @needs("numpy")
    def test_payloads_and_counters_of_the_python_package(self):
        trace = self.python("""
import numpy as np, nvtx
with nvtx.annotate("array", payload=np.arange(4), domain="numbers"): pass
record = np.array([(3, 0.25)], dtype=[("batch", np.int32), ("loss", np.float64)])
with nvtx.annotate("record", payload=record, domain="numbers"): pass
counter = nvtx.get_domain("numbers").get_counter("depth", np.int64)
counter.sample(4); counter.sample(6)
""")
        self.assertEqual(trace.arguments("array")["data"], "[0, 1, 2, 3]")
        self.assertEqual({key.rpartition(".")[2]: value for key, value in trace.arguments("record").items()
                          if not key.startswith(("color", "size"))}, {"batch": 3, "loss": 0.25})
        self.assertEqual(trace.counter("numbers/depth"), [4, 6])

    @needs("nvtx")
    def test_forks_without_exec(self):
        trace = self.python("""
import nvtx, os
with nvtx.annotate("before"): pass
with nvtx.annotate("across"):
    for i in range(3):
        if os.fork() == 0:
            with nvtx.annotate(f"child {i}"): pass
            os._exit(0)
    for i in range(3): os.wait()
""")
        pids = {row["name"]: row["pid"] for row in trace.ranges()}
        self.assertEqual(sorted(pids), ["across", "before", "child 0", "child 1", "child 2"])
        self.assertEqual(len(set(pids.values())), 4)
        across = trace.one("across")
        for i in range(3):  # one clock for all
            child = trace.one(f"child {i}")
            self.assertTrue(across["start"] < child["start"] < child["end"] < across["end"])

    @needs("nvtx")
    def test_shell_script_that_executes_python_children(self):
        child = self.folder / "child.py"
        child.write_text("import nvtx, sys\nwith nvtx.annotate('work ' + sys.argv[1]): sum(range(200000))\n")
        script = self.folder / "run.sh"
        script.write_text(f'#!/bin/sh\nfor i in 1 2 3; do "{PYTHON}" "{child}" $i & done\nwait\nexec "{PYTHON}" "{child}" last\n')
        script.chmod(0o755)
        trace = self.record(script)
        self.assertEqual(sorted(trace.names()), ["work 1", "work 2", "work 3", "work last"])
        main = next(process for row, process in trace.processes() if process["parent_pid"] != trace.one("work last")["pid"])
        self.assertEqual(main["pid"], trace.one("work last")["pid"])  # exec keeps the process
        self.assertEqual(main["exit_code"], 0)
        self.assertEqual(len({row["pid"] for row in trace.ranges()}), 4)
        self.assertEqual(self.summary["annotated_processes"], 4)

    @needs("nvtx")
    def test_program_with_very_many_threads(self):
        trace = self.python("""
import nvtx, threading
def work(i):
    for _ in range(10):
        with nvtx.annotate("thread"): pass
for _ in range(4):
    threads = [threading.Thread(target=work, args=(i,)) for i in range(75)]
    for t in threads: t.start()
    for t in threads: t.join()
""", flags=["--ring-kib", "64"])
        self.assertEqual(trace.names().count("thread"), 3000)
        self.assertEqual(self.summary["dropped"], 0)

    @needs("nvtx")
    def test_killed_program_keeps_what_it_said(self):
        trace = self.python("""
import nvtx, os, signal
for i in range(1000):
    with nvtx.annotate("done"): pass
nvtx.push_range("open")
os.kill(os.getpid(), signal.SIGKILL)
""", code=137)
        self.assertEqual(trace.names().count("done"), 1000)
        self.assertEqual(trace.one("open")["open"], 1)
        self.assertIn("SIGKILL", self.done.stderr)
        self.assertEqual(trace.processes()[0][1]["killed_by_signal"], 9)

    @needs("nvtx")
    def test_what_is_lost_is_shown(self):
        program = """
import nvtx
domain = nvtx.get_domain("fast")
attributes = domain.get_event_attributes(message="r")
for i in range(100000):
    domain.push_range(attributes); domain.pop_range()
"""
        trace = self.python(program, flags=["--ring-kib", "16"])
        kept = trace.names().count("r")
        self.assertEqual(self.summary["ranges"], kept)
        if kept < 100000:
            self.assertGreater(self.summary["dropped"], 0)
        trace = self.python(program, flags=["--ring-kib", "16", "--block"])
        self.assertEqual((trace.names().count("r"), self.summary["dropped"]), (100000, 0))

    @needs("nvtx")
    def test_program_that_closes_its_files(self):
        out = self.folder / "own.txt"
        program = """
import nvtx, os, sys
with nvtx.annotate("before"): pass
os.closerange(3, int(sys.argv[2]))
files = [open(sys.argv[1], "w") for i in range(10)]
for i in range(2000):
    with nvtx.annotate("after"): pass
for f in files: f.close()
"""
        for last, name in (("256", "after"), ("20000", "(unknown name)")):
            with self.subTest(last):
                names = self.python(program, out, last).names()
                self.assertEqual(out.read_bytes(), b"")  # nothing of ours in the program's files
                self.assertEqual((names.count("before"), names.count(name)), (1, 2000))
        self.assertIn("name without definition", self.summary["faults"])

    def test_program_that_records_itself(self):
        if not (BIN / "strobe_test_own_recording").exists():
            self.skipTest("NVTX's headers were absent from the build")
        trace = self.record(BIN / "strobe_test_own_recording", self.folder / "own")
        self.assertEqual([trace.names().count(name) for name in ("nvtx outer", "nvtx inner", "own")], [1, 100, 0])
        own = self.folder / "own.sqlite"
        done = strobe("recover", self.folder / "own", "-o", own)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(Trace(own).names(), ["own"] * 100)


class Itt(RecordCase):
    def test_every_kind_of_call(self):
        trace = self.record(BIN / "strobe_test_itt_calls")
        self.assertEqual(trace.losses(), {})
        ranges = {row["name"]: row for row in trace.ranges("lib") if row["name"] != "frame"}
        self.assertEqual(sorted(ranges), ["after pause", "first", "inner", "malloc", "outer", "region", "second"])
        self.assertTrue(ranges["outer"]["start"] <= ranges["inner"]["start"] <= ranges["inner"]["end"]
                        <= ranges["outer"]["end"])
        self.assertEqual(trace.arguments("outer"), {"shape": "[1, -2]", "loss": 0.25, "label": "text",
                                                    "most": "18446744073709551615"})
        self.assertEqual(trace.arguments("inner"), {"metadata": "3 of many"})
        self.assertEqual(trace.arguments("first"), {"items": 9})
        self.assertLess(ranges["second"]["start"], ranges["first"]["end"])
        self.assertLess(ranges["first"]["end"], ranges["second"]["end"])
        frames = [row for row in trace.ranges("lib") if row["name"] == "frame"]
        self.assertEqual(len(frames), 3)
        self.assertEqual(min(row["start"] for row in frames), frames[0]["start"])
        submitted = [row for row in frames if "number" not in trace.arguments("frame", row["id"])]
        self.assertEqual([row["end"] - row["start"] for row in submitted], [2000000])
        self.assertEqual([row["name"] for row in trace.ranges("") if row["isAsync"]], ["lasting"])
        marks = [mark["name"] for mark in trace.marks()]
        self.assertEqual(marks, ["marker", "instant", "lasting", "old mark", "collection paused", "collection resumed"])
        self.assertEqual(trace.mark_arguments("old mark"), {"parameter": "why"})
        self.assertEqual(trace.counter("lib/plain"), [1, 11, 10, 6])
        for name, value in {"u64": 64, "s64": -64, "u32": 4000000000, "s32": -32, "u16": 60000, "s16": -16, "float": 0.5,
                            "double": 2.5, "early": -32, "third": -32}.items():
            self.assertEqual(trace.counter("lib/" + name), [value], name)
        self.assertEqual(trace.counter("lib/named"), [1, 6, 5])
        lanes = {row[0] for row in trace.rows("SELECT s.value FROM STROBE_LANE l JOIN StringIds s ON s.id = l.nameId")}
        self.assertIn("itt thread", lanes)

    @needs("ittapi")
    def test_python_package_of_intel(self):
        trace = self.python("""
import ittapi
with ittapi.task("plain", domain="py"): pass
@ittapi.task(domain="py")
def named(): pass
for i in range(10): named()
ittapi.pause()
with ittapi.task("hidden", domain="py"): pass
ittapi.resume()
first = ittapi.task("one", domain="py", overlapped=True); second = ittapi.task("two", domain="py", overlapped=True)
first.begin(); second.begin(); first.end(); second.end()
""")
        names = trace.names("py")
        self.assertEqual([names.count(name) for name in ("plain", "one", "two", "hidden")], [1, 1, 1, 0])
        # The package begins one more when it decorates, and never ends it.
        self.assertEqual(sorted(row["open"] for row in trace.ranges("py") if "named" in row["name"]), [0] * 10 + [1])
        self.assertEqual((trace.one("one")["isAsync"], trace.one("one")["open"]), (1, 0))

    @needs("torch")
    def test_torch(self):
        trace = self.python("""
import torch
model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU())
x = torch.zeros(1, 3, 16, 16)
model(x)
with torch.autograd.profiler.emit_itt():
    torch.profiler.itt.range_push("iteration")
    for i in range(5): model(x)
    torch.profiler.itt.mark("between")
    torch.profiler.itt.range_pop()
model(x)
""")
        names = trace.names("PyTorch")
        self.assertEqual((names.count("aten::conv2d"), names.count("aten::relu"), names.count("iteration")), (5, 5, 1))
        outer = trace.one("iteration")
        for row in trace.ranges("PyTorch"):
            self.assertTrue(outer["start"] <= row["start"] and row["end"] <= outer["end"], row["name"])

    @needs("openvino")
    def test_openvino(self):
        trace = self.python("""
import numpy as np, openvino as ov
x = ov.opset13.parameter([1, 8], np.float32) if hasattr(ov, "opset13") else None
import openvino.opset13 as ops
x = ops.parameter([1, 8], np.float32)
model = ov.Model([ops.relu(ops.matmul(x, np.ones((8, 4), np.float32), False, False))], [x])
request = ov.Core().compile_model(model, "CPU").create_infer_request()
for i in range(7): request.infer({0: np.ones((1, 8), np.float32)})
""")
        self.assertGreater(len(trace.ranges()), 0)
        self.assertTrue(any(row["domain"] for row in trace.ranges()), "no range has a domain")


class OperatingSystem(RecordCase):
    def test_cpu_time_of_threads_and_memory(self):
        trace = self.python("""
import threading, time
def spin():
    end = time.thread_time() + 0.3
    while time.thread_time() < end: pass
thread = threading.Thread(target=spin); thread.start(); thread.join()
block = bytearray(64 << 20)
for i in range(0, len(block), 4096): block[i] = 1
time.sleep(0.1)
""")
        self.assertEqual(self.summary["ranges"], 0)
        rows = trace.rows("SELECT l.tid, l.pid, MAX(c.value) AS ms FROM STROBE_COUNTER c JOIN StringIds s ON s.id = c.nameId "
                          "JOIN STROBE_COUNTER_LANE cl ON cl.counterId = c.rowid - 1 JOIN STROBE_LANE l ON l.id = cl.laneId "
                          "WHERE s.value = 'os.cpu_ms' GROUP BY l.tid") if self.has(trace, "STROBE_COUNTER_LANE") else []
        if rows:
            self.assertGreater(max(row["ms"] for row in rows if row["tid"] != row["pid"]), 200)
        self.assertGreater(max(trace.counter("os.cpu_ms")), 200)
        self.assertGreater(max(trace.counter("os.rss_mib")), 64)
        self.assertGreater(max(trace.counter("os.minor_faults")), 10000)
        self.assertTrue(trace.counter("os.voluntary_switches"))
        self.assertTrue(trace.counter("os.runqueue_wait_ms"))
        row, process = trace.processes()[0]
        self.assertEqual((process["exit_code"], row["open"]), (0, 0))
        self.assertIn("program.py", process["command"])
        self.assertGreater(process["cpu_ms"], 300)
        self.assertGreater(process["peak_rss_mib"], 64)
        titles = [row[0] for row in trace.rows("SELECT title FROM STROBE_TABLE")]
        self.assertEqual(titles, ["Processes", "Threads"])
        self.assertLess(float(trace.fact("record.sampling_cores")), 0.2)

    def has(self, trace, table):
        return bool(trace.rows("SELECT 1 FROM sqlite_master WHERE name = ?", table))

    def test_program_with_nothing_to_say(self):
        trace = self.record("true")
        self.assertEqual((self.summary["processes"], self.summary["ranges"]), (1, 0))
        self.assertEqual(trace.processes()[0][0]["name"], "process true")

    def test_collectors_can_be_left_out(self):
        trace = self.record("true", flags=["--collect", "nvtx"])
        self.assertEqual((trace.counter("os.rss_mib"), trace.processes()), ([], []))
        self.assertEqual(trace.fact("record.collect"), "nvtx")

    def test_orphans_are_followed(self):
        trace = self.record("sh", "-c", "(sleep 0.3; exit 3) & exit 4", code=4)
        ends = [process.get("exit_code") for row, process in trace.processes()]
        self.assertIn(4, ends)
        self.assertIn(3, ends)
        self.assertGreater(self.summary["seconds"], 0.3)

    def test_orphans_may_be_left(self):
        began = time.monotonic()
        self.record("sh", "-c", "sleep 30 >/dev/null 2>&1 & echo $!", flags=["--wait", "program"])
        self.assertLess(time.monotonic() - began, 20)
        self.assertEqual(self.summary["left_running"], 1)
        os.kill(int(self.done.stdout), signal.SIGKILL)


class Fate(RecordCase):
    """What happens to the program, and to the recording."""

    def test_program_that_is_not_there(self):
        done = strobe("record", "-o", self.trace, "--", "no-such-program-here")
        self.assertEqual((done.returncode, done.stdout), (127, ""))
        self.assertEqual(done.stderr, "strobe: no-such-program-here: no such program\n")
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_file_that_is_no_program(self):
        path = self.folder / "text"
        path.write_text("hello")
        done = strobe("record", "-o", self.trace, "--", path)
        self.assertEqual(done.returncode, 127)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertFalse(self.trace.exists())

    def test_wrong_words(self):
        for flags, words in ((["--collect", "gups"], ["gups", "gpu"]), (["--wait", "never"], ["never"]),
                             (["--period-ms", "0"], ["--period-ms"]), (["--format", "csv"], ["csv"])):
            self.refused(strobe("record", *flags, "-o", self.trace, "--", "true"), *words)
        self.refused(strobe("record", "-o", self.folder / "missing" / "t.sqlite" / "x", "--folder", "/proc/none", "--", "true"),
                     "/proc/none")
        left = self.folder / "t.sqlite.spool"
        left.mkdir()
        (left / "1-2.spool").write_text("")
        self.refused(strobe("record", "-o", self.trace, "--", "true"), "recover")

    def test_input_output_and_arguments_pass_through(self):
        script = 'cat; printf "%s|" "$@"; echo problem >&2; exit 6'
        done = strobe("record", "-o", self.trace, "--quiet", "--", "sh", "-c", script, "run", "-o", "--", "record", "--help",
                      input="a\0b\n")
        self.assertEqual((done.returncode, done.stderr), (6, "problem\n"))
        self.assertEqual(done.stdout, "a\0b\n-o|--|record|--help|")

    def test_closed_output_is_the_programs_own_affair(self):
        done = subprocess.run(f'"{STROBE}" record --quiet -o "{self.trace}" -- yes | head -1', shell=True,
                              capture_output=True, text=True, timeout=60)
        self.assertEqual(done.stdout, "y\n")
        self.assertIn("SIGPIPE", done.stderr)
        self.assertTrue(self.trace.exists())

    def test_folder_is_kept_on_demand(self):
        kept = self.folder / "kept"
        self.record("true", flags=["--folder", kept])
        self.assertTrue(list(kept.glob("*.spool")))

    def started(self, *command):
        process = subprocess.Popen([STROBE, "record", "-o", str(self.trace), "--", *map(str, command)],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual(process.stdout.readline(), "ready\n")
        return process

    def test_interrupt_goes_to_the_program_and_the_trace_is_written(self):
        process = self.started("sh", "-c", 'trap "echo stopping; exit 9" INT; echo ready; while :; do sleep 0.05; done')
        process.send_signal(signal.SIGINT)
        out, error = process.communicate(timeout=60)
        self.assertEqual((out, process.returncode), ("stopping\n", 9), error)
        self.assertEqual(Trace(self.trace).processes()[0][1]["exit_code"], 9)

    def test_second_interrupt_kills(self):
        process = self.started("sh", "-c", 'trap "" INT TERM; echo ready; while :; do sleep 0.05; done')
        process.send_signal(signal.SIGINT)
        time.sleep(0.3)
        self.assertIsNone(process.poll())
        process.send_signal(signal.SIGINT)
        out, error = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 137, error)
        self.assertEqual(Trace(self.trace).processes()[0][1]["killed_by_signal"], 9)

    def test_interrupt_of_a_terminal_comes_once(self):
        count = self.folder / "count"
        script = f'trap "echo x >> {count}" INT; echo ready; n=0; while [ $n -lt 20 ]; do sleep 0.05; n=$((n+1)); done'
        pid, terminal = pty.fork()
        if pid == 0:
            os.execv(STROBE, [STROBE, "record", "--quiet", "-o", str(self.trace), "--", "sh", "-c", script])
        text = b""
        while b"ready" not in text:
            text += os.read(terminal, 1000)
        os.write(terminal, b"\x03")
        _, status = os.waitpid(pid, 0)
        os.close(terminal)
        self.assertEqual(os.waitstatus_to_exitcode(status), 0)
        self.assertEqual(count.read_text(), "x\n")

    def test_killed_recorder_leaves_what_can_be_recovered(self):
        process = self.started(PYTHON, "-u", "-c", "print('ready'); import time; time.sleep(60)")
        child = int(pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()[0])
        process.kill()
        os.kill(child, signal.SIGKILL)
        process.communicate(timeout=60)
        done = strobe("recover", str(self.trace) + ".spool", "-o", self.trace)
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main()
