"""What is measured and predicted of networks on a GPU, with stand-ins: an engine whose device has a known speed and takes
known memory (fake_engine.cc), and NVML and the driver that are told of it (fake_nvml.cc, fake_gpu.cc)."""
import csv
import json
import unittest

from run_gpu import LIB, GpuCase
from support import write_tiny_network

NVML = {"STROBE_NVML_LIBRARY": str(LIB / "libstrobe_fake_nvml.so"), "FAKE_NVML_REASONS": "0"}
QUICK = ["--repetitions", 3, "--most-repetitions", 5, "--warmup-time", 0.1, "--measure-time", 0.3, "--attempts", 1,
         "--threads", 1, "--stages", "inference", "--engines", "fakegpu"]
CONTEXT, ITEM, TENSORS = 400, 100, 80  # MiB, as fake_engine.cc has them


class DeviceCase(GpuCase):
    def setUp(self):
        super().setUp()
        self.net, self.weights = write_tiny_network(self.folder)
        self.held = self.folder / "held"
        self.environment.update(NVML, FAKE_NVML_HELD=str(self.held))

    def refused(self, done, *parts):
        self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)
        for part in parts:
            self.assertIn(part, done.stderr)


class Profile(DeviceCase):
    def profile(self, *flags, code=0, **environment):
        return self.strobe("model", "profile", "-o", self.out, "--networks", self.net, *QUICK, *flags, code=code,
                           **environment)

    def measured(self):
        with open(self.out / "measurements.csv", newline="") as file:
            return list(csv.DictReader(file))

    def test_memory_is_what_the_process_holds_of_the_device(self):
        self.held.write_text("1 1073741824 0\n")  # of another process, which lives
        self.profile("--device", "cuda:0", "--batch-sizes", "1,4", "--quantities", "memory")
        for row, batch in zip(self.measured(), (1, 4)):
            self.assertEqual((row["passed"], row["device"], row["error"]), ("1", "cuda:0", ""))
            self.assertEqual(float(row["value"]), CONTEXT + batch * ITEM)
            self.assertEqual(float(row["peak"]), batch * ITEM)
            self.assertEqual(float(row["allocated"]), batch * TENSORS)
            self.assertEqual(float(row["before"]), 6 * 1024)  # what the driver's stand-in says, and the other one
            self.assertEqual(int(row["memory_limit"]), int(0.9 * 73 * 1024))
        facts = json.loads((self.out / "machine.json").read_text())["facts"]
        self.assertEqual((facts["cuda:0.name"], facts["cuda:0.memory_mib"], facts["cuda:0.processors"]),
                         ("Fake GPU 9000", "81920", "132"))

    def test_a_batch_that_does_not_fit_did_not_pass(self):
        for name, more in (("by the allocator", {}), ("found out", {"FAKE_ENGINE_HAS_NO_LIMIT": "1"})):
            with self.subTest(name):
                self.out = self.folder / name
                self.profile("--device", "cuda:0", "--batch-sizes", "1,8,16", "--memory-limit", 700, **more)
                rows = self.measured()
                self.assertEqual([row["passed"] for row in rows], ["1", "1", "0", "0"])  # 16 is passed over
                for row in rows[2:]:
                    self.assertTrue(row["error"].startswith("out of memory: 700 MiB were allowed: "), row["error"])
                    self.assertEqual(row["error"].lower().count("out of memory"), 2 if not more else 1)

    def test_latency_is_that_of_the_device(self):
        self.profile("--device", "cuda:0", "--batch-sizes", "1", "--quantities", "latency")
        [row] = self.measured()
        self.assertEqual(row["passed"], "1")
        self.assertGreater(float(row["value"]), 0.08)  # four layers, no launch under 20 us
        self.assertEqual((float(row["gpu_others_share"]), float(row["gpu_throttled_share"]), row["gpu_clock_mhz"],
                          float(row["gpu_clock_spread"])), (0, 0, "1755", 0))

    def test_others_on_the_device_and_a_held_down_clock_disturb(self):
        flags = ["--device", "cuda:0", "--batch-sizes", "1", "--quantities", "latency"]
        self.held.write_text("1 1073741824 30\n")
        self.profile(*flags)
        self.assertEqual((self.measured()[0]["disturbed"], float(self.measured()[0]["gpu_others_share"])), ("1", 0.3))
        self.held.write_text("")
        self.out = self.folder / "hot"
        self.profile(*flags, FAKE_NVML_REASONS="64")
        self.assertEqual((self.measured()[0]["disturbed"], float(self.measured()[0]["gpu_throttled_share"])), ("1", 1))

    def test_what_the_driver_does_not_tell_is_empty(self):
        self.profile("--device", "cuda:0", "--batch-sizes", "1", "--quantities", "latency",
                     FAKE_NVML_nvmlDeviceGetProcessUtilization="3", FAKE_NVML_nvmlDeviceGetClockInfo="3")
        [row] = self.measured()
        self.assertEqual((row["passed"], row["gpu_others_share"], row["gpu_clock_mhz"], row["gpu_clock_spread"]),
                         ("1", "", "", ""))

    def test_without_nvml_latency_is_measured_and_memory_refused(self):
        nowhere = {"STROBE_NVML_LIBRARY": "/nowhere/libnvidia-ml.so.1"}
        flags = ["--device", "cuda:0", "--batch-sizes", "1", "--quantities"]
        self.profile(*flags, "latency", **nowhere)
        self.assertEqual((self.measured()[0]["passed"], self.measured()[0]["memory_limit"]), ("1", ""))
        self.refused(self.profile(*flags, "memory", code=2, **nowhere), "memory of cuda:0 cannot be measured", "/nowhere/")

    def test_a_folder_of_another_gpu_is_refused_and_one_of_the_cpu_takes_it(self):
        self.profile("--batch-sizes", "1", "--quantities", "latency")
        self.profile("--device", "cuda:0", "--batch-sizes", "1", "--quantities", "latency")
        self.assertEqual([row["device"] for row in self.measured()], ["cpu", "cuda:0"])
        machine = self.out / "machine.json"
        machine.write_text(machine.read_text().replace("Fake GPU 9000", "Fake GPU 500"))
        self.refused(self.profile("--device", "cuda:0", "--batch-sizes", "2", code=2), "cuda:0.name", "Fake GPU 500")

    def test_refusals_are_one_line(self):
        self.refused(self.profile("--device", "cuda:1", "--batch-sizes", "1", code=2), "cuda:1", "CUDA sees 1 GPU")
        self.refused(self.profile("--device", "gpu", "--batch-sizes", "1", code=2), "device 'gpu'", "cuda:N")
        self.assertFalse((self.out / "measurements.csv").exists())


class Calibration(DeviceCase):
    @classmethod
    def rates(cls, found):
        return {key: found[key] for key in ("conv1x1_gflops", "conv3x3_gflops", "linear_gflops", "memory_gbytes",
                                            "copy_gbytes", "launch_us")}

    def calibrate(self):
        self.file = self.folder / "device.json"
        self.strobe("calibrate", "--engine", "fakegpu", "--device", "cuda:0", "--seconds", 3, "-o", self.file)
        return json.loads(self.file.read_text())

    def test_the_devices_speed_is_found(self):
        found = self.calibrate()
        self.assertEqual((found["device"], found["device_name"]), ("cuda:0", "Fake GPU 9000"))
        self.assertEqual(found["context_mib"], CONTEXT)
        truth = {"conv1x1_gflops": 1000, "conv3x3_gflops": 1000, "linear_gflops": 1000, "memory_gbytes": 100,
                 "copy_gbytes": 10, "launch_us": 20}
        for key, value in self.rates(found).items():
            # The host's timers and cores are shared with others.
            self.assertGreater(value, 0.6 * truth[key], key)
            self.assertLess(value, 1.7 * truth[key], key)
        # Such a layer waits for memory: 2 * 9 operations for 8 bytes.
        self.assertLess(found["depthwise_gflops"], 1.7 * 100 * 18 / 8)

    def test_a_dry_run_tells_of_the_device(self):
        self.calibrate()
        command = ["run", "--input", self.made(20), "--model", self.net, "--engine", "fakegpu", "--no-video",
                   "--infer-on-gpu", "--dry-run", "--device-speed", self.file]
        said = json.loads(self.strobe(*command, "--format", "json").stdout)
        [run] = said["runs"]
        self.assertEqual((run["device"], run["fits"]), ("cuda:0", True))
        self.assertEqual(said["available_memory_bytes"], 74 << 30)
        self.assertGreater(run["memory_bytes"], CONTEXT << 20)
        self.assertGreater(run["infer_ms"], 0.08)
        self.assertTrue(any("too small to fill the device" in note for note in said["notes"]))
        self.assertIn("Fake GPU 9000", self.strobe(*command).stdout)

        self.held.write_text(f"1 {74 << 30} 0\n")  # nearly all of it is somebody else's
        full = json.loads(self.strobe(*command, "--format", "json", code=1).stdout)
        self.assertFalse(full["fits"])

    def test_a_calibration_of_something_else_is_refused(self):
        self.calibrate()
        command = ["run", "--input", self.made(20), "--model", self.net, "--engine", "fakegpu", "--no-video", "--dry-run",
                   "--device-speed", self.file]
        self.refused(self.strobe(*command, code=2), "of device cuda:0", "cpu was asked for")
        self.file.write_text(self.file.read_text().replace("Fake GPU 9000", "Fake GPU 500"))
        self.refused(self.strobe(*command, "--infer-on-gpu", code=2), "Fake GPU 500", "Fake GPU 9000")
        self.refused(self.strobe(*command, "--infer-on-gpu", "--device-id", 1, code=2), "cuda:1", "CUDA sees 1 GPU")

    def test_refusals_are_one_line(self):
        self.refused(self.strobe("calibrate", "--engine", "fakegpu", "--device", "cuda:7", code=2), "CUDA sees 1 GPU")
        self.refused(self.strobe("calibrate", "--engine", "fakegpu", "--device", "tpu", code=2), "cuda:N")
        self.refused(self.strobe("calibrate", "--device", "cuda:0", code=2), "--engine")


class Experiment(DeviceCase):
    def test_tenants_on_the_device_are_forecast_with_its_memory(self):
        file = self.folder / "two.yaml"
        file.write_text(f"""duration: 2s
warmup: 100ms
defaults: {{model: {self.net}, weights: {self.weights}, engine: fakegpu, device: cuda:0, deadline: 500ms,
            source: {{path: {self.made(10)}}}, rate: 10}}
tenants: [{{name: a}}, {{name: b, batch: 1}}]
""")
        command = ["run", file, "--dry-run", "--probe-seconds", 1]
        said = json.loads(self.strobe(*command, "--format", "json").stdout)
        [cell] = said["cells"]
        for tenant in cell["tenants"]:
            self.assertEqual(tenant["device"], "cuda:0")
            self.assertGreaterEqual(tenant["device_memory_bytes"], (CONTEXT + ITEM) << 20)
        self.assertTrue(any("on a GPU" in note for note in said["notes"]))
        # Each by itself fits, both together do not.
        self.held.write_text(f"1 {(74 << 30) - (700 << 20)} 0\n")
        full = json.loads(self.strobe(*command, "--format", "json", code=1).stdout)
        self.assertFalse(full["fits"])
        self.assertTrue(any("does not fit onto cuda:0" in note for note in full["notes"]))


if __name__ == "__main__":
    unittest.main()
