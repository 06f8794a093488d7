"""`strobe run --config`: several runs at the same time."""
import json
import os
import random
import re
import signal
import sqlite3
import subprocess
import unittest

from support import STROBE, Case, need, strobe, write_tiny_network


def processes_named(text):
    """Ids of processes whose command line has this text."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                if text.encode() in file.read():
                    found.append(int(pid))
        except OSError:
            pass
    return found


class Workers(Case):
    def setUp(self):
        super().setUp()
        self.cfg, self.weights = write_tiny_network(self.folder)
        self.out = self.folder / "out"
        self.defaults = (f"defaults: {{model: {self.cfg}, weights: {self.weights}, engine: {self.engine()}, "
                         "limit-seconds: 0, profile_runs: 0}\n")

    def config(self, text):
        path = self.folder / "config.yaml"
        path.write_text(text)
        return path

    def run_config(self, text, *flags, **keywords):
        return strobe("run", "--config", self.config(text), "-o", self.out, *flags, **keywords)

    def start(self, text, *flags):
        """In a session of its own, so that a signal to its group reaches what Ctrl-C would reach."""
        process = subprocess.Popen([STROBE, "run", "--config", self.config(text), "-o", self.out, *flags], text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
        self.addCleanup(process.kill)
        return process

    def busy(self, name):
        """A worker that is busy for as long as the test needs it."""
        return f"  - {{name: {name}, input: '{self.endless()}', engine: {self.engine()}}}\n"

    def is_running(self, name):
        return self.is_writing(self.out / name)

    def test_two_workers_and_their_common_trace(self):
        first_core = min(os.sched_getaffinity(0))
        done = self.run_config(self.defaults + f"""
workers:
  - name: cam0
    input: {self.video(40, name="a.mp4")}
    core-bind: "{first_core}"
    env: {{OMP_NUM_THREADS: 1}}
  - input: {self.video(25, name="b.mp4")}
    batch: 4
    log: {self.folder}/b.log
""", "--format", "json")
        self.assertEqual(done.returncode, 0, done.stderr)
        result = json.loads(done.stdout)
        self.assertEqual([(w["name"], w["cores"], w["end"], w["runs"][0]["frames"]) for w in result["workers"]],
                         [("cam0", str(first_core), "exit 0", 40), ("worker_1", "all", "exit 0", 25)])
        self.assertEqual(result["failed"], 0)
        self.assertTrue((self.folder / "b.log").exists())
        self.assertEqual(json.loads((self.out / "cam0" / "run.json").read_text())["runs"], result["workers"][0]["runs"])

        merged = sqlite3.connect(self.out / "trace.sqlite")
        facts = dict(merged.execute("SELECT name, value FROM STROBE_FACT"))
        self.assertEqual(facts.get("worker.cam0.cores"), "1")
        self.assertEqual(facts.get("worker.worker_1.pipeline.batch"), "4")
        self.assertNotIn("pipeline.stages", facts)
        self.assertIn("cpu.arch", facts)

        stats = strobe("stats", self.out / "trace.sqlite", "--format", "json")
        self.assertEqual(stats.returncode, 0, stats.stderr)
        counts = {row["name"]: row["count"] for row in json.loads(stats.stdout)["rows"]}
        self.assertEqual((counts["prep"], counts["write"], counts["run"]), (65, 65, 2))
        # As far apart as the processes' own clocks say, and at the same time.
        together = self.run_times(self.out / "trace.sqlite")
        alone = [self.run_times(self.out / name / "trace.sqlite")[0] for name in ("cam0", "worker_1")]
        self.assertEqual(together, sorted(alone))
        processes = merged.execute("SELECT s.value FROM STROBE_PROCESS p JOIN StringIds s ON s.id = p.nameId")
        self.assertEqual({name for name, in processes}, {"cam0", "worker_1"})

        report = strobe("report", self.out / "trace.sqlite", "-o", self.folder / "report.html")
        self.assertEqual(report.returncode, 0, report.stderr)

    @staticmethod
    def run_times(trace):
        """Start and end of the measured part of each process, in nanoseconds of the wall clock."""
        database = sqlite3.connect(trace)
        zero, = database.execute("SELECT value FROM STROBE_META WHERE name = 'utc_start_ns'").fetchone()
        return [(zero + start, zero + end) for start, end in database.execute(
            "SELECT r.start, r.end FROM STROBE_RANGE r JOIN StringIds s ON s.id = r.nameId WHERE s.value = 'run' ORDER BY 1")]

    def test_environment_and_cores_reach_the_worker(self):
        core = max(os.sched_getaffinity(0))
        process = self.start(self.defaults + "workers:\n" + self.busy("busy").replace(
            "}\n", f", core_bind: {core}, env: {{STROBE_TEST_WORD: a b}}}}\n"))
        self.wait_until(lambda: self.is_running("busy"))
        pids = processes_named(f"--output={self.out}/busy")
        self.assertEqual(len(pids), 1)
        self.assertEqual(os.sched_getaffinity(pids[0]), {core})
        with open(f"/proc/{pids[0]}/environ", "rb") as file:
            self.assertIn(b"STROBE_TEST_WORD=a b", file.read().split(b"\0"))
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)

    def test_one_fails_and_the_other_finishes(self):
        video = self.video(30)
        done = self.run_config(self.defaults + f"""
workers:
  - {{name: bad, input: {self.folder}/none.mp4}}
  - {{name: good, input: {video}}}
""")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stdout, r"(?m)^good +\d+ +all +30 +[\d.]+ +[\d.]+ +exit 0$")
        self.assertRegex(done.stdout, r"(?m)^bad .*exit 2$")
        self.assertRegex(done.stdout, r"bad: strobe: .*none\.mp4")
        self.assertIn("none.mp4", (self.out / "bad" / "log.txt").read_text())
        self.assertTrue((self.out / "trace.sqlite").exists())

    def test_a_killed_worker(self):
        process = self.start(self.defaults + "workers:\n" + self.busy("victim") +
                             f"  - {{name: good, input: {self.video(20)}}}\n", "--format", "json")
        self.wait_until(lambda: self.is_running("victim"))
        os.kill(processes_named(f"--output={self.out}/victim")[0], signal.SIGKILL)
        stdout, stderr = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 1, stderr)
        victim, good = json.loads(stdout)["workers"]
        self.assertEqual((victim["signal"], victim["end"], victim["succeeded"]), (9, "signal 9 (Killed)", False))
        self.assertEqual((good["exit_code"], good["runs"][0]["frames"]), (0, 20))

    def test_interrupt_ends_all_cleanly(self):
        process = self.start(self.defaults + "workers:\n" + self.busy("one") + self.busy("two"), "--format", "json")
        self.wait_until(lambda: self.is_running("one") and self.is_running("two"))
        os.killpg(process.pid, signal.SIGINT)
        stdout, stderr = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 130, stderr)
        for worker in json.loads(stdout)["workers"]:
            self.assertEqual(worker["exit_code"], 130)
            self.assertTrue((self.out / worker["name"] / "trace.sqlite").exists())
            self.assertFalse((self.out / worker["name"] / "spool").exists())
        self.assertTrue((self.out / "trace.sqlite").exists())
        self.assertEqual(processes_named(f"--output={self.out}/"), [])

    def test_workers_do_not_outlive_a_killed_launcher(self):
        process = self.start(self.defaults + "workers:\n" + self.busy("orphan"))
        self.wait_until(lambda: self.is_running("orphan"))
        process.kill()
        process.wait()
        self.wait_until(lambda: not processes_named(f"--output={self.out}/orphan"))

    def test_copies(self):
        done = self.run_config(self.defaults + f"workers: [{{name: cam, count: 2, input: {self.video(5)}, "
                               f"log: {self.folder}/cam.log, no-record: true}}]", "--format", "json")
        self.assertEqual(done.returncode, 0, done.stderr)
        workers = json.loads(done.stdout)["workers"]
        self.assertEqual([w["name"] for w in workers], ["cam_0", "cam_1"])
        self.assertEqual([w["log"] for w in workers], [f"{self.folder}/cam_0.log", f"{self.folder}/cam_1.log"])
        self.assertFalse((self.out / "trace.sqlite").exists())

    def test_the_file_names_the_output(self):
        text = f"output: {self.folder}/there\n" + self.defaults + f"workers: [{{input: {self.video(3)}}}]\n"
        done = strobe("run", "--config", self.config(text))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue((self.folder / "there" / "worker_0" / "trace.sqlite").exists())

    def test_real_videos(self):
        video = need("video/vtest.avi")
        text = f"""
defaults: {{model: {need("models/yolo-fastest-1.1.cfg")}, weights: {need("models/yolo-fastest-1.1.weights")},
           engine: {self.engine()}, frames: 40, limit-seconds: 0, profile-runs: 0}}
workers:
  - {{name: street, input: {video}}}
  - {{name: low, input: {need("video/test-lowres.mp4")}}}
"""
        done = self.run_config(text, "--format", "json")
        self.assertEqual(done.returncode, 0, done.stderr)
        for worker in json.loads(done.stdout)["workers"]:
            self.assertEqual(worker["runs"][0]["frames"], 40)
            self.assertGreater(worker["runs"][0]["end_to_end_fps"], 0)

    def test_bad_files(self):
        good = "{input: v.mp4}"
        for text, words in (
                ("", ["keys and values"]), ("[]", ["keys and values"]), ("workers: []", [":1:10:", "at least one worker"]),
                (f"workers: [{good}]\ndefauts: {{}}", [":2:1:", "no key 'defauts'", "did you mean defaults?"]),
                ("workers:\n  - {input: v, batc: 2}", [":2:16:", "no key 'batc'", "did you mean batch?"]),
                ("workers:\n  - {input: v, batch: 2, batch: 3}", [":2:26:", "'batch' stands here twice"]),
                ("workers:\n  - {input: v, limit-seconds: 2, limit_seconds: 3}", [":2:34:", "another spelling"]),
                ("workers: [{input: v, batch: {a: 1}}]", ["batch: expected one value"]),
                ("workers: [{input: v, batch: [1, 2]}]", ["batch: expected one value, not a list"]),
                ("workers: [{input: v, batch: }]", ["batch: expected one value"]),
                ("workers: [{input: v, no-video: maybe}]", ["no-video: expected true or false"]),
                ("workers: [{input: v, output: x}]", ["'output' stands at the top"]),
                ("workers: [{batch: 3}]", ["no input"]),
                ("workers: [{input: v, name: ../x}]", ["name '../x'"]), ("workers: [{input: v, name: trace.sqlite}]", ["name"]),
                ("workers: [{input: v, name: a}, {input: v, name: a}]", ["a second worker is named 'a'"]),
                ("workers: [{input: v, count: 0}]", ["count: expected a whole number"]),
                ("workers: [{input: v, env: [a]}]", ["env: expected keys and values"]),
                ("workers: [{input: v, env: {a=b: c}}]", ["no name of a variable"]),
                ("workers: [{input: v", [":"]), ("workers: *none", [":1:10:"]), ("a: &x [*x]", ["no key 'a'"]),
                ("\t- x", [":1:"]), ("[" * 5000, [":"]), ("{a: " * 5000, [":"])):
            with self.subTest(text[:80]):
                done = self.run_config(text)
                self.refused(done, *words)
                self.assertIn("config.yaml:", done.stderr)
                self.assertFalse(self.out.exists())
        self.refused(strobe("run", "--config", self.folder / "none.yaml"), "none.yaml")
        self.refused(strobe("run", "--config", self.config(f"workers: [{good}]"), "--batch", "2"), "--batch=2", "defaults")
        self.refused(strobe("run"), "--input is required")

    def test_damaged_files_are_refused_or_run(self):
        """Random damage to a good file: one line and exit code 2, or workers that end by themselves."""
        good = "output: out\ndefaults: {batch: 2, env: {A: 1}}\nworkers:\n  - name: a\n    input: none.mp4\n    count: 2\n"
        generator = random.Random(3)
        for _ in range(60):
            text = list(good)
            for _ in range(generator.choice([1, 2, 5])):
                at = generator.randrange(len(text))
                text[at:at + generator.choice([0, 1, 3])] = generator.choice(
                    ["", "{", "}", "[", "]", ":", "- ", "\n", "\t", "&a ", "*a", "!!", "'", '"', "|", ">", "%", "\0", "ü", "<<: "])
            done = self.run_config("".join(text), "--format", "json", cwd=self.folder)
            self.assertIn(done.returncode, (1, 2), (text, done.stderr))
            if done.returncode == 2:
                self.assertEqual(len(done.stderr.strip().split("\n")), 1, done.stderr)
                self.assertTrue(re.match(r"strobe: .*config\.yaml", done.stderr), (text, done.stderr))


if __name__ == "__main__":
    unittest.main()
