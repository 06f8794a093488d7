"""`strobe bench`: real processes, what can happen to them, and the files beside CV-CUDA's."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import unittest

from support import STROBE, Case, strobe

BIN = pathlib.Path(os.environ.get("STROBE_TEST_BIN", "build/release/bin"))
PYTHON = os.environ.get("STROBE_TEST_PYTHON") or sys.executable
PROGRAM = BIN / "strobe_test_bench_program"

BATCH = {"cpu_time", "gpu_time", "total_items", "cpu_time_per_item", "gpu_time_per_item"}
LEVEL = BATCH | {"cpu_time_minus_warmup", "gpu_time_minus_warmup", "cpu_time_minus_warmup_per_item",
                 "gpu_time_minus_warmup_per_item", "total_items_minus_warmup"}

# What CV-CUDA's own CvCudaPerf leaves: paths without times, and NVTX ranges for the tool that watches.
ORIGINAL = """
import json, os, sys, time, nvtx
out = sys.argv[sys.argv.index("--output_dir") + 1]
assert os.environ["BENCHMARK_PY"] == "1"
data, batches, inside = {}, {}, []
nvtx.push_range("pipeline")
for i in range(4):
    nvtx.push_range(f"batch_{i}")
    nvtx.push_range("decode")
    time.sleep(0.004)
    nvtx.pop_range()
    nvtx.pop_range()
    path = f"demo/pipeline/batch_{i}"
    data[path + "/decode"] = data[path] = [0, 0]
    inside += [path + "/decode", path]
    batches[path] = [i, 2]
nvtx.pop_range()
data["demo/pipeline"] = [0, 0]
json.dump({"data": data, "mean_data": {}, "batch_info": batches, "inside_batch_info": inside,
           "meta": {"obj_name": "demo", "measurement_unit": "milliseconds", "total_batches": {"demo/pipeline": 4},
                    "device": {"id": 0, "name": "CPU"}, "args": {}}}, open(os.path.join(out, "benchmark.json"), "w"))
"""


def has_nvtx():
    return subprocess.run([PYTHON, "-c", "import nvtx"], capture_output=True, check=False).returncode == 0


def alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def descendants(pid):
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
        except (FileNotFoundError, ProcessLookupError):
            continue
        if parent == pid:
            found += [int(entry.name), *descendants(int(entry.name))]
    return found


class BenchCase(Case):
    def bench(self, *words, **keywords):
        return strobe("bench", "-o", self.folder / "out", *words, **keywords)

    def mean(self):
        return json.loads((self.folder / "out/benchmark_mean.json").read_text())

    def process(self, name="proc_0_gpu_0"):
        return json.loads((self.folder / "out" / name / "benchmark.json").read_text())


class Files(BenchCase):
    def test_every_key_of_the_original(self):
        done = self.bench("-np", 2, "-w", 2, "--", PROGRAM, 12)
        self.assertEqual(done.returncode, 0, done.stderr)
        one = self.process()
        self.assertEqual(list(one), ["data", "mean_data", "meta"])
        sample = one["data"]["demo"]["run_sample"]
        pipeline = sample["pipeline"]
        batches = [f"batch_{i}" for i in range(12)]
        self.assertEqual(set(sample), {"pipeline"} | BATCH)
        self.assertEqual(set(pipeline), LEVEL | set(batches))
        self.assertEqual(set(pipeline["batch_3"]), BATCH | {"decode", "infer"})
        self.assertEqual(set(pipeline["batch_3"]["decode"]), {"cpu_time", "gpu_time"})
        self.assertEqual(pipeline["total_items"], 48)
        self.assertEqual(pipeline["total_items_minus_warmup"], 32)
        dropped = sum(pipeline[name]["cpu_time"] for name in (*batches[:2], *batches[-2:]))
        self.assertAlmostEqual(pipeline["cpu_time_minus_warmup"], pipeline["cpu_time"] - dropped, places=3)
        self.assertEqual(set(one["mean_data"]), {"demo/run_sample/pipeline"})
        self.assertEqual(set(one["mean_data"]["demo/run_sample/pipeline"]), BATCH | {"decode", "infer"})
        self.assertLessEqual({"obj_name", "measurement_unit", "total_batches", "device", "args"}, set(one["meta"]))
        self.assertEqual(one["meta"]["total_batches"], {"demo/run_sample/pipeline": 12})

        mean = self.mean()
        self.assertEqual(list(mean), ["mean_all_batches", "mean_data", "meta"])
        other = self.process("proc_1_gpu_0")
        times = [file["data"]["demo"]["run_sample"]["cpu_time"] for file in (one, other)]
        self.assertAlmostEqual(mean["mean_all_batches"]["demo"]["run_sample"]["cpu_time"], sum(times) / 2, delta=0.001)
        self.assertEqual(mean["meta"]["missing"], [])
        self.assertEqual(mean["meta"]["args"]["warmup_batches"], 2)
        self.assertEqual(mean["meta"]["args"]["num_processes"], 2)
        self.assertEqual(mean["meta"]["args"]["args"], ["12"])
        self.assertIn("demo/run_sample/pipeline", done.stdout)

    def test_the_words_of_the_original(self):
        """Options of two letters, the script without "--" or an interpreter, its own arguments untouched."""
        script = self.folder / "sample.py"
        script.write_text("import os, sys\n"
                          "os.execv(sys.argv[1], [sys.argv[1], '3', *sys.argv[2:]])\n")
        done = strobe("bench", "-np", 1, "-ng", 2, "-go", 3, "-ll", "debug", "-o", self.folder / "out", "-w", 0, script,
                      PROGRAM, "-np")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(path.name for path in (self.folder / "out").glob("proc_*")),
                         ["proc_0_gpu_0", "proc_0_gpu_1"])
        self.assertIn("--device_id 4", done.stderr)
        self.assertEqual(self.mean()["mean_all_batches"]["demo"]["run_sample"]["pipeline"]["total_items_minus_warmup"], 12)

    def test_joined_options(self):
        """As the original's parser takes them; those of the script are its own."""
        script = self.folder / "sample.py"
        script.write_text("import os, sys\n"
                          "os.execv(sys.argv[1], [sys.argv[1], '3', *sys.argv[2:]])\n")
        done = strobe("bench", f"-o{self.folder}/out", "-w1", script, PROGRAM, "-w9", "--no-record")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.mean()["meta"]["args"]["warmup_batches"], 1)
        self.assertEqual(self.mean()["meta"]["args"]["args"], [str(PROGRAM), "-w9", "--no-record"])
        done = strobe("bench", f"-o={self.folder}/out", "-w=0", script, PROGRAM, "-ofoo")
        self.assertEqual(done.returncode, 2)
        self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)
        self.assertIn("'-ofoo' among the program's arguments", done.stderr)

    def test_a_warmup_that_leaves_nothing_is_told(self):
        for log_level in ("info", "error"):
            done = self.bench("-w", 1000, "-ll", log_level, "--no-record", "--", PROGRAM, 12)
            self.assertEqual(done.returncode, 0, done.stderr)  # the other figures stand
            line = "demo/run_sample/pipeline: the warm-up of 1000 + 1000 leaves none of 12 batches (proc_0_gpu_0)"
            self.assertEqual(done.stderr.count(line), 1 if log_level == "info" else 0)
            self.assertIn(line, done.stdout)
        self.assertEqual(self.process()["data"]["demo"]["run_sample"]["pipeline"]["total_items_minus_warmup"], 0)
        done = self.bench("-w", 5, "--no-record", "--", PROGRAM, 12)
        self.assertNotIn("leaves none", done.stdout + done.stderr)

    def test_each_process_has_its_timeline_and_log(self):
        done = self.bench("--", PROGRAM, 5)
        self.assertEqual(done.returncode, 0, done.stderr)
        folder = self.folder / "out/proc_0_gpu_0"
        self.assertIn("writing to", (folder / "log.txt").read_text())
        stats = strobe("stats", folder / "trace.sqlite", "--by", "range", "--format", "json")
        self.assertEqual(stats.returncode, 0, stats.stderr)
        counts = {row["name"]: row["count"] for row in json.loads(stats.stdout)["rows"]}
        self.assertEqual(counts.get("infer"), 5, counts)
        self.assertEqual(counts.get("batch_4"), 1)
        self.assertFalse((folder / "trace.sqlite.spool").exists())
        self.bench("--no-record", "--", PROGRAM, 5)
        self.assertFalse((folder / "trace.sqlite").exists())

    @unittest.skipUnless(has_nvtx(), "the Python package nvtx is absent")
    def test_times_of_the_original_class_come_from_the_timeline(self):
        script = self.folder / "original.py"
        script.write_text(ORIGINAL)
        done = self.bench("-w", 1, "--", PYTHON, script)
        self.assertEqual(done.returncode, 0, done.stderr)
        pipeline = self.process()["data"]["demo"]["pipeline"]
        self.assertGreaterEqual(pipeline["batch_2"]["decode"]["cpu_time"], 4)
        self.assertGreaterEqual(pipeline["cpu_time"], 16)
        self.assertEqual(pipeline["total_items_minus_warmup"], 4)
        done = self.bench("--no-record", "--", PYTHON, script)
        self.assertEqual(done.returncode, 1)
        self.assertIn("no timeline", done.stderr)

    def test_json_and_automatic_warmup_and_arrivals(self):
        done = self.bench("-w", "auto", "--arrivals", "constant:400", "--format", "json", "--", PROGRAM, 20)
        self.assertEqual(done.returncode, 0, done.stderr)
        out = json.loads(done.stdout)
        self.assertEqual([row["stage"] for row in out["stages"]["rows"]], ["(batch)", "decode", "infer"])
        self.assertEqual(out["latency"]["rows"][0]["requests"], 20)
        self.assertAlmostEqual(out["latency"]["rows"][0]["offered_per_s"], 400, places=2)
        latency = self.process()["meta"]["strobe"]["latency"]
        self.assertGreaterEqual(latency["mean"], latency["service_mean"])
        self.assertEqual(self.mean()["meta"]["strobe"]["warmup"]["rule"], "MSER-5")

    def test_two_runs_compared(self):
        for name in ("a", "b"):
            done = strobe("bench", "-o", self.folder / name, "--no-record", "--", PROGRAM, 30)
            self.assertEqual(done.returncode, 0, done.stderr)
        a, b = self.folder / "a", self.folder / "b"
        done = strobe("compare", a, b, "--format", "json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([row["stage"] for row in json.loads(done.stdout)["rows"]], ["(batch)", "decode", "infer"])
        # Either is far slower than a hundredth of the other.
        self.assertEqual(strobe("compare", a, b, "--fail-above", 0.01).returncode, 1)
        self.assertEqual(strobe("compare", a, b / "benchmark_mean.json", "--fail-above", 1000).returncode, 0)
        self.refused(strobe("compare", a, b, "--metric", "demo/run_sample/pipeline:infr"), "infr", "infer")


class Failures(BenchCase):
    def test_the_others_finish_and_the_missing_are_named(self):
        for mode, reason in (("--crash", "SIGABRT"), ("--fail", "exit code 5"), ("--silent", "no benchmark.json")):
            with self.subTest(mode):
                done = self.bench("-np", 2, "--", PROGRAM, 6, "--in", "proc_1_gpu_0", mode)
                self.assertEqual(done.returncode, 1, done.stderr)
                mean = self.mean()
                self.assertEqual([one["name"] for one in mean["meta"]["missing"]], ["proc_1_gpu_0"])
                self.assertIn(reason, mean["meta"]["missing"][0]["reason"])
                self.assertEqual(mean["mean_all_batches"], self.process()["data"])
                self.assertIn("proc_1_gpu_0", done.stdout)
                if mode != "--silent":
                    self.assertIn("writing to", done.stderr)

    def test_none_finishes(self):
        done = self.bench("--", PROGRAM, 3)
        self.assertEqual(done.returncode, 0, done.stderr)
        done = self.bench("-np", 2, "--", PROGRAM, 3, "--crash")
        self.assertEqual(done.returncode, 1)
        # What the run before wrote does not pass for this one's.
        self.assertFalse((self.folder / "out/benchmark_mean.json").exists())
        self.assertFalse((self.folder / "out/proc_0_gpu_0/benchmark.json").exists())

    def test_a_process_that_hangs_is_ended(self):
        for mode, record in (("--hang", "--record"), ("--hang", "--no-record"), ("--stubborn", "--record")):
            with self.subTest(mode=mode, record=record):
                done = self.bench("-np", 2, record, "--timeout", 2, "--", PROGRAM, 3, "--in", "proc_0_gpu_0", mode)
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertIn("2 s", self.mean()["meta"]["missing"][0]["reason"])
                self.assertIn("hanging", done.stderr)
                if record == "--record":
                    self.assertTrue((self.folder / "out/proc_0_gpu_0/trace.sqlite").exists())

    def test_an_interruption_ends_all(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            for record in ("--record", "--no-record"):
                with self.subTest(number=number, record=record):
                    running = subprocess.Popen([STROBE, "bench", "-np", "3", record, "-o", self.folder / "out", "--",
                                                PROGRAM, "3", "--hang"], stdout=subprocess.PIPE,
                                               stderr=subprocess.PIPE, text=True)
                    logs = [self.folder / f"out/proc_{i}_gpu_0/log.txt" for i in range(3)]
                    end = time.monotonic() + 30
                    while not all(log.exists() and "hanging" in log.read_text() for log in logs):
                        self.assertLess(time.monotonic(), end, "the programs did not start")
                        time.sleep(0.02)
                    below = descendants(running.pid)
                    self.assertGreaterEqual(len(below), 3)
                    running.send_signal(number)
                    out, err = running.communicate(timeout=60)
                    self.assertEqual(running.returncode, 130, err)
                    self.assertIn("interrupted", err)
                    self.assertEqual(out, "")
                    self.assertEqual([pid for pid in below if alive(pid)], [])
                    self.assertFalse((self.folder / "out/benchmark_mean.json").exists())
                    for log in logs:
                        log.unlink()

    def test_a_second_interruption_kills_what_ignores_the_first(self):
        running = subprocess.Popen([STROBE, "bench", "--no-record", "-o", self.folder / "out", "--", PROGRAM, "3",
                                    "--stubborn"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        log = self.folder / "out/proc_0_gpu_0/log.txt"
        end = time.monotonic() + 30
        while not (log.exists() and "hanging" in log.read_text()):
            self.assertLess(time.monotonic(), end, "the program did not start")
            time.sleep(0.02)
        below = descendants(running.pid)
        running.send_signal(signal.SIGINT)
        time.sleep(0.5)
        self.assertIsNone(running.poll())
        running.send_signal(signal.SIGINT)
        running.communicate(timeout=60)
        self.assertEqual(running.returncode, 130)
        self.assertEqual([pid for pid in below if alive(pid)], [])

    def test_bad_words(self):
        self.refused(self.bench("-np", 0, "--", PROGRAM, 3), "--num_processes 0")
        self.refused(self.bench("-w", "some", "--", PROGRAM, 3), "some", "auto")
        self.refused(self.bench("-w", -1, "--", PROGRAM, 3), "-1")
        self.refused(self.bench("--rules", "old", "--", PROGRAM, 3), "old", "original")
        self.refused(self.bench("-ll", "loud", "--", PROGRAM, 3), "loud")
        self.refused(self.bench("--format", "csv", "--", PROGRAM, 3), "csv")
        self.refused(self.bench("--timeout", -1, "--", PROGRAM, 3), "--timeout -1")
        self.refused(self.bench("--arrivals", "often", "--", PROGRAM, 3), "often", "poisson")
        self.refused(self.bench("--", PROGRAM, 3, "-o", "x"), "'-o'")
        self.refused(self.bench("--", PROGRAM, 3, "--output_dir", "x"), "--output_dir")
        self.refused(self.bench("--", self.folder / "absent.py"), "absent.py", "no such script")
        self.refused(self.bench("--", "no-such-program-anywhere"), "no-such-program-anywhere")
        self.refused(strobe("bench", "-o", "/proc/nowhere", "--", PROGRAM, 3), "/proc/nowhere")


class Ranks(BenchCase):
    def start(self, rank, *words):
        environment = dict(os.environ, OMPI_COMM_WORLD_RANK=str(rank), OMPI_COMM_WORLD_SIZE="3",
                           OMPI_COMM_WORLD_LOCAL_RANK=str(rank), PMIX_NAMESPACE="test-1")
        return subprocess.Popen([STROBE, "bench", "-ng", "2", "-o", self.folder / "out", *words, "--", PROGRAM, "5",
                                 "--in", "proc_2_gpu_0", "--crash"], env=environment, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)

    def test_rank_0_writes_the_mean_of_all(self):
        running = [self.start(rank) for rank in range(3)]
        ended = [(one.communicate(timeout=120), one.returncode) for one in running]
        self.assertEqual([code for _, code in ended], [1, 0, 1], ended)
        self.assertEqual([out for (out, _), _ in ended[1:]], ["", ""])
        processes = self.mean()["meta"]["strobe"]["processes"]
        self.assertEqual([(one["name"], one["finished"]) for one in processes],
                         [("proc_0_gpu_0", True), ("proc_1_gpu_1", True), ("proc_2_gpu_0", False)])

    def test_a_task_that_never_comes_is_missing(self):
        running = self.start(0, "--timeout", "1")
        out, err = running.communicate(timeout=120)
        self.assertEqual(running.returncode, 1, err)
        self.assertEqual([one["process"] for one in self.mean()["meta"]["missing"]], [1, 2])


if __name__ == "__main__":
    unittest.main()
