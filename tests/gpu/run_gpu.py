"""GPU work of `strobe run`, of experiments and of programs that record themselves, with the stand-in for the driver and
CUPTI (fake_gpu.cc), and an engine whose inferences use it (fake_engine.cc)."""
import contextlib
import json
import os
import pathlib
import signal
import sqlite3
import subprocess
import sys
import time
import unittest

from support import STROBE, Case, write_tiny_network

LIB, BIN = pathlib.Path(os.environ["STROBE_TEST_LIB"]), pathlib.Path(os.environ["STROBE_TEST_BIN"])
FAKE = str(LIB / "libstrobe_fake_gpu.so")
DEVICE = {"STROBE_CUDA_LIBRARY": FAKE, "STROBE_CUPTI_LIBRARY": FAKE, "STROBE_NVML_LIBRARY": "/nowhere/libnvidia-ml.so.1"}
NO_DEVICE = {"STROBE_CUDA_LIBRARY": "/nowhere/libcuda.so.1"}
SLOW = {"FAKE_ENGINE_US": "20000"}  # inferences that take long, on a machine of any speed
BARE = ["--warmup", "0", "--limit-seconds", "0", "--profile-runs", "0", "--no-video"]
KERNELS = "SELECT COUNT(*) FROM CUPTI_ACTIVITY_KIND_KERNEL"


class GpuCase(Case):
    TIMEOUT = 120  # seconds of one command

    def setUp(self):
        super().setUp()
        self.out = self.folder / "out"
        # Beside the plugins that lie there in any case.
        self.environment = {**os.environ, **DEVICE, "STROBE_PLUGIN_DIR": str(LIB / "test_gpu_plugins")}

    def strobe(self, *arguments, code=0, **environment):
        done = subprocess.run([STROBE, *map(str, arguments)], env={**self.environment, **environment}, text=True,
                              capture_output=True, timeout=self.TIMEOUT, check=False)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def answer(self, *arguments):
        return json.loads(self.strobe(*arguments, "--format", "json").stdout)["rows"]

    def counters(self, trace, name):
        return self.rows(trace, f"""SELECT c.timestamp, c.value FROM STROBE_COUNTER c
                                    JOIN StringIds s ON s.id = c.nameId WHERE s.value = '{name}' ORDER BY 1""")

    def record_sleep(self, *flags, seconds, **environment):
        """The trace and the summary of a program that does nothing for so long."""
        trace = self.folder / "t.sqlite"
        done = self.strobe("record", "--format", "json", *flags, "-o", trace, "--", sys.executable, "-c",
                           f"import time; time.sleep({seconds})", **environment)
        return trace, next(json.loads(line) for line in done.stderr.splitlines() if line.startswith("{"))

    def rows(self, trace, sql):
        with sqlite3.connect(trace) as database:
            return database.execute(sql).fetchall()

    def facts(self, trace):
        return dict(self.rows(trace, "SELECT name, value FROM STROBE_FACT"))

    def gpu_facts(self, trace):
        return {key: value for key, value in self.facts(trace).items() if key.startswith("gpu.")}

    def has_kernels(self, trace):
        """Traces without any lack the table."""
        return bool(self.rows(trace, "SELECT 1 FROM sqlite_master WHERE name = 'CUPTI_ACTIVITY_KIND_KERNEL'")) and \
            self.rows(trace, KERNELS)[0][0] > 0

    def is_marked_complete(self, trace):
        marks = self.rows(trace, "SELECT s.value FROM STROBE_MARK m JOIN StringIds s ON s.id = m.nameId")
        return ("GPU records are complete up to here",) in marks

    def kill_when(self, process, folder, found, has_enough):
        """Kills the recording process, a leader of its group, when has_enough() of the trace that can be recovered."""
        end = time.monotonic() + 60
        try:
            while time.monotonic() < end:
                self.assertIsNone(process.poll(), "it ended before it was killed")
                done = subprocess.run([STROBE, "recover", folder, "-o", found], env=self.environment, check=False,
                                      capture_output=True, timeout=60)
                if done.returncode == 0 and has_enough():
                    break
                time.sleep(0.05)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        self.strobe("recover", folder, "-o", found)
        self.assertTrue(has_enough())


class Run(GpuCase):
    def setUp(self):
        super().setUp()
        self.cfg, self.weights = write_tiny_network(self.folder)

    def command(self, *flags, frames=20, engine="fakegpu"):
        return ["run", "--input", self.made(frames), "--model", self.cfg, "--weights", self.weights, "--engine",
                engine, "-q", "-o", self.out, "--format", "json", *BARE, *flags]

    def run_it(self, *flags, engine="fakegpu", **environment):
        return json.loads(self.strobe(*self.command(*flags, engine=engine), **environment).stdout)["runs"]

    def test_kernels_stand_under_the_stages_and_frames_that_caused_them(self):
        [run] = self.run_it()
        trace = run["trace"]
        self.assertEqual(self.rows(trace, KERNELS)[0][0], 40)
        self.assertEqual(self.rows(trace, "SELECT COUNT(*) FROM CUPTI_ACTIVITY_KIND_MEMCPY")[0][0], 40)
        facts = self.facts(trace)
        self.assertEqual(facts["gpu.collection"], "on")
        self.assertEqual(facts["gpu.causality.before_their_call"], "0")
        self.assertEqual(facts["gpu.0.name"], "Fake GPU 9000")
        inside = self.rows(trace, """SELECT COUNT(*) FROM CUPTI_ACTIVITY_KIND_RUNTIME r JOIN NVTX_EVENTS n
            ON n.globalTid = r.globalTid AND n.start <= r.start AND r.end <= n.end JOIN StringIds s ON s.id = n.textId
            WHERE s.value = 'infer'""")
        self.assertGreaterEqual(inside[0][0], 80)
        by_frame = self.answer("kernels", trace, "--by", "frame")
        self.assertEqual({row["frame"] for row in by_frame}, set(range(20)))
        self.assertEqual({row["range"] for row in self.answer("kernels", trace, "--by", "range")}, {"infer"})
        self.assertEqual({(row["stage"], row["count"]) for row in self.answer("kernels", trace, "--by", "stage")},
                         {("infer", 20)})
        # The stand-in copies out while its second kernel runs, and in while none does.
        copies = {row["direction"]: row for row in self.answer("memcpy", trace, "--by", "stage")}
        self.assertEqual({row["stage"] for row in copies.values()}, {"infer"})
        self.assertGreater(copies["device to host"]["overlap_share"], 0.5)
        self.assertEqual(copies["host to device"]["bytes"], 20 * 12288)
        [overlap] = self.answer("memcpy", trace, "--overlap", "--by", "stage")
        self.assertEqual((overlap["stage"], overlap["both_ns"]), ("infer", overlap["own_ns"]))
        [idle] = self.answer("idle", trace, "--by", "stage")
        self.assertEqual((idle["stage"], idle["operations"]), ("infer", 80))
        self.assertEqual({(row["stage"], row["call"]) for row in self.answer("launches", trace, "--by", "stage")},
                         {("infer", "cudaLaunchKernel"), ("infer", "cudaMemcpyAsync")})
        self.assertFalse((self.out / "spool").exists())

    def test_kernels_of_a_network_on_a_gpu_belong_to_its_layers(self):
        [run] = self.run_it("--infer-on-gpu")
        layers = {(row["layer"], row["name"].partition("(")[0]): row["count"] for row in
                  self.answer("kernels", run["trace"], "--by", "layer")}
        self.assertEqual(layers, {("conv1", "gemm"): 20, ("relu2", "relu"): 20})
        self.assertEqual({row["stage"] for row in self.answer("kernels", run["trace"], "--by", "stage")}, {"infer"})
        self.assertEqual({row["frame"] for row in self.answer("kernels", run["trace"], "--by", "frame")}, set(range(20)))
        # Of the parts of a split network the second one is there.
        [run] = self.run_it("--infer-on-gpu", "--split-point", "001_maxpool")
        self.assertTrue(self.has_kernels(run["trace"]))

    def test_kernels_of_graphs_are_asked_for(self):
        [run] = self.run_it("--gpu-graph-nodes")
        self.assertEqual(self.facts(run["trace"])["gpu.collection"], "on")
        for flag in ("--no-gpu-trace", "--no-record"):
            self.refused(self.strobe(*self.command("--gpu-graph-nodes", flag), code=2), "--gpu-graph-nodes and " + flag)

    def test_what_cannot_be_asked_is_refused(self):
        [run] = self.run_it()
        for command, word in ((["kernels", "--by", "colour"], "name, layer, range, frame, stage or tenant"),
                              (["memcpy", "--by", "frame"], "stage or tenant"),
                              (["idle", "--by", "stage", "--work"], "--work"),
                              (["idle", "--by", "stage", "--rules", "hta"], "hta"),
                              (["launches", "--by", "tenant", "--by-frame"], "frames")):
            self.refused(self.strobe(command[0], run["trace"], *command[1:], code=2), word)

    def test_it_can_be_left_out(self):
        [run] = self.run_it("--no-gpu-trace")
        self.assertFalse(self.has_kernels(run["trace"]))
        self.assertEqual(self.gpu_facts(run["trace"]), {})
        self.assertNotIn("GPU", " ".join(run["notes"]))

    def test_without_a_driver_nothing_is_said(self):
        [run] = self.run_it(**NO_DEVICE)
        self.assertFalse(self.has_kernels(run["trace"]))
        self.assertEqual(self.gpu_facts(run["trace"]), {})
        self.assertNotIn("GPU", " ".join(run["notes"]))

    def test_what_is_in_the_way_is_told(self):
        [run] = self.run_it(FAKE_CUPTI_OTHER_CLIENT="Nsight Systems")
        self.assertFalse(self.has_kernels(run["trace"]))
        self.assertIn("off: another CUPTI client: Nsight Systems", self.facts(run["trace"])["gpu.collection"])
        self.assertIn("GPU collection is off: another CUPTI client: Nsight Systems", " ".join(run["notes"]))

    def test_several_engines_each_in_a_process_of_its_own(self):
        runs = self.run_it(engine="fakegpu,fakegpu:graphs")
        self.assertEqual(len(runs), 2)
        for run in runs:
            self.assertEqual(self.rows(run["trace"], KERNELS)[0][0], 40)
        for run in self.run_it("--no-gpu-trace", engine="fakegpu,fakegpu:graphs"):
            self.assertFalse(self.has_kernels(run["trace"]))

    def test_workers_share_one_trace(self):
        config = self.folder / "workers.yaml"
        config.write_text(f"""
defaults: {{model: {self.cfg}, weights: {self.weights}, engine: fakegpu, warmup: 0, limit-seconds: 0, profile-runs: 0,
  no-video: true}}
workers:
  - {{name: a, input: {self.made(10)}}}
  - {{name: b, input: {self.made(15)}}}
  - {{name: c, input: {self.made(5)}, no-gpu-trace: true}}
""")
        result = json.loads(self.strobe("run", "--config", config, "-o", self.out, "--format", "json").stdout)
        self.assertEqual(self.rows(result["trace"], KERNELS)[0][0], 50)
        kernels = self.answer("kernels", result["trace"])
        self.assertEqual({row["name"]: (row["count"], row["launched"]) for row in kernels},
                         {"gemm(float const*, float*)": (25, 25), "relu(float*)": (25, 25)})
        facts = self.facts(result["trace"])
        self.assertEqual({row["tenant"]: row["operations"] for row in self.answer("idle", result["trace"], "--by", "tenant")},
                         {"a": 40, "b": 60})
        self.assertEqual((facts["worker.a.gpu.collection"], facts["worker.b.gpu.collection"]), ("on", "on"))
        self.assertNotIn("worker.c.gpu.collection", facts)
        self.assertEqual(sum(key.startswith("gpu.of.") for key in facts), 2)

    def test_training(self):
        pictures = self.folder / "set"
        for name in ("blue", "red"):
            (pictures / name).mkdir(parents=True)
            for i in range(4):
                colour = b"\0\0\xff" if name == "blue" else b"\xff\0\0"
                (pictures / name / f"{i}.ppm").write_bytes(b"P6 32 32 255\n" + 32 * 32 * colour)
        done = self.strobe("run", "--mode", "retrain", "--engine", "fakegpu", "--model", "squeezenet1_1", "--size",
                           "32x32", "--input", pictures, "-b", "4", "--max-steps", "2", "-q", "-o", self.out, "--format",
                           "json")
        trace = json.loads(done.stdout)["trace"]
        ranges = {(row["range"], row["name"].partition("(")[0]): row["count"]
                  for row in self.answer("kernels", trace, "--by", "range")}
        self.assertEqual(ranges, {("forward", "forward"): 2, ("forward", "loss"): 2, ("backward", "backward"): 2,
                                  ("backward", "grad"): 2, ("update", "adam"): 2, ("update", "zero"): 2})

    def test_under_strobe_record_there_is_one_collector(self):
        outer = self.folder / "outer.sqlite"
        self.strobe("record", "--collect", "nvtx,gpu", "-o", outer, "--", STROBE, *self.command())
        self.assertEqual(self.rows(outer, KERNELS)[0][0], 40)
        self.assertEqual(self.facts(outer)["gpu.collection"], "on")
        own = self.out / "trace.sqlite"
        self.assertFalse(self.has_kernels(own))
        self.assertIn("strobe record", self.facts(own)["gpu.collection"])

    def test_a_killed_run_is_recovered_with_its_kernels(self):
        found = self.folder / "found.sqlite"
        command = [STROBE, *map(str, self.command("--sessions", "1", frames=100000))]
        with subprocess.Popen(command, env={**self.environment, **SLOW}, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, start_new_session=True) as process:
            self.kill_when(process, self.out, found, lambda: self.has_kernels(found) and self.is_marked_complete(found))
        count = self.rows(found, KERNELS)[0][0]
        # The folder itself is a trace as good as the recovered one.
        for command in (["kernels"], ["memcpy"], ["launches"], ["idle"], ["stats", "--by", "api"]):
            self.assertEqual(self.answer(command[0], self.out, *command[1:]), self.answer(command[0], found, *command[1:]))
        # The next run keeps what this one left.
        self.run_it("--frames", "3")
        self.strobe("recover", self.out / "spool.killed", "-o", found)
        self.assertEqual(self.rows(found, KERNELS)[0][0], count)


class Experiment(GpuCase):
    def setUp(self):
        super().setUp()
        cfg, weights = write_tiny_network(self.folder)
        video = self.made(10)
        source = f"{{path: {video}}}"
        self.cells = f"""
name: gpu
duration: 1s
warmup: 100ms
defaults: {{model: {cfg}, weights: {weights}, engine: fakegpu, source: {source}, queue: 100}}
tenants:
  - {{name: a, rate: 30}}
  - {{name: b, rate: 20, FAULT}}
"""

    def grid(self, text, *flags, code=0, **environment):
        path = self.folder / "study.yaml"
        path.write_text(text)
        done = self.strobe("run", path, "-q", "-o", self.out, "--format", "json", *flags, code=code, **environment)
        return {cell["cell"]: cell for cell in json.loads(done.stdout)["cells"]}

    def healthy(self, isolation):
        return self.cells.replace(", FAULT", "") + f"isolation: {isolation}\n"

    def test_tenants_as_threads_and_as_processes(self):
        for isolation, processes in (("threads", 1), ("processes", 2)):
            with self.subTest(isolation):
                [cell] = self.grid(self.healthy(isolation), "--again").values()
                trace = cell["trace"]
                self.assertEqual(self.rows(trace, "SELECT COUNT(DISTINCT globalPid) FROM CUPTI_ACTIVITY_KIND_KERNEL"),
                                 [(processes,)])
                finished = sum(tenant["finished"] for tenant in cell["tenants"])
                # Two kernels a frame, and the inferences of each tenant's warm-up.
                self.assertEqual(self.rows(trace, KERNELS)[0][0], 2 * finished + 2 * 2 * 2)
                self.assertEqual(self.facts(trace)["gpu.collection"], "on")
                self.assertEqual(self.facts(trace)["gpu.causality.before_their_call"], "0")
                # Of processes all work is the tenant's; of threads, what they loaded is the process's.
                warm = {"strobe run": 8} if isolation == "threads" else {}
                own = 0 if isolation == "threads" else 4
                expected = {tenant["name"]: 2 * tenant["finished"] + own for tenant in cell["tenants"]} | warm
                found = {}
                for row in self.answer("kernels", trace, "--by", "tenant"):
                    found[row["tenant"]] = found.get(row["tenant"], 0) + row["count"]
                    self.assertGreater(row["launch_latency_ns"], 0)
                self.assertEqual(found, expected)
                for command in (["memcpy"], ["memcpy", "--overlap"], ["idle"], ["launches"]):
                    rows = self.answer(command[0], trace, *command[1:], "--by", "tenant")
                    self.assertEqual({row["tenant"] for row in rows}, set(expected), command)
                stages = self.answer("idle", trace, "--by", "stage")
                self.assertEqual({row["stage"] for row in stages}, {"infer", None})

    def test_it_can_be_left_out_and_needs_no_driver(self):
        for flags, environment in ((["--no-gpu-trace"], {}), ([], NO_DEVICE)):
            [cell] = self.grid(self.healthy("threads"), "--again", *flags, **environment).values()
            self.assertFalse(self.has_kernels(cell["trace"]))
            self.assertEqual(self.gpu_facts(cell["trace"]), {})

    def test_a_cell_that_died_has_the_kernels_of_before(self):
        # Long enough for a flush; what had not come back by then is lost.
        text = self.cells.replace("duration: 1s", "duration: 3s").replace("FAULT", "fault: {kind: crash, after: 30}")
        for isolation in ("threads", "processes"):
            with self.subTest(isolation):
                [cell] = self.grid(text + f"isolation: {isolation}\n", "--again", code=1).values()
                self.assertEqual(cell["status"], "failed")
                self.assertGreater(self.rows(cell["trace"], KERNELS)[0][0], 50)
                self.assertTrue(self.is_marked_complete(cell["trace"]))


class Annotated(GpuCase):
    """Programs that record themselves."""

    PROGRAM = str(BIN / "strobe_test_annotated_gpu_program")

    def program(self, *arguments, code=0, **environment):
        done = subprocess.run([self.PROGRAM, str(self.out), *arguments], env={**self.environment, **environment},
                              capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, code, done.stderr)

    def test_a_program_in_c(self):
        for end, code in ((), 0), (("exit",), 0), (("kill",), -signal.SIGKILL):
            with self.subTest(end):
                self.out = self.folder / ("out" + "".join(end))
                self.program("50", *end, code=code)
                [row] = self.answer("kernels", self.out, "--by", "range")
                self.assertEqual((row["range"], row["name"], row["count"], row["launched"]),
                                 ("step", "gemm(float const*, float*)", 50, 50))

    def test_without_a_driver_or_the_library(self):
        found = self.folder / "found.sqlite"
        self.program("5", **NO_DEVICE)
        self.strobe("recover", self.out, "-o", found)
        self.assertEqual(self.gpu_facts(found), {})
        self.out = self.folder / "none"
        self.program("5", STROBE_PLUGIN_DIR="/nowhere", FAKE_CUPTI_OTHER_CLIENT="Kineto")
        self.strobe("recover", self.out, "-o", found)
        self.assertIn("another CUPTI client: Kineto", self.facts(found)["gpu.collection"])

    def test_under_strobe_record_there_is_one_collector(self):
        outer = self.folder / "outer.sqlite"
        self.strobe("record", "--collect", "gpu", "-o", outer, "--", self.PROGRAM, self.out, "20")
        self.assertEqual(self.rows(outer, KERNELS)[0][0], 20)
        self.strobe("recover", self.out, "-o", self.folder / "own.sqlite")
        self.assertIn("strobe record", self.facts(self.folder / "own.sqlite")["gpu.collection"])

    def test_where_kernels_are_replayed_nobody_collects_them(self):
        outer = self.folder / "outer.sqlite"
        self.strobe("record", "--gpu-replay-metrics", "-o", outer, "--", self.PROGRAM, self.out, "20")
        self.strobe("recover", self.out, "-o", self.folder / "own.sqlite")
        for trace in outer, self.folder / "own.sqlite":
            self.assertFalse(self.has_kernels(trace))
        self.assertIn("replays", self.facts(self.folder / "own.sqlite")["gpu.collection"])

    def test_python(self):
        package = LIB / "python"
        if not package.is_dir():
            self.skipTest("the Python package is not built")
        trace = self.folder / "python.sqlite"
        program = """
import ctypes, os, sys, strobe
class Launch(ctypes.Structure):
    _fields_ = [("kernel", ctypes.c_char_p), ("stream", ctypes.c_uint32), ("delay_ns", ctypes.c_uint64),
                ("duration_ns", ctypes.c_uint64), ("bytes", ctypes.c_uint64), ("copy_kind", ctypes.c_uint32),
                ("nested", ctypes.c_uint32), ("no_times", ctypes.c_uint32), ("before_call_ns", ctypes.c_int64)]
with strobe.record(sys.argv[1], gpu=sys.argv[2] == "gpu"):
    driver = ctypes.CDLL(os.environ["STROBE_CUDA_LIBRARY"])
    driver.cuInit(0)
    for i in range(30):
        with strobe.range("step", frame=i):
            driver.fake_launch(ctypes.byref(Launch(b"_Z4gemmPKfPf", 7, 5000, 2000)))
print(len(strobe.open(sys.argv[1]).kernels()))
"""
        python = os.environ.get("STROBE_TEST_PYTHON") or sys.executable
        environment = {**self.environment, "PYTHONPATH": str(package)}

        def run(*around, how="gpu"):
            return subprocess.run([*map(str, around), python, "-c", program, trace, how], env=environment,
                                  capture_output=True, text=True, timeout=60, check=False)

        for how, count in (("gpu", 30), ("none", 0)):
            done = run(how=how)
            self.assertEqual((done.returncode, done.stdout.strip()), (0, str(count)), done.stderr)
        outer = self.folder / "outer.sqlite"
        for collect, inner in (("nvtx", 30), ("nvtx,gpu", 0)):  # one collector, whichever it is; the work is in the outer
            done = run(STROBE, "record", "--quiet", "--collect", collect, "-o", outer, "--")
            self.assertEqual((done.returncode, done.stdout.strip()), (0, str(inner)), done.stderr)
            self.assertEqual(self.rows(outer, KERNELS)[0][0], 30)


if __name__ == "__main__":
    unittest.main()
