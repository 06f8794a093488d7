"""Forks, crashes, ends of the interpreter, sub-interpreters, and recording from outside."""
import os
import pathlib
import signal
import subprocess
import sys

import pytest

import strobe
from support import by_name, need_program, python


def test_forked_processes_are_in_the_trace(tmp_path):
    python("""
import os, sys, strobe
from multiprocessing import get_context
def work(i):
    with strobe.range("child", number=i):
        pass
strobe.start(sys.argv[1])
with strobe.range("parent"):
    running = [get_context("fork").Process(target=work, args=(i,)) for i in range(3)]
    for one in running: one.start()
    for one in running: one.join()
    pid = os.fork()
    if pid == 0:
        try:
            strobe.stop()
        except strobe.Error as error:
            strobe.mark(str(error))
        sys.exit(0)
    os.waitpid(pid, 0)
strobe.stop()
""", tmp_path / "T.sqlite")
    trace = strobe.open(tmp_path / "T.sqlite")
    rows = by_name(trace)
    assert len(rows["child"]) == 3 and len(rows["parent"]) == 1 and trace.faults == {}
    assert len(trace.processes()) == 5
    assert "this recording was begun by process" in trace.marks().name[0]


def test_a_child_may_record_for_itself(tmp_path):
    python("""
import os, sys, strobe
strobe.start(sys.argv[1])
with strobe.range("parent"):
    pid = os.fork()
    if pid == 0:
        with strobe.record(sys.argv[2]):
            with strobe.range("own"):
                pass
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
strobe.stop()
""", tmp_path / "A.sqlite", tmp_path / "B.sqlite")
    assert list(by_name(strobe.open(tmp_path / "A.sqlite"))) == ["parent"]
    assert list(by_name(strobe.open(tmp_path / "B.sqlite"))) == ["own"]


def test_end_of_the_interpreter_with_open_ranges(tmp_path):
    python("""
import sys, threading, strobe
strobe.start(sys.argv[1])
strobe.push("pushed")
entered = strobe.range("entered")
entered.__enter__()
def forever():
    while True:
        with strobe.range("daemon"):
            pass
threading.Thread(target=forever, daemon=True).start()
sys.exit(0)
""", tmp_path / "T.sqlite")
    rows = by_name(strobe.open(tmp_path / "T.sqlite"))
    assert rows["pushed"][0]["open"] and rows["entered"][0]["open"]


def test_failure_at_the_end_is_one_line(tmp_path):
    (tmp_path / "gone").mkdir()
    done = python("""
import shutil, sys, strobe
strobe.start(sys.argv[1])
shutil.rmtree(sys.argv[2])
""", tmp_path / "gone" / "T.sqlite", tmp_path / "gone")
    assert done.stderr.startswith("strobe: ") and done.stderr.count("\n") == 1


def test_killed_program_leaves_what_it_recorded(tmp_path):
    done = python("""
import os, signal, sys, strobe
strobe.start(sys.argv[1])
for i in range(1000):
    with strobe.range("pass"):
        pass
os.kill(os.getpid(), signal.SIGKILL)
""", tmp_path / "T.sqlite", check=False)
    assert done.returncode == -signal.SIGKILL
    assert len(strobe.open(tmp_path / "T.sqlite.spool").ranges()) == 1000


def test_files_of_a_program_that_closes_all_files_stay_its_own(tmp_path):
    python("""
import os, sys, strobe
strobe.start(sys.argv[1])
for i in range(1000):
    with strobe.range("before"): pass
os.closerange(3, 200)
own = [os.open(f"{sys.argv[2]}/{i}", os.O_RDWR | os.O_CREAT) for i in range(20)]
for i in range(20_000):
    with strobe.range("after"): pass
strobe.stop()
assert all(os.fstat(file).st_size == 0 for file in own)
""", tmp_path / "T.sqlite", tmp_path)
    rows = by_name(strobe.open(tmp_path / "T.sqlite"))
    assert (len(rows["before"]), len(rows["after"])) == (1000, 20_000)


def test_sub_interpreters_are_refused():
    pytest.importorskip("_xxsubinterpreters")
    done = python("""
import _xxsubinterpreters as interpreters
try:
    interpreters.run_string(interpreters.create(), "import strobe")
except interpreters.RunFailedError as error:
    print(error)
import strobe
with strobe.range("main"): pass
""")
    assert "main interpreter only" in done.stdout


def record(folder, code, *arguments):
    strobe_program = need_program()
    out = folder / "outer.sqlite"
    python(code, *arguments, under=(strobe_program, "record", "-o", str(out), "--quiet", "--"))
    return strobe.open(out)


def test_strobe_record_gets_the_ranges_once(tmp_path):
    pytest.importorskip("nvtx")
    trace = record(tmp_path, """
import nvtx, strobe
with strobe.range("ours"):
    with nvtx.annotate("theirs"):
        with strobe.range("inside"):
            pass
""")
    rows = by_name(trace)
    assert [len(rows[name]) for name in ("ours", "theirs", "inside")] == [1, 1, 1]
    # Two recorders, one lane: what nests in time nests in the trace.
    assert rows["theirs"][0]["parent"] == rows["ours"][0]["row"]
    assert rows["inside"][0]["parent"] == rows["theirs"][0]["row"]
    assert trace.faults == {}


def test_spawned_processes_join_strobe_record(tmp_path):
    (tmp_path / "program.py").write_text("""
import strobe
from multiprocessing import get_context
def work(i):
    with strobe.range("child"):
        pass
if __name__ == "__main__":
    with strobe.range("parent"), get_context("spawn").Pool(2) as pool:
        pool.map(work, range(4))
        pool.close()
        pool.join()
""")
    done = subprocess.run([need_program(), "record", "--quiet", "-o", str(tmp_path / "T.sqlite"), "--", sys.executable,
                           str(tmp_path / "program.py")], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    rows = by_name(strobe.open(tmp_path / "T.sqlite"))
    assert len(rows["child"]) == 4 and len(rows["parent"]) == 1


def test_a_program_that_records_itself_is_in_both_traces_once(tmp_path):
    trace = record(tmp_path, """
import sys, strobe
with strobe.range("before"): pass
with strobe.record(sys.argv[1]):
    with strobe.range("within"): pass
with strobe.range("after"): pass
""", tmp_path / "inner.sqlite")
    assert {name: len(rows) for name, rows in by_name(trace).items() if not name.startswith("process")} == \
        {"before": 1, "within": 1, "after": 1}
    assert {name: len(rows) for name, rows in by_name(strobe.open(tmp_path / "inner.sqlite")).items()} == {"within": 1}


def test_python_m_strobe(tmp_path):
    def run(path):
        return subprocess.run([sys.executable, "-m", "strobe"], capture_output=True, text=True,
                              env=os.environ | {"PATH": path})
    missing = run(str(tmp_path))
    assert missing.returncode == 2 and "not on the PATH" in missing.stderr
    program = pathlib.Path(need_program())
    assert str(program) in run(str(program.parent)).stdout
