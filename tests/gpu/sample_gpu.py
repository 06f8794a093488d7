"""What NVML tells of devices, in `strobe record`, `strobe run`, experiments and doctor, and clocks that are held, with the
stand-in for NVML (fake_nvml.cc)."""
import csv
import json
import pathlib
import signal
import subprocess
import sys
import time
import unittest

from run_gpu import BARE, BIN, LIB, SLOW, GpuCase
from support import STROBE, write_tiny_network

NVML = {"STROBE_NVML_LIBRARY": str(LIB / "libstrobe_fake_nvml.so")}
WATTS = 250


class SampleCase(GpuCase):
    def setUp(self):
        super().setUp()
        self.environment.update(NVML)


class Record(SampleCase):
    def record(self, *flags, seconds=0.1, **environment):
        return self.record_sleep(*flags, seconds=seconds, **environment)

    def test_use_power_and_energy_of_the_device(self):
        trace, summary = self.record("--gpu-period-ms", "20", seconds=2)
        [gpu] = summary["gpus"]
        self.assertEqual((gpu["gpu"], gpu["name"], gpu["busy_percent"]), (0, "Fake GPU 9000", 80))
        self.assertAlmostEqual(gpu["mean_w"], WATTS, delta=0.1 * WATTS)
        self.assertAlmostEqual(gpu["energy_j"], WATTS * summary["seconds"], delta=0.15 * WATTS * summary["seconds"])
        self.assertEqual((gpu["throttled_share"], gpu["throttled_by"]), (1, "power cap 100 %"))
        self.assertTrue(any("energy counter" in note for note in summary["notes"]))
        self.assertGreater(len(self.counters(trace, "gpu.0.power_w")), 20)
        facts = self.facts(trace)
        self.assertIn("on: NVML of driver 580.00", facts["gpu.sampling"])
        self.assertEqual(facts["gpu.0.memory_bytes"], str(80 << 30))

    def test_it_goes_with_the_collector_gpu(self):
        trace, summary = self.record("--collect", "os")
        self.assertEqual(summary["gpus"], [])
        self.assertEqual(self.gpu_facts(trace), {})

    def test_devices_of_both_libraries_meet_by_their_unique_ids(self):
        # CUPTI's first device is NVML's second.
        trace = self.folder / "t.sqlite"
        self.strobe("record", "--collect", "gpu", "-o", trace, "--", BIN / "strobe_test_gpu_program", "10",
                    FAKE_NVML_DEVICES="2", FAKE_NVML_TURNED_BY="1")
        facts = self.facts(trace)
        self.assertEqual(facts["gpu.1.sm_count"], "132")
        self.assertNotIn("gpu.0.sm_count", facts)
        self.assertEqual([value for key, value in facts.items() if key.startswith("gpu.of.")], ["1"])
        self.assertTrue(self.counters(trace, "gpu.0.power_w") and self.counters(trace, "gpu.1.power_w"))

    def test_instances_under_mig_are_apart_and_meet_the_work_of_processes(self):
        trace = self.folder / "t.sqlite"
        self.strobe("record", "--collect", "gpu", "--gpu-metrics", "-o", trace, "--", BIN / "strobe_test_gpu_program", "10",
                    FAKE_NVML_MIG="1", FAKE_CUDA_MIG="1")
        facts = self.facts(trace)
        self.assertEqual(facts["gpu.0.mig.2.0.uuid"], "MIG-31000000-0000-0000-0000-000000000002")
        self.assertEqual([value for key, value in facts.items() if key.startswith("gpu.of.")], ["0"])
        self.assertEqual([value for key, value in facts.items() if key.startswith("gpu.mig_of.")], ["2.0"])
        # The driver gives an instance's id, CUPTI the device's: both are GPU 0.
        self.assertEqual(facts["gpu.0.chip"], "GH100")
        self.assertFalse([key for key in facts if key.startswith("gpu.1.")])
        for name in ("power_w", "mig.1.memory_used_bytes", "mig.2.memory_used_bytes"):
            self.assertTrue(self.counters(trace, "gpu.0." + name), name)
        self.assertFalse(self.counters(trace, "gpu.0.busy_percent"))

    def test_samples_outlive_a_kill(self):
        kept, found = self.folder / "kept", self.folder / "found.sqlite"
        command = [STROBE, "record", "--folder", kept, "--gpu-period-ms", "20", "-o", self.folder / "t.sqlite", "--",
                   sys.executable, "-c", "import time; time.sleep(100)"]
        with subprocess.Popen([*map(str, command)], env=self.environment, start_new_session=True) as process:
            self.kill_when(process, kept, found, lambda: len(self.counters(found, "gpu.0.power_w")) > 5)
        self.assertIn("on: NVML", self.facts(found)["gpu.sampling"])

    def test_a_library_that_does_not_fit_its_driver_is_told(self):
        trace, summary = self.record(FAKE_NVML_nvmlInit_v2="18")
        self.assertEqual(summary["gpus"], [])
        self.assertIn("of different versions", self.facts(trace)["gpu.sampling"])

    def test_doctor(self):
        def check(**environment):
            done = subprocess.run([STROBE, "doctor", "--format", "json"], env={**self.environment, **environment},
                                  text=True, capture_output=True, timeout=120, check=False)
            rows = json.loads(done.stdout)["rows"]
            return next(row for row in rows if "GPU samples" in row.values())

        self.assertIn("1 device, driver 580.00", json.dumps(check()))
        self.assertIn("GPU 0 in MIG mode, 3 instances", json.dumps(check(FAKE_NVML_MIG="1")))
        self.assertIn("no temperature_c of GPU 0", json.dumps(check(FAKE_NVML_nvmlDeviceGetTemperature="3")))
        self.assertIn("off: NVML error 9", json.dumps(check(FAKE_NVML_nvmlInit_v2="9")))


class Run(SampleCase):
    def setUp(self):
        super().setUp()
        self.cfg, self.weights = write_tiny_network(self.folder)
        self.calls = self.folder / "calls"
        self.environment["FAKE_NVML_CALLS"] = str(self.calls)

    def command(self, *flags, frames=40):
        return ["run", "--input", self.made(frames), "--model", self.cfg, "--weights", self.weights, "--engine",
                "fakegpu", "-q", "-o", self.out, "--format", "json", *BARE, *flags]

    def test_energy_a_frame(self):
        [run] = json.loads(self.strobe(*self.command("--sessions", "1", frames=50), **SLOW).stdout)["runs"]
        [gpu] = run["gpus"]
        self.assertEqual(gpu["name"], "Fake GPU 9000")  # one device, that NVML and CUPTI both saw
        self.assertNotIn("gpu.1.name", self.facts(run["trace"]))
        self.assertAlmostEqual(gpu["mean_w"], WATTS, delta=0.2 * WATTS)
        self.assertAlmostEqual(gpu["energy_j_per_frame"] * run["frames"], gpu["energy_j"], places=6)
        [run] = json.loads(self.strobe(*self.command("--no-gpu-trace")).stdout)["runs"]
        self.assertNotIn("gpus", run)

    def locked(self):
        return self.calls.read_text() if self.calls.exists() else ""

    def test_clocks_are_held_and_put_back(self):
        done = self.strobe(*self.command("--maximize_clocks"))
        self.assertEqual(done.stderr.strip(), "")
        calls = self.locked().splitlines()
        self.assertIn("nvmlDeviceSetGpuLockedClocks 0 1980 1980", calls)
        self.assertLess(calls.index("nvmlDeviceSetGpuLockedClocks 0 1980 1980"),
                        calls.index("nvmlDeviceResetGpuLockedClocks 0"))
        self.assertEqual(calls[-1], "nvmlDeviceSetPersistenceMode 0 off")

    def test_clocks_are_left_alone_where_nothing_can_run(self):
        wrong = self.folder / "wrong.yaml"
        wrong.write_text("tenants: [{name: a, model: 'spin:x'}]\n")
        for command in (self.command("--maximize_clocks", "--score", "7"),
                        self.command("--maximize_clocks", "--set", "a=b"),
                        ["run", "--input", "/nonexistent.mp4", "--maximize_clocks", "-o", self.out],
                        ["run", "--maximize_clocks"],
                        ["run", wrong, "--maximize_clocks", "-o", self.out],
                        ["run", "--config", wrong, "--maximize_clocks", "-o", self.out]):
            with self.subTest(command=command):
                done = subprocess.run([STROBE, *map(str, command)], env=self.environment, capture_output=True, text=True)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertEqual(self.locked(), "")

    def test_a_missing_right_is_told_and_the_run_goes_on(self):
        done = self.strobe(*self.command("--maximize_clocks"), FAKE_NVML_nvmlDeviceSetPersistenceMode="4")
        self.assertIn("no permission", done.stderr)
        self.assertEqual(self.locked(), "")

    def test_without_a_device_there_is_one_line(self):
        done = self.strobe(*self.command("--maximize_clocks"), STROBE_NVML_LIBRARY="/nowhere/libnvidia-ml.so.1",
                           PATH="/nowhere")
        self.assertIn("no GPU answers", done.stderr)

    def test_clocks_of_a_run_that_is_killed_or_interrupted_are_put_back(self):
        for sent in (signal.SIGKILL, signal.SIGINT, signal.SIGTERM):
            with self.subTest(sent.name):
                self.calls.unlink(missing_ok=True)
                command = [STROBE, *map(str, self.command("--maximize_clocks", "--sessions", "1", frames=3000))]
                with subprocess.Popen(command, env={**self.environment, **SLOW}, stdout=subprocess.DEVNULL,
                                      stderr=subprocess.DEVNULL) as run:
                    self.wait_for("nvmlDeviceSetMemoryLockedClocks")
                    time.sleep(0.2)
                    run.send_signal(sent)
                    self.assertNotEqual(run.wait(timeout=60), 0)
                self.wait_for("nvmlDeviceSetPersistenceMode 0 off")

    def test_clocks_are_held_without_standard_streams(self):
        # Their numbers then are those of what the guardian waits for.
        for closed in ("<&-", "<&- >&-"):
            with self.subTest(closed):
                self.calls.unlink(missing_ok=True)
                command = [*map(str, self.command("--maximize_clocks", "--sessions", "1", frames=3000))]
                with subprocess.Popen(["sh", "-c", f'exec "$@" {closed}', "sh", STROBE, *command],
                                      env={**self.environment, **SLOW}, stdout=subprocess.DEVNULL,
                                      stderr=subprocess.DEVNULL) as run:
                    self.wait_for("nvmlDeviceSetMemoryLockedClocks")
                    time.sleep(0.5)
                    self.assertNotIn("Reset", self.locked())
                    run.kill()
                self.wait_for("nvmlDeviceSetPersistenceMode 0 off")

    def wait_for(self, call):
        for _ in range(1000):
            if call in self.locked():
                return
            time.sleep(0.02)
        self.fail(f"{call} was not called: {self.locked()}")


class Experiment(SampleCase):
    def test_a_cell_has_samples_in_the_columns_of_the_original(self):
        cfg, weights = write_tiny_network(self.folder)
        study = self.folder / "study.yaml"
        study.write_text(f"""
name: gpu
duration: 2s
warmup: 100ms
defaults: {{model: {cfg}, weights: {weights}, engine: fakegpu, source: {{path: {self.made(10)}}}}}
tenants:
  - {{name: a, rate: 20}}
  - {{name: b, rate: 20}}
""")
        for isolation in ("threads", "processes"):
            with self.subTest(isolation):
                done = self.strobe("run", study, "-q", "-o", self.out, "--format", "json", "--again", "--set",
                                   f"isolation={isolation}")
                [cell] = json.loads(done.stdout)["cells"]
                folder = pathlib.Path(cell["trace"]).parent
                with open(next(folder.glob("gpu_*.csv")), encoding="utf-8") as file:
                    rows = list(csv.DictReader(file))
                self.assertEqual(list(rows[0])[:5], ["time", "gpu_util", "mem_util", "mem_used_MB", "power_W"])
                self.assertGreater(len(rows), 8)
                self.assertEqual(float(rows[-1]["power_W"]), WATTS)
                self.assertEqual(float(rows[-1]["mem_used_MB"]), 5 * 1024)
                self.assertEqual(float(rows[-1]["gpu_util"]), 80)
                self.assertEqual(rows[-1]["clock_event_reasons"], "power cap")
                with open(next(folder.glob("cpu_*.csv")), encoding="utf-8") as file:
                    self.assertNotIn("gpu.", file.readline())
                self.assertAlmostEqual(cell_gpus(folder)[0]["mean_w"], WATTS, delta=0.15 * WATTS)


def cell_gpus(folder):
    return json.loads((folder / "cell.json").read_text())["gpus"]["rows"]


if __name__ == "__main__":
    unittest.main()
