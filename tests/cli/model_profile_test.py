"""strobe model profile: real measurements of a small network, resumption, failures, planted disturbances."""
import csv
import json
import os
import signal
import subprocess
import time

from support import STROBE, Case, built_engines, strobe, write_tiny_network

FIRST = ["net", "level", "bs", "quantity", "value", "unit", "passed"]

QUICK = ["--repetitions", 3, "--most-repetitions", 5, "--warmup-time", 0.2, "--measure-time", 0.2, "--attempts", 1,
         "--threads", 1]


class Profile(Case):
    def setUp(self):
        super().setUp()
        self.engines = built_engines()
        if "torch" not in self.engines:
            self.skipTest("the engine torch is not built")
        self.out = self.folder / "out"
        self.net, _ = write_tiny_network(self.folder)

    def profile(self, *arguments, **keywords):
        return strobe("model", "profile", "-o", self.out, *QUICK, *arguments, **keywords)

    def done(self, *arguments):
        done = self.profile(*arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def rows(self):
        with open(self.out / "measurements.csv", newline="") as file:
            return list(csv.DictReader(file))

    def test_training_and_inference_are_measured(self):
        engines = ["torch"] + [name for name in ("openvino", "opencv") if name in self.engines]
        done = self.done("--networks", self.net, "--batch-sizes", "2,4", "--stages", "training,inference", "--engines",
                         ",".join(engines))
        self.assertIn(f"{8 + 4 * (len(engines) - 1)} measured", done.stdout)
        rows = self.rows()
        self.assertEqual(list(rows[0])[:7], FIRST)
        self.assertEqual({(row["stage"], row["engine"], row["bs"], row["quantity"]) for row in rows},
                         {(stage, engine, batch, quantity) for stage in ("training", "inference") for engine in engines
                          for batch in "24" for quantity in ("memory", "latency")
                          if stage == "inference" or engine == "torch"})
        for row in rows:
            self.assertEqual((row["net"], row["level"], row["passed"], row["device"], row["threads"], row["error"]),
                             ("tiny", "0", "1", "cpu", "1", ""))
            self.assertEqual(row["unit"], "MiB" if row["quantity"] == "memory" else "ms")
            self.assertGreater(float(row["value"]), 0)
            self.assertLessEqual(float(row["p5"]), float(row["median"]))
            self.assertLessEqual(float(row["median"]), float(row["p95"]))
            if row["quantity"] == "memory":
                self.assertEqual(row["repetitions"], "3")
                # The peak of the whole process is beyond what it had and what it got in a step.
                self.assertGreaterEqual(float(row["peak"]) + 0.01, float(row["before"]) + float(row["p95"]))
            else:
                self.assertIn(int(row["repetitions"]), range(3, 6))
                self.assertGreaterEqual(int(row["warmup"]), 1)
                self.assertIn(row["disturbed"], ("0", "1"))
        machine = json.loads((self.out / "machine.json").read_text())
        self.assertIn("cpu.cores_online", machine["facts"])
        self.assertEqual(machine["settings"]["seed"], 1)
        with open(self.out / "layers.csv", newline="") as file:
            layers = list(csv.DictReader(file))
        self.assertEqual({row["net"] for row in layers}, {"tiny"})
        self.assertIn("conv", {row["type"] for row in layers})

    def test_larger_batches_take_more_memory(self):
        self.done("--networks", "squeezenet1_1", "--width", 64, "--height", 64, "--batch-sizes", "1,64", "--quantities",
                  "memory")
        small, large = (float(row["value"]) for row in self.rows())
        # What backward keeps of 63 pictures more: 12288 floats a picture of the input alone, and far more of the layers.
        self.assertGreater(large - small, 63 * 12288 * 4 / 2**20)

    def test_a_repeated_call_measures_what_is_missing(self):
        self.done("--networks", self.net, "--batch-sizes", 2)
        before = (self.out / "measurements.csv").read_text()
        self.assertIn("0 measured, 2 were there", self.done("--networks", self.net, "--batch-sizes", 2).stdout)
        self.assertEqual((self.out / "measurements.csv").read_text(), before)
        # Other batch sizes are added; a torn line is dropped.
        with open(self.out / "measurements.csv", "a") as file:
            file.write("tiny,0,3,mem")
        self.assertIn("2 measured, 2 were there", self.done("--networks", self.net, "--batch-sizes", "2,3").stdout)
        text = (self.out / "measurements.csv").read_text()
        self.assertTrue(text.startswith(before))
        self.assertEqual([row["bs"] for row in self.rows()], ["2", "2", "3", "3"])
        self.refused(self.profile("--networks", self.net, "--batch-sizes", 2, "--seed", 5), "seed", "another folder")

    def test_a_folder_of_a_version_without_the_columns_of_gpus_goes_on(self):
        self.done("--networks", self.net, "--batch-sizes", 2)
        new, file = self.rows(), self.out / "measurements.csv"
        with open(file, newline="") as before:
            rows = list(csv.reader(before))
        at = rows[0].index("gpu_others_share")
        self.assertEqual(rows[0][at + 3], "gpu_clock_spread")
        file.write_text("".join(",".join(row[:at] + row[at + 4:]) + "\n" for row in rows))
        older = file.read_text()
        self.assertIn("0 measured, 2 were there", self.done("--networks", self.net, "--batch-sizes", 2).stdout)
        self.assertEqual(file.read_text(), older)
        self.assertIn("2 measured, 2 were there", self.done("--networks", self.net, "--batch-sizes", "2,3").stdout)
        self.assertEqual(self.rows()[:2], new)
        self.assertEqual([row["bs"] for row in self.rows()], ["2", "2", "3", "3"])
        file.write_text(older.replace("stationary", "steady", 1))
        self.refused(self.profile("--networks", self.net, "--batch-sizes", 4), "column 18 is 'steady', expected 'stationary'",
                     "another folder")

    def test_a_refusal_leaves_nothing_where_nothing_was(self):
        bad = self.folder / "bad.cfg"
        bad.write_text("garbage\n")
        for words in (("--networks", self.net, "--batch-sizes", 1, "--device", "cuda:99"), ("--networks", bad, "--batch-sizes", 1),
                      ("--networks", "squeezenet1_1", "--batch-sizes", 1, "--width", 1, "--height", 1)):
            with self.subTest(words=words):
                self.refused(self.profile(*words))
                self.assertFalse(self.out.exists())
        # Of a folder that was there nothing is taken away.
        self.out.mkdir()
        self.refused(self.profile("--networks", bad, "--batch-sizes", 1))
        self.assertEqual(list(self.out.iterdir()), [])

    def test_killed_in_the_middle_it_goes_on(self):
        words = [STROBE, "model", "profile", "-o", self.out, *QUICK, "--networks", self.net, "--batch-sizes",
                 "1,2,3,4,5,6", "--quantities", "latency"]
        run = subprocess.Popen([str(word) for word in words], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        file = self.out / "measurements.csv"
        end = time.time() + 120
        while time.time() < end and (not file.exists() or file.read_text().count("\n") < 3):
            time.sleep(0.02)
        run.send_signal(signal.SIGKILL)
        run.wait()
        kept = file.read_text().count("\n") - 1
        self.assertIn(kept, range(2, 6))
        # Its child has gone with it, and so has the lock of the folder.
        self.assertIn(f"{6 - kept} measured, {kept} were there", self.done(*words[3:][len(QUICK) + 2:]).stdout)
        self.assertEqual(sorted(row["bs"] for row in self.rows()), list("123456"))

    def test_an_interrupt_ends_it_between_rows(self):
        words = [STROBE, "model", "profile", "-o", self.out, *QUICK, "--networks", self.net, "--batch-sizes",
                 ",".join(map(str, range(1, 60)))]
        run = subprocess.Popen([str(word) for word in words], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        file = self.out / "measurements.csv"
        end = time.time() + 120
        while time.time() < end and (not file.exists() or file.read_text().count("\n") < 2):
            time.sleep(0.02)
        run.send_signal(signal.SIGINT)
        _, errors = run.communicate(timeout=60)
        self.assertEqual(run.returncode, 130, errors)
        self.assertIn("interrupted", errors)
        self.assertTrue(file.read_text().endswith("\n"))

    def test_out_of_memory_is_a_row_and_ends_the_network(self):
        # 128 pictures of 416x416 are 254 MiB by themselves.
        limits = ["--networks", "squeezenet1_1", "--width", 416, "--height", 416, "--batch-sizes", "1,128,256",
                  "--memory-limit", 200, "--quantities", "latency", "--stages", "inference"]
        done = self.done(*limits)
        self.assertIn("2 measured, 1 did not pass, 1 passed over", done.stdout)
        one, many = self.rows()
        self.assertEqual((one["passed"], many["passed"], many["value"]), ("1", "0", ""))
        self.assertTrue(many["error"].startswith("out of memory: 200 MiB were allowed"), many["error"])
        # Repeated, nothing is measured; without till_first_fail the largest one is tried, too.
        self.assertIn("0 measured, 2 were there, 1 passed over", self.done(*limits).stdout)
        self.assertIn("1 measured, 2 were there, 1 did not pass", self.done(*limits, "--till-first-fail", "false").stdout)

    def test_a_measurement_that_takes_too_long_is_a_row(self):
        done = self.done("--networks", "resnet18", "--batch-sizes", "64", "--quantities", "latency", "--timeout", 0.5)
        self.assertIn("1 did not pass", done.stdout)
        row, = self.rows()
        self.assertEqual((row["passed"], row["value"]), ("0", ""))
        self.assertTrue(row["error"].startswith("timeout"), row["error"])

    def test_pruned_levels(self):
        self.done("--networks", "squeezenet1_1", "--width", 64, "--height", 64, "--levels", "0,80", "--batch-sizes", 8)
        values = {(row["level"], row["quantity"]): float(row["value"]) for row in self.rows()}
        self.assertGreater(values["0", "memory"], values["80", "memory"])
        with open(self.out / "layers.csv", newline="") as file:
            channels = {"0": 0, "80": 0}
            for row in csv.DictReader(file):
                channels[row["level"]] += int(row["oc"]) if row["type"] == "conv" else 0
        self.assertGreater(channels["0"], 2 * channels["80"])

    def test_a_busy_machine_is_seen(self):
        # Loops on every core take half of it from what is measured.
        loops = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(os.cpu_count())]
        try:
            done = strobe("model", "profile", "-o", self.out, "--networks", "squeezenet1_1", "--width", 96, "--height", 96,
                          "--batch-sizes", 8, "--quantities", "latency", "--threads", 1, "--warmup-time", 0.2,
                          "--measure-time", 1, "--most-repetitions", 500, "--half-width", 0, "--attempts", 2)
            self.assertEqual(done.returncode, 0, done.stderr)
        finally:
            for loop in loops:
                loop.kill()
                loop.wait()
        row, = self.rows()
        self.assertEqual((row["disturbed"], row["attempts"]), ("1", "2"))
        self.assertGreater(float(row["others_share"]), 0.2)
        self.assertGreater(float(row["wait_share"]), 0.02)
        self.assertGreater(int(row["involuntary_switches"]), 0)

    def test_files_and_their_errors(self):
        config = self.folder / "profile.yaml"
        config.write_text(f"networks: [{{file: {self.net.name}, name: mine, level: 40}}]\nbatch_sizes: [2]\n"
                          "quantities: [latency]\n")
        self.done("--config", config)
        row, = self.rows()
        self.assertEqual((row["net"], row["level"]), ("mine", "40"))
        config.write_text("networks: [resnet18]\nbatch_sizes: [2, many]\n")
        self.refused(self.profile("--config", config), f"{config}:2:18: expected a whole number")
        config.write_text("networks: [resnet18\n")
        self.refused(self.profile("--config", config), f"{config}:2:1:")
        self.refused(self.profile("--config", self.folder / "none.yaml"), "none.yaml")
        self.refused(self.profile(), "no network is named")
        self.refused(self.profile("--networks", "resnet19", "--batch-sizes", 1), "resnet19", "resnet18")
        self.refused(self.profile("--networks", "resnet18", "--batch-sizes", "1,x"), "--batch-sizes", "whole number")
        self.refused(self.profile("--networks", "resnet18", "--batch-sizes", 1, "--device", "gpu"), "device 'gpu'")
        if "openvino" in self.engines:
            self.refused(self.profile("--networks", "resnet18", "--batch-sizes", 1, "--engines", "openvino"), "torch")

    def test_calibration_of_the_device(self):
        self.done("--networks", self.net, "--batch-sizes", 1, "--quantities", "memory", "--calibration", 3)
        found = json.loads((self.out / "calibration-torch.json").read_text())
        self.assertEqual((found["engine"], found["threads"]), ("torch", 1))
        for key in ("conv1x1_gflops", "conv3x3_gflops", "depthwise_gflops", "linear_gflops", "memory_gbytes", "launch_us"):
            self.assertGreater(found[key], 0)
