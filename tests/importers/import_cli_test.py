"""strobe import from outside: the summary, the output's name, errors, what it leaves."""
import json
import pathlib
import sqlite3
import tempfile
import unittest

from support import need, strobe

EVENTS = [{"ph": "X", "cat": "cpu_op", "name": "op", "pid": 1, "tid": 2, "ts": 10.001, "dur": 5},
          {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 11, "dur": 2,
           "args": {"device": 0, "stream": 7, "grid": [1, 1, 1]}}]


class Import(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def test_writes_beside_the_current_folder_and_says_what_it_found(self):
        (self.folder / "w.pt.trace.json").write_text(json.dumps({"traceEvents": EVENTS}))
        done = strobe("import", "w.pt.trace.json", cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("w.pt.trace.json (kineto, 0.000 s of events) -> w.pt.trace.sqlite", done.stdout)
        self.assertRegex(done.stdout, r"kernels +1 +0\.002")
        with sqlite3.connect(self.folder / "w.pt.trace.sqlite") as store:
            facts = dict(store.execute("SELECT name, value FROM STROBE_FACT"))
        self.assertEqual(facts["import.source"], "w.pt.trace.json")

    def test_quiet_and_losses(self):
        (self.folder / "cut.json").write_text(json.dumps({"traceEvents": EVENTS})[:-30])
        done = strobe("import", self.folder / "cut.json", "-o", self.folder / "t.sqlite")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("the JSON breaks off at byte", done.stdout)
        done = strobe("import", self.folder / "cut.json", "-o", self.folder / "t.sqlite", "--quiet")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    def test_bad_input_is_one_line_and_code_2(self):
        (self.folder / "x.txt").write_text("hello\n")
        for arguments in (["import", self.folder / "x.txt"], ["import", self.folder / "absent"],
                          ["import", self.folder / "x.txt", "--format", "perf"],
                          ["import", self.folder / "x.txt", "-o", self.folder / "x.txt"]):
            done = strobe(*arguments, cwd=self.folder)
            self.assertEqual(done.returncode, 2)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertEqual([path.name for path in self.folder.iterdir()], ["x.txt"])

    def test_a_real_file(self):
        done = strobe("import", need("traces/kineto/cp_simple_add.json.gz"), "-o", self.folder / "t.sqlite")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"kernels +79 ")


if __name__ == "__main__":
    unittest.main()
