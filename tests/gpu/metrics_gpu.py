"""Hardware counters in `strobe record`, `strobe run`, experiments and doctor, with the stand-in's counters
(fake_metrics.cc)."""
import bisect
import json
import subprocess
import sys
import unittest

from run_gpu import BARE, LIB, NO_DEVICE, GpuCase
from support import STROBE, write_tiny_network

FORBIDDEN = {"FAKE_PM_Enable": "35"}


class MetricsCase(GpuCase):
    def counters(self, trace, name):
        return super().counters(trace, f"gpu.0.{name}")


class Record(MetricsCase):
    def record(self, *flags, seconds=0.8, **environment):
        return self.record_sleep(*flags, seconds=seconds, **environment)

    def test_counters_lie_where_the_wave_was(self):
        trace, summary = self.record("--gpu-metrics", "--gpu-metrics-us", "500")
        self.assertEqual(summary["notes"], [])
        facts = self.facts(trace)
        self.assertIn("on: CUPTI 130001", facts["gpu.metrics"])
        [(start,)] = self.rows(trace, "SELECT utcEpochNs FROM TARGET_INFO_SESSION_START_TIME")
        points = self.counters(trace, "dram_read_percent")
        self.assertGreater(len(points), 1000)
        # 20 and 60 in turns of 5 ms of the wall clock; at a turn the clocks' alignment decides.
        wrong = [at for at, value in points if value != (20 if (start + at + 250_000) // 5_000_000 % 2 == 0 else 60)]
        self.assertLess(len(wrong), 0.05 * len(points))
        self.assertEqual({value for _, value in self.counters(trace, "dram_write_percent")}, {10})

    def test_without_the_flag_there_are_none(self):
        trace, summary = self.record(seconds=0.1)
        self.assertEqual(summary["notes"], [])
        self.assertNotIn("gpu.metrics", self.facts(trace))
        self.assertEqual(self.counters(trace, "sm_busy_percent"), [])

    def test_devices_of_both_libraries_meet_by_their_unique_ids(self):
        # CUDA's first device is NVML's second.
        trace, _ = self.record("--gpu-metrics", seconds=0.2, STROBE_NVML_LIBRARY=str(LIB / "libstrobe_fake_nvml.so"),
                               FAKE_NVML_DEVICES="2", FAKE_NVML_TURNED_BY="1")
        facts = self.facts(trace)
        self.assertEqual(facts["gpu.1.chip"], "GH100")
        self.assertIn("sm__cycles_active", facts["gpu.1.metric.sm_busy_percent"])
        self.assertNotIn("gpu.0.chip", facts)
        names = {name for name, in self.rows(trace, """SELECT DISTINCT s.value FROM STROBE_COUNTER c
                                                        JOIN StringIds s ON s.id = c.nameId""")}
        self.assertLessEqual({"gpu.1.sm_busy_percent", "gpu.1.power_w", "gpu.0.power_w"}, names)
        self.assertNotIn("gpu.0.sm_busy_percent", names)

    def test_counters_outlive_a_kill(self):
        kept, found = self.folder / "kept", self.folder / "found.sqlite"
        command = [STROBE, "record", "--folder", kept, "--gpu-metrics", "-o", self.folder / "t.sqlite", "--",
                   sys.executable, "-c", "import time; time.sleep(100)"]
        with subprocess.Popen([*map(str, command)], env=self.environment, start_new_session=True) as process:
            self.kill_when(process, kept, found, lambda: len(self.counters(found, "sm_busy_percent")) > 2000)
        self.assertIn("on: CUPTI", self.facts(found)["gpu.metrics"])

    def test_a_refusal_is_a_note(self):
        for environment, why in ((FORBIDDEN, "no permission"), (NO_DEVICE, "no NVIDIA driver"),
                                 ({"FAKE_PM_SUPPORTED": "confidential"}, "confidential computing"),
                                 ({"STROBE_CUPTI_LIBRARY": self.environment["STROBE_CUPTI_LIBRARY"].replace(
                                     "gpu.so", "gpu_old.so")}, "CUDA 12.6 or newer")):
            with self.subTest(why):
                trace, summary = self.record("--gpu-metrics", seconds=0.1, **environment)
                [note] = summary["notes"]
                self.assertTrue(note.startswith("GPU counters are off: "), note)
                self.assertIn(why, note)
                self.assertIn(why, self.facts(trace)["gpu.metrics"])

    def test_what_cannot_be_is_refused(self):
        for flags, words in ((["--gpu-metrics-us", "100"], "--gpu-metrics"), (["--gpu-metrics", "--gpu-metrics-us", "10"],
                             "50 to 1000000"), (["--gpu-metrics", "--collect", "os"], "--collect")):
            done = self.strobe("record", *flags, "-o", self.folder / "t.sqlite", "--", "true", code=2)
            self.refused(done, words)


class Run(MetricsCase):
    def setUp(self):
        super().setUp()
        self.cfg, self.weights = write_tiny_network(self.folder)

    def command(self, *flags, frames=300):
        return ["run", "--input", self.made(frames), "--model", self.cfg, "--weights", self.weights, "--engine",
                "fakegpu", "-q", "-o", self.out, "--format", "json", *BARE, *flags]

    def test_counters_beside_kernels(self):
        [run] = json.loads(self.strobe(*self.command("--gpu-metrics", "--gpu-metrics-us", "50", "--sessions", "1")).stdout)["runs"]
        trace = run["trace"]
        self.assertNotIn("GPU counters", " ".join(run["notes"]))
        self.assertGreater(len(self.counters(trace, "sm_busy_percent")), 100)
        self.assertEqual(self.facts(trace)["gpu.0.chip"], "GH100")
        # Kernels of 10 and 20 us in samples of 50: each has a part of each sample that it stands in.
        rows = {row["name"].partition("(")[0]: row for row in self.answer("kernels", trace, "--metrics")}
        self.assertEqual(set(rows), {"gemm", "relu"})
        for row in rows.values():
            self.assertEqual(row["count"], 300)
            self.assertGreater(row["samples"], 200)
            self.assertGreater(row["filled_share"], 0)
            self.assertLess(row["filled_share"], 0.6)
            self.assertEqual(row["dram_write_percent"], 10)
        # The tensor pipe works while gemm runs, and only then.
        self.assertGreater(rows["gemm"]["tensor_percent"], rows["relu"]["tensor_percent"])
        self.assertGreater(rows["relu"]["fma_percent"], rows["gemm"]["fma_percent"])
        # The same by hand: gemm has nothing beside it.
        self.assertEqual(rows["gemm"]["alone_share"], 1)
        points = self.counters(trace, "tensor_percent")
        gemms = self.rows(trace, """SELECT k.start, k.end FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN StringIds s
                                    ON s.id = k.shortName WHERE s.value LIKE 'gemm%' ORDER BY 1""")
        weighted = weight = 0
        for start, end in gemms:
            first = bisect.bisect_right(points, (start, 101)) - 1
            for at, value in points[max(0, first):first + 4]:
                part = max(0, min(end, at + 50_000) - max(start, at))
                weighted, weight = weighted + part * value, weight + part
        self.assertAlmostEqual(rows["gemm"]["tensor_percent"], weighted / weight, delta=0.02 * weighted / weight)
        [stage] = self.answer("kernels", trace, "--metrics", "--by", "stage", "--filter", "infer")
        self.assertEqual((stage["stage"], stage["count"], stage["alone_share"]), ("infer", 1200, 1))
        self.refused(self.strobe("kernels", trace, "--metrics", "--by", "colour", code=2), "tenant")

    def test_refusals_and_flags(self):
        [run] = json.loads(self.strobe(*self.command("--gpu-metrics", frames=10), **FORBIDDEN).stdout)["runs"]
        self.assertIn("GPU counters are off: CUPTI error 35: no permission", " ".join(run["notes"]))
        self.assertTrue(self.has_kernels(run["trace"]))
        text = self.strobe("kernels", run["trace"], "--metrics").stdout
        self.assertIn("GPU counters are off", text)
        for flags, words in ((["--gpu-metrics", "--no-gpu-trace"], "--no-gpu-trace"),
                             (["--gpu-metrics", "--no-record"], "--no-record"),
                             (["--gpu-metrics-us", "100"], "--gpu-metrics"),
                             (["--gpu-metrics", "--gpu-metrics-us", "2000000"], "50 to 1000000")):
            self.refused(self.strobe(*self.command(*flags, frames=10), code=2), words)

    def test_cells_of_an_experiment(self):
        study = self.folder / "study.yaml"
        study.write_text(f"""
name: gpu
duration: 1s
warmup: 100ms
defaults: {{model: {self.cfg}, weights: {self.weights}, engine: fakegpu, source: {{path: {self.made(10)}}}}}
tenants:
  - {{name: a, rate: 30}}
  - {{name: b, rate: 20}}
""")

        def cell(*flags, **environment):
            done = self.strobe("run", study, "-q", "-o", self.out, "--format", "json", "--again", *flags, **environment)
            return json.loads(done.stdout)["cells"][0]

        for isolation in ("threads", "processes"):
            with self.subTest(isolation):
                one = cell("--gpu-metrics", "--set", f"isolation={isolation}")
                self.assertGreater(len(self.counters(one["trace"], "sm_busy_percent")), 4000)
                tenants = {row["tenant"]: row for row in self.answer("kernels", one["trace"], "--metrics", "--by",
                                                                     "tenant")}
                self.assertLessEqual({"a", "b"}, set(tenants))
        self.assertEqual(self.counters(cell()["trace"], "sm_busy_percent"), [])
        self.assertIn("no permission", " ".join(cell("--gpu-metrics", **FORBIDDEN)["notes"]))
        self.refused(self.strobe("run", study, "--gpu-metrics", "--gpu-metrics-us", "1", "-o", self.out, code=2),
                     "50 to 1000000")


class Doctor(MetricsCase):
    def check(self, **environment):
        done = subprocess.run([STROBE, "doctor", "--format", "json"], env={**self.environment, **environment}, text=True,
                              capture_output=True, timeout=120, check=False)
        rows = json.loads(done.stdout)["rows"]
        return json.dumps(next(row for row in rows if "GPU counters" in row.values()))

    def test_what_can_be_sampled_or_why_not(self):
        self.assertIn("GH100: sm_busy_percent, occupancy_percent", self.check())
        self.assertIn("no fp64_percent, not known of GA102", self.check(FAKE_PM_CHIP="GA102", FAKE_PM_UNKNOWN="fp64"))
        self.assertIn("no permission", self.check(**FORBIDDEN))


if __name__ == "__main__":
    unittest.main()
