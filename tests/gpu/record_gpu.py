"""`strobe record` of CUDA programs, end to end, with a stand-in for the driver and CUPTI (fake_gpu.cc)."""
import json
import os
import pathlib
import sqlite3
import subprocess
import tempfile
import unittest

STROBE = os.environ["STROBE"]
PROGRAM = str(pathlib.Path(os.environ["STROBE_TEST_BIN"]) / "strobe_test_gpu_program")
FAKE = str(pathlib.Path(os.environ["STROBE_TEST_LIB"]) / "libstrobe_fake_gpu.so")


class RecordGpu(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.trace = str(pathlib.Path(self.folder.name) / "t.sqlite")

    def record(self, *program, code=0, collect="nvtx,gpu", **environment):
        full = {**os.environ, "STROBE_CUDA_LIBRARY": FAKE, "STROBE_CUPTI_LIBRARY": FAKE,
                "STROBE_NVML_LIBRARY": "/nowhere/libnvidia-ml.so.1", **environment}
        done = subprocess.run([STROBE, "record", "--format", "json", "--collect", collect, "-o", self.trace,
                               *(program if "--" in program else ("--", *program))], env=full, capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, code, done.stderr)
        lines = done.stderr.splitlines()
        summary = next(json.loads(line) for line in lines if line.startswith("{"))
        return summary, done.stderr

    def rows(self, sql):
        with sqlite3.connect(self.trace) as database:
            return database.execute(sql).fetchall()

    def facts(self):
        return dict(self.rows("SELECT name, value FROM STROBE_FACT"))

    def test_kernels_calls_and_ranges_come_together(self):
        summary, _ = self.record(PROGRAM, "500")
        self.assertEqual((summary["gpu_calls"], summary["gpu_operations"], summary["dropped"]), (500, 500, 0))
        self.assertEqual(summary["faults"], {})
        # In the tables of an Nsight Systems export.
        kernels = self.rows("""SELECT s.value, k.end - k.start, k.streamId, k.gridX, r.start, k.start
            FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN StringIds s ON s.id = k.demangledName
            JOIN CUPTI_ACTIVITY_KIND_RUNTIME r ON r.correlationId = k.correlationId""")
        self.assertEqual(len(kernels), 500)
        for name, duration, stream, grid, called, started in kernels:
            self.assertEqual((name, stream, grid), ("gemm(float const*, float*)", 7, 80))
            self.assertAlmostEqual(duration, 2000, delta=1)  # both ends are mapped, and rounded
            self.assertGreater(started, called)
        facts = self.facts()
        self.assertEqual(facts["gpu.collection"], "on")
        self.assertEqual(facts["gpu.causality.before_their_call"], "0")
        self.assertEqual(facts["gpu.0.name"], "Fake GPU 9000")
        if self.rows("SELECT COUNT(*) FROM NVTX_EVENTS WHERE eventType = 59")[0][0] == 0:
            self.skipTest("NVTX's headers were not there when this was built: ranges are not tested")
        inside = self.rows("""SELECT COUNT(*) FROM CUPTI_ACTIVITY_KIND_RUNTIME r JOIN NVTX_EVENTS n
            ON n.globalTid = r.globalTid AND n.start <= r.start AND r.end <= n.end WHERE n.eventType = 59""")
        self.assertEqual(inside[0][0], 500)

    def test_the_analyses_of_imported_traces_work(self):
        self.record(PROGRAM, "200")
        questions = [(["kernels"], "gemm")]
        if os.environ["STROBE_TEST_NVTX"] == "1":  # without NVTX's headers the program has no ranges
            questions.append((["stats", "--by", "range"], "step"))
        for command, expected in questions:
            done = subprocess.run([STROBE, *command, self.trace], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(expected, done.stdout)

    def test_kernels_of_graphs_belong_to_the_layers_that_were_captured(self):
        summary, _ = self.record(PROGRAM, "30", "graph")
        self.assertEqual(summary["gpu_operations"], 30)  # whole graphs
        summary, _ = self.record("--gpu-graph-nodes", "--", PROGRAM, "30", "graph")
        self.assertEqual(summary["gpu_operations"], 60)
        captured = self.rows("""SELECT k.value, a.value, COUNT(*) FROM STROBE_CAPTURE c
            JOIN STROBE_RANGE r ON r.id = c.rangeId JOIN StringIds k ON k.id = r.nameId
            JOIN STROBE_RANGE o ON o.id = c.captureId JOIN StringIds a ON a.id = o.nameId GROUP BY 1 ORDER BY 1""")
        self.assertEqual(captured, [("conv(float*)", "cudaLaunchKernel", 30),
                                    ("gemm(float const*, float*)", "cudaLaunchKernel", 30)])
        if os.environ["STROBE_TEST_NVTX"] != "1":
            self.skipTest("NVTX's headers were not there when this was built: ranges are not tested")
        done = subprocess.run([STROBE, "kernels", self.trace, "--by", "layer", "--format", "json"], capture_output=True,
                              text=True, check=True)
        layers = {(row["layer"], row["name"].partition("(")[0]): row["count"] for row in json.loads(done.stdout)["rows"]}
        self.assertEqual(layers, {("conv1", "conv"): 30, ("fc", "gemm"): 30})

    def test_counters_of_replayed_kernels_are_brought_to_a_plain_run(self):
        self.record(PROGRAM, "300")
        plain, self.trace = self.trace, self.trace + ".counters"
        environment = {**os.environ, "STROBE_CUDA_LIBRARY": FAKE, "STROBE_CUPTI_LIBRARY": FAKE}

        def record(*flags, code=0, **more):
            done = subprocess.run([STROBE, "record", *flags, "-o", self.trace, "--", PROGRAM, "300"], text=True, check=False,
                                  env={**environment, **more}, capture_output=True, timeout=120)
            self.assertEqual(done.returncode, code, done.stderr)
            return done.stderr

        def kernels(*arguments, code=0):
            done = subprocess.run([STROBE, "kernels", *arguments, "--format", "json"], capture_output=True, text=True,
                                  check=False)
            self.assertEqual(done.returncode, code, done.stderr)
            return json.loads(done.stdout) if code == 0 else done.stderr

        said = record("--gpu-replay-metrics=tensor_percent,global_load_requests")
        self.assertIn("counters of 300 kernels", said)
        self.assertIn("each kernel ran 1 time alone", said)
        self.assertEqual(self.rows("SELECT COUNT(*) FROM STROBE_RANGE")[0][0], 0)  # no times
        rows = kernels(self.trace)["rows"]
        self.assertEqual([row["launch"] for row in rows], list(range(1, 301)))
        self.assertEqual({(row["kernel"], row["grid"], row["tensor_percent"]) for row in rows},
                         {("gemm(float const*, float*)", "80,1,1", 80)})
        joined = kernels(plain, "--replay-metrics", self.trace)
        [row] = joined["rows"]
        self.assertEqual((row["count"], row["matched"], row["tensor_percent"]), (300, 300, 80))
        self.assertAlmostEqual(row["global_load_requests"], sum(range(1000, 1300)) / 300)
        self.assertIn("no counters of replayed kernels", kernels(plain, "--replay-metrics", plain, code=2))
        self.assertIn("off: CUPTI error 35: no permission", record("--gpu-replay-metrics", FAKE_RP_Enable="35"))
        self.assertIn("broke: CUPTI error 9", record("--gpu-replay-metrics", FAKE_RP_DecodeData="9"))
        for flags, words in ((["--gpu-replay-metrics=speed"], "expected all or some of"),
                             (["--gpu-replay-metrics", "--collect", "gpu"], "--collect"),
                             (["--gpu-replay-metrics", "--gpu-metrics"], "--gpu-metrics")):
            self.assertIn(words, record(*flags, code=2))

    def test_several_processes_and_threads(self):
        summary, _ = self.record(PROGRAM, "100", "fork")
        self.assertEqual(summary["gpu_operations"], 200)
        pids = self.rows("SELECT COUNT(DISTINCT globalPid) FROM CUPTI_ACTIVITY_KIND_KERNEL")
        self.assertEqual(pids[0][0], 2)
        self.assertEqual(self.facts()["gpu.0.sm_count"], "132")  # one device, seen by both
        self.assertNotIn("gpu.1.sm_count", self.facts())
        self.record(PROGRAM, "100", "threads")
        threads = self.rows("SELECT COUNT(DISTINCT globalTid), COUNT(*) FROM CUPTI_ACTIVITY_KIND_RUNTIME")
        self.assertEqual(threads[0], (3, 300))

    def test_what_was_flushed_survives_a_kill(self):
        summary, _ = self.record(PROGRAM, "300", "kill", code=128 + 9)
        self.assertEqual(summary["gpu_operations"], 300)
        marks = self.rows("SELECT s.value FROM STROBE_MARK m JOIN StringIds s ON s.id = m.nameId")
        self.assertIn(("GPU records are complete up to here",), marks)

    def test_what_a_recording_left_behind_is_recovered_whole(self):
        kept, found = pathlib.Path(self.folder.name) / "kept", pathlib.Path(self.folder.name) / "found.sqlite"
        environment = {**os.environ, "STROBE_CUDA_LIBRARY": FAKE, "STROBE_CUPTI_LIBRARY": FAKE}
        done = subprocess.run([STROBE, "record", "--folder", kept, "--collect", "nvtx,gpu", "-o", self.trace, "--", PROGRAM,
                               "200"], env=environment, capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        done = subprocess.run([STROBE, "recover", kept, "-o", found], capture_output=True, text=True, timeout=120,
                              check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.trace = str(found)
        self.assertEqual(self.rows("SELECT COUNT(*) FROM CUPTI_ACTIVITY_KIND_KERNEL")[0][0], 200)
        self.assertEqual(self.facts()["gpu.collection"], "on")

    def test_another_client_is_named(self):
        summary, errors = self.record(PROGRAM, "10", FAKE_CUPTI_OTHER_CLIENT="Nsight Systems")
        self.assertEqual(summary["gpu_operations"], 0)
        self.assertIn("another CUPTI client: Nsight Systems", self.facts()["gpu.collection"])

    def test_gpu_can_be_left_out(self):
        summary, _ = self.record(PROGRAM, "10", collect="nvtx")
        self.assertEqual(summary["gpu_operations"], 0)
        self.assertNotIn("gpu.collection", self.facts())

    def test_a_program_without_cuda_is_recorded_as_ever(self):
        summary, errors = self.record("/bin/true", collect="nvtx,itt,gpu,os")
        self.assertEqual(summary["gpu_operations"], 0)
        self.assertNotIn("note: GPU", errors)


if __name__ == "__main__":
    unittest.main()
