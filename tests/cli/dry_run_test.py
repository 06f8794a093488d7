"""strobe run --dry-run, strobe calibrate --engine, strobe layers --device-speed."""
import json
import pathlib
import subprocess
import tempfile
import unittest

from support import STROBE, need

VIDEO = "video/vtest.avi"


def strobe(*words, code=0):
    done = subprocess.run([STROBE, *map(str, words)], capture_output=True, text=True, timeout=300)
    assert done.returncode == code, f"{words}: {done.returncode}: {done.stderr}{done.stdout}"
    return done


class DryRun(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = pathlib.Path(cls.folder.name)
        cls.device = cls.path / "device.json"
        for engine in ("openvino", "torch", "opencv"):
            made = subprocess.run([STROBE, "calibrate", "--engine", engine, "--threads", "1", "--seconds", "2", "-o",
                                   str(cls.device)], capture_output=True, text=True, timeout=300)
            if made.returncode == 0:
                cls.engine = engine
                return
        raise unittest.SkipTest("no engine is built: " + made.stderr)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_says_what_a_run_would_come_to(self):
        video = need(VIDEO)
        said = json.loads(strobe("run", "--input", video, "--model", "squeezenet1_1", "--engine", self.engine, "--dry-run",
                                 "--device-speed", self.device, "--format", "json").stdout)
        self.assertTrue(said["dry_run"])
        run = said["runs"][0]
        self.assertEqual(run["engine"], self.engine)
        for key in ("infer_ms", "inference_fps", "end_to_end_fps", "memory_bytes"):
            self.assertGreater(run[key], 0, key)
        self.assertLessEqual(run["end_to_end_fps"], run["inference_fps"])
        self.assertGreater(run["memory_bytes"], 4 * 1235496)  # its parameters
        # The run itself: other programs may slow it, nothing makes it several times as fast as its layers allow.
        out = self.path / "out"
        real = json.loads(strobe("run", "--input", video, "--model", "squeezenet1_1", "--engine", self.engine, "--frames",
                                 "60", "--format", "json", "-o", out, "--quiet").stdout)["runs"][0]
        self.assertLess(real["end_to_end_fps"], 3 * run["end_to_end_fps"])

        layers = json.loads(strobe("layers", out / "trace.sqlite", "--device-speed", self.device, "--format",
                                   "json").stdout)
        rows = {row["layer"]: row for row in layers["rows"]}
        self.assertGreater(rows["features.0"]["predicted_us"], 0)
        self.assertGreater(rows["features.0"]["measured_over_predicted"], 0)
        self.assertTrue(any("predicted" in note for note in layers["notes"]))

    def test_a_larger_batch_and_network_take_longer(self):
        video = need(VIDEO)
        times = {}
        for model, batch in (("squeezenet1_1", 1), ("squeezenet1_1", 4), ("resnet50", 1)):
            said = json.loads(strobe("run", "--input", video, "--model", model, "--batch", batch, "--engine", self.engine,
                                     "--no-video", "--dry-run", "--device-speed", self.device, "--format", "json").stdout)
            times[model, batch] = said["runs"][0]["infer_ms"]
        self.assertGreater(times["squeezenet1_1", 4], 2 * times["squeezenet1_1", 1])
        self.assertGreater(times["resnet50", 1], 4 * times["squeezenet1_1", 1])

    def test_an_experiment_is_forecast_from_each_tenant_alone(self):
        file = self.path / "two.yaml"
        file.write_text("duration: 5s\nwarmup: 200ms\ndefaults: {source: synthetic, deadline: 100ms}\ntenants:\n"
                        "  - {name: a, model: 'spin:5ms', rate: 20}\n  - {name: b, model: 'spin:20ms', rate: 10}\n"
                        "grid: {policy: [fifo, priority], b.rate: [10, 30]}\n")
        done = subprocess.run([STROBE, "run", str(file), "--dry-run", "--probe-seconds", "1", "--format", "json"],
                              capture_output=True, text=True, timeout=300)
        said = json.loads(done.stdout)
        self.assertEqual(done.returncode, 0 if said["fits"] else 1)
        self.assertEqual(len(said["cells"]), 4)
        for cell in said["cells"]:
            a, b = cell["tenants"]
            self.assertGreaterEqual(a["p99_ms"], a["p50_ms"])
            self.assertGreaterEqual(a["p50_ms"], 0.9 * a["alone_p50_ms"])
            self.assertGreater(b["memory_bytes"], 1e6)
            self.assertEqual(cell["memory_bytes"], a["memory_bytes"] + b["memory_bytes"])
        # Both want the device for 0.3 of the time, or for 0.7 of it: then a waits longer.
        slow, busy = said["cells"][0]["tenants"][0], said["cells"][1]["tenants"][0]
        self.assertGreater(busy["p99_ms"], slow["alone_p50_ms"] * 2)
        self.assertFalse((self.path / "strobe-out").exists())

    def test_errors_are_one_line(self):
        for words, part in (
            (["run", "--input", "nothing.mp4", "--dry-run", "--device-speed", self.device], "nothing.mp4"),
            (["run", "--dry-run"], "--input"),
            (["calibrate", "--engine", "nosuch"], "nosuch"),
            (["run", "--input", "x.mp4", "--mode", "retrain", "--engine", "torch", "--dry-run"], "retrain"),
        ):
            done = subprocess.run([STROBE, *map(str, words)], capture_output=True, text=True, timeout=120)
            self.assertIn(done.returncode, (2, 3), words)
            self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)
            self.assertIn(part, done.stderr)


if __name__ == "__main__":
    unittest.main()
