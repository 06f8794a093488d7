"""`strobe run` as a video-stream worker: its options, its CSV of steps, split networks, training."""
import array
import contextlib
import csv
import json
import os
import signal
import sqlite3
import subprocess
import time
import unittest
import zipfile

from support import STROBE, Case, built_engines, strobe, write_tiny_network

STEPS = ["step", "read_latency_ms", "prep_latency_ms", "exec_latency_ms", "total_step_latency_ms"]
FAST = ["--limit-seconds", "0", "--profile-runs", "0"]


# A small module as an AOTInductor package, and what it answers to the picture that write_picture makes.
PACKAGE = """
import sys
try:
    import torch
except ImportError as missing:
    sys.stderr.write(str(missing))
    sys.exit(77)
torch.manual_seed(3)
module = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(8 * 14 * 14, 5))
module.eval()
picture = torch.zeros(1, 3, 16, 16)
for c, value in enumerate((90, 40, 10)):
    for y in range(16):
        for x in range(16):
            picture[0, c, y, x] = min(255, value + y + x) / 255
with torch.no_grad():
    program = torch.export.export(module, (picture,))
    torch._inductor.aoti_compile_and_package(program, package_path=sys.argv[1] + "/net.pt2")
    open(sys.argv[1] + "/wanted.f32", "wb").write(module(picture).numpy().tobytes())
"""


def rows_of(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def write_picture(path, colour, size=32):
    """A PPM of one colour with a gradient, so that no two rows are alike."""
    pixels = bytearray()
    for y in range(size):
        for x in range(size):
            pixels += bytes(min(255, channel + y + x) for channel in colour)
    path.write_bytes(b"P6\n%d %d\n255\n" % (size, size) + bytes(pixels))


class Inference(Case):
    def metrics(self, out):
        files = list(out.glob("M_*_metrics.csv"))
        self.assertEqual(len(files), 1, list(out.iterdir()))
        return files[0]

    def test_the_original_options_and_their_csv(self):
        out = self.folder / "out"
        done = strobe("run", "--model-name", "squeezenet1_1", "--size", "64x64", "--input", self.video(40), "--mode",
                      "inference", "--batch-size", "4", "--prep-level", "complex", "--core-bind", "0", "--max-steps", "5",
                      "--engine", self.engine(), "--format", "json", "-o", out, *FAST)
        self.assertEqual(done.returncode, 0, done.stderr)
        run = json.loads(done.stdout)["runs"][0]
        self.assertEqual((run["frames"], run["steps"]), (20, 5))
        path = self.metrics(out)
        self.assertRegex(path.name, r"^M_squeezenet1_1_P_\d+_metrics\.csv$")
        self.assertEqual(run["metrics_csv"], str(path))
        rows = rows_of(path)
        self.assertEqual(list(rows[0]), STEPS)
        self.assertEqual([int(row["step"]) for row in rows], list(range(5)))
        for row in rows:
            times = [float(row[name]) for name in STEPS[1:]]
            self.assertTrue(all(time > 0 for time in times), row)
            self.assertGreaterEqual(times[3] + 1e-6, times[2], "the whole step contains the network")
        facts = strobe("query", out / "trace.sqlite", "SELECT name, value FROM STROBE_FACT", "--format", "csv").stdout
        self.assertIn("cores.bound,0", facts.replace('"', ""))
        self.assertIn("bilateral", facts)

    def test_people_read_what_runs_before_it_does(self):
        done = strobe("run", "--model-name", "squeezenet1_1", "--size", "64x64", "--input", self.video(4), "--core-bind",
                      "0", "--engine", self.engine(), "-o", self.folder / "out", *FAST)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr, "")
        machine, run = done.stdout.split("\n")[:2]
        self.assertRegex(machine, r"^machine: .*, 1 of \d+ cores, \d+ MiB of memory free")
        self.assertRegex(run, r"^run: squeezenet1_1 on .* bound to cores 0$")

    def test_levels_change_what_the_network_sees(self):
        outputs = []
        video = self.video(3)
        for level in ("simple", "medium", "complex"):
            out = self.folder / level
            done = strobe("run", "--model", "squeezenet1_1", "--size", "64x64", "--input", video, "--prep-level", level,
                          "--engine", self.engine(), "--dump-outputs", out / "raw", "--frames", "3", "-q", "-o", out,
                          "--limit-seconds", "0", "--profile-runs", "1")
            self.assertEqual(done.returncode, 0, done.stderr)
            outputs.append((out / "raw" / "output_0.f32").read_bytes())
        self.assertEqual(len(set(outputs)), 3)

    def test_a_split_network_answers_as_the_whole_one(self):
        video = self.video(4)
        outputs = {}
        for engine in built_engines():
            for split in ([], ["--split-point", "resnet18:layer2"]):
                out = self.folder / f"{engine}{len(split)}"
                done = strobe("run", "--model-name", "resnet18", "--size", "64x64", "--input", video, "--engine", engine,
                              "--dump-outputs", out / "raw", "-q", "-o", out, "--limit-seconds", "0",
                              "--profile-runs", "2", *split)
                self.assertEqual(done.returncode, 0, done.stderr)
                outputs[engine, bool(split)] = (out / "raw" / "output_0.f32").read_bytes()
                if split:
                    ranges = strobe("stats", out / "trace.sqlite", "--by", "range", "--format", "json")
                    counts = {row["name"]: row["count"] for row in json.loads(ranges.stdout)["rows"]}
                    self.assertEqual(counts["first part"], counts["second part"])
                    self.assertEqual(counts["first part"], counts["hand-over"])
                    layers = json.loads(strobe("layers", out / "trace.sqlite", "--format", "json").stdout)
                    names = json.dumps(layers)
                    self.assertIn("layer1", names)
                    self.assertIn("layer4", names)
            whole, parts = (array.array("f", outputs[engine, split]) for split in (False, True))
            self.assertEqual(len(whole), len(parts))
            scale = max(abs(value) for value in whole)
            self.assertLess(max(abs(a - b) for a, b in zip(whole, parts)), 1e-3 * scale, engine)

    def test_the_parts_of_a_split_network_may_have_different_engines(self):
        engines = built_engines()
        if len(engines) < 2:
            self.skipTest("one engine is built")
        video, outputs = self.video(3), []
        for name, flags in (("whole", []), ("parts", ["--split-point", "layer2", "--split-engine", engines[1]])):
            out = self.folder / name
            done = strobe("run", "--model-name", "resnet18", "--size", "64x64", "--input", video, "--engine", engines[0],
                          "--dump-outputs", out / "raw", "-q", "-o", out, "--limit-seconds", "0", "--profile-runs", "2",
                          *flags)
            self.assertEqual(done.returncode, 0, done.stderr)
            outputs.append(array.array("f", (out / "raw" / "output_0.f32").read_bytes()))
        scale = max(abs(value) for value in outputs[0])
        self.assertEqual(len(outputs[0]), len(outputs[1]))
        self.assertLess(max(abs(a - b) for a, b in zip(*outputs)), 1e-3 * scale)
        with contextlib.closing(sqlite3.connect(self.folder / "parts" / "trace.sqlite")) as trace:
            facts = dict(trace.execute("select name, value from STROBE_FACT"))
        self.assertEqual((facts["engine"], facts["engine.first_part"]), (engines[0], engines[1]))

    def test_a_compiled_package_answers_as_pytorch(self):
        python = os.environ.get("STROBE_TEST_PYTHON", "python3")
        if "torch" not in built_engines():
            self.skipTest("engine torch is not built")
        made = subprocess.run([python, "-c", PACKAGE, str(self.folder)], capture_output=True, text=True, timeout=600)
        if made.returncode == 77:
            self.skipTest(made.stderr)
        self.assertEqual(made.returncode, 0, made.stderr[-2000:])
        write_picture(self.folder / "one.ppm", (90, 40, 10), size=16)
        out = self.folder / "out"
        done = strobe("run", "--model", self.folder / "net.pt2", "--size", "16x16", "--input", self.folder / "one.ppm",
                      "--engine", "torch", "--enable-compile", "--dump-outputs", out / "raw", "-q", "-o", out,
                      "--limit-seconds", "0")
        self.assertEqual(done.returncode, 0, done.stderr)
        got = array.array("f", (out / "raw" / "output_0.f32").read_bytes())
        wanted = array.array("f", (self.folder / "wanted.f32").read_bytes())
        # The picture reaches the network as it would reach the module: scaled to 0..1.
        self.assertEqual(len(got), len(wanted))
        self.assertLess(max(abs(a - b) for a, b in zip(got, wanted)), 1e-3)
        with zipfile.ZipFile(self.folder / "net.pt2") as whole, \
                zipfile.ZipFile(self.folder / "other.pt2", "w", zipfile.ZIP_STORED) as other:
            for name in whole.namelist():
                data = whole.read(name)
                if name.endswith("_metadata.json"):
                    facts = json.loads(data)
                    self.assertEqual(facts["AOTI_DEVICE_KEY"], "cpu")
                    data = json.dumps(facts | {"AOTI_DEVICE_KEY": "cuda"}).encode()
                other.writestr(name, data)
        done = strobe("run", "--model", self.folder / "other.pt2", "--size", "16x16", "--input",
                      self.folder / "one.ppm", "--engine", "torch", "-q", "-o", out)
        self.refused(done, "other.pt2: compiled for cuda, and asked to run on cpu")
        (self.folder / "cut.pt2").write_bytes((self.folder / "net.pt2").read_bytes()[:1000])
        done = strobe("run", "--model", self.folder / "cut.pt2", "--size", "16x16", "--input", self.folder / "one.ppm",
                      "--engine", "torch", "-q", "-o", out)
        self.refused(done, "cut.pt2")

    def test_what_cannot_be_is_refused(self):
        video = self.video(2)
        base = ["run", "--input", video, "--engine", self.engine(), "-o", self.folder / "out"]
        for flags, words in (
                (["--model", "resnet18", "--split-point", "vgg16:features"], ["vgg16", "resnet18"]),
                (["--model", "resnet18", "--split-point", "resnet18:layer1.0.conv1"], ["2 tensors", "cross"]),
                (["--prep-level", "hard"], ["--prep-level hard", "simple, medium, complex"]),
                (["--prep-filter", "nosuch"], ["filter 'nosuch'"]),
                (["--prep-filter", "fps=1"], ["filter 'fps=1'", "holds pictures back"]),
                (["--split-point", ""], ["--split-point is empty"]),
                (["--model", "resnet18", "--split-point", "resnet18:"], ["expected MODEL:LAYER"]),
                (["--split-engine", "openvino"], ["--split-engine goes with --split-point"]),
                (["--model", "resnet18", "--split-point", "layer3", "--split-engine", "opnvino"],
                 ["--split-engine: no engine is called 'opnvino'", "openvino"]),
                (["--model", "resnet18", "--split-point", "layer3", "--split-engine", self.engine(), "--dry-run"],
                 ["--dry-run with --split-engine"]),
                (["--core-bind", "4000"], ["core 4000"]),
                (["--core-bind", "x"], ["cores 'x'"]),
                (["--infer-on-gpu", "--device-id", "99"], ["cuda:99"]),
                (["--model", "resnet18", "--split-point", "resnet18:layer3", "--infer-on-gpu", "--device-id", "99"],
                 ["cuda:99"]),
                (["--infer-on-gpu", "--device-id", "100"], ["device 'cuda:100'", "cuda:N"]),
                (["--infer-on-gpu", "--dry-run"], ["device cuda:0"]),
                (["--prep-on-gpu"], ["--prep-on-gpu goes with --infer-on-gpu"]),
                (["--infer-on-gpu", "--prep-on-gpu", "--device-id", "99"], ["cuda:99"]),
                (["--infer-on-gpu", "--prep-on-gpu", "--prep-level", "complex"], ["complex", "bilateral"]),
                (["--infer-on-gpu", "--prep-on-gpu", "--prep-filter", "hue=s=2"], ["--prep-filter", "on the CPU"]),
                (["--infer-on-gpu", "--prep-on-gpu", "--model", "resnet18", "--split-point", "resnet18:layer3"],
                 ["--prep-on-gpu and --split-point"]),
                (["--mode", "retrain", "--infer-on-gpu", "--prep-on-gpu"], ["--prep-on-gpu is of --mode inference"]),
                (["--max-steps", "2", "--frames", "3"], ["--max-steps"]),
                (["--mode", "train"], ["--mode train", "inference, retrain"]),
                (["--epochs", "2"], ["--epochs is of --mode retrain"])):
            with self.subTest(flags):
                done = strobe(*base, "-q", *flags)
                self.refused(done, *words)


class Folders(Case):
    def test_one_run_at_a_time(self):
        out = self.folder / "out"
        cfg, weights = write_tiny_network(self.folder)
        command = ["run", "--input", self.endless(), "--model", str(cfg), "--weights", str(weights), "--engine",
                   self.engine(), "-q", "-o", str(out)]
        first = subprocess.Popen([STROBE, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.wait_until(lambda: self.is_writing(out))
        time.sleep(1)
        second = strobe(*command)
        first.send_signal(signal.SIGINT)
        _, stderr = first.communicate(timeout=120)
        self.assertEqual(first.returncode, 130, stderr)
        self.refused(second, "another run is writing into this folder")
        self.assertTrue((out / "trace.sqlite").exists())

    def test_a_killed_runs_recording_is_kept(self):
        out = self.folder / "out"
        cfg, weights = write_tiny_network(self.folder)
        command = ["run", "--input", self.endless(), "--model", str(cfg), "--weights", str(weights), "--engine",
                   self.engine(), "-q", "-o", str(out)]
        first = subprocess.Popen([STROBE, *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.wait_until(lambda: self.is_writing(out))
        time.sleep(0.5)
        first.kill()
        first.wait()
        again = strobe(*command, "--frames", "3")
        self.assertEqual(again.returncode, 0, again.stderr)
        recovered = strobe("recover", out / "spool.killed", "-o", self.folder / "killed.sqlite")
        self.assertEqual(recovered.returncode, 0, recovered.stderr)

    def test_an_interruption_ends_the_warmup(self):
        process = subprocess.Popen([STROBE, "run", "--input", str(self.video(2)), "--model", "resnet18", "--engine",
                                    self.engine(), "--warmup", "1000000", "-q", "-o", str(self.folder / "out")],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        time.sleep(3)
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, stderr)

    def test_a_pipe_is_no_place_for_a_file(self):
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        cfg, weights = write_tiny_network(self.folder)
        out = self.folder / "out"
        done = strobe("run", "--input", self.video(3), "--model", cfg, "--weights", weights, "--engine", self.engine(),
                      "-q", "-o", out, *FAST)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.refused(strobe("export", out / "trace.sqlite", "--to", "chrome", "-o", pipe), "is a device or a pipe")
        self.assertTrue(pipe.is_fifo())


class Retrain(Case):
    def setUp(self):
        super().setUp()
        if "torch" not in built_engines():
            self.skipTest("engine torch is not built")

    def class_folders(self, count=6):
        folder = self.folder / "set"
        for name, colour in (("blue", (10, 20, 180)), ("green", (10, 180, 20)), ("red", (180, 20, 10))):
            (folder / name).mkdir(parents=True)
            for i in range(count):
                write_picture(folder / name / f"{i}.ppm", [min(255, channel + 3 * i) for channel in colour])
        return folder

    def retrain(self, *flags, out="out", model="squeezenet1_1", batch=6):
        return strobe("run", "--mode", "retrain", "--model-name", model, "--size", "32x32", "--batch-size", batch,
                      "--threads", "1", "--format", "json", "-o", self.folder / out, *flags)

    def test_classes_are_learned_and_used(self):
        done = self.retrain("--input", self.class_folders(), "--epochs", "10", "--lr", "0.002", model="resnet18")
        self.assertEqual(done.returncode, 0, done.stderr)
        summary = json.loads(done.stdout)
        self.assertEqual((summary["steps"], summary["items"]), (30, 180))
        self.assertGreater(summary["loss_first"], 4)
        self.assertLess(summary["loss_last"], 0.5)
        self.assertGreater(summary["peak_memory_mib"], 50)
        rows = rows_of(summary["metrics_csv"])
        self.assertEqual(list(rows[0]), STEPS + ["loss"])
        self.assertEqual(len(rows), 30)
        self.assertLess(float(rows[-1]["loss"]), float(rows[0]["loss"]))
        counts = {row["name"]: row["count"] for row in json.loads(
            strobe("stats", summary["trace"], "--by", "range", "--format", "json").stdout)["rows"]}
        for name in ("forward", "backward", "update", "train"):
            self.assertEqual(counts[name], 30, name)
        # The weights are a network's like any other.
        out = self.folder / "use"
        for engine in built_engines():
            done = strobe("run", "--model", "resnet18", "--size", "32x32", "--weights", summary["weights"], "--input",
                          self.folder / "set" / "green", "--engine", engine, "-q", "-o", out, *FAST)
            self.assertEqual(done.returncode, 0, done.stderr)
            answers = json.loads((out / "detections.json").read_text())
            self.assertEqual({frame["classes"][0]["label"] for frame in answers}, {"green"}, engine)

    def test_a_training_that_diverges_leaves_the_old_weights(self):
        data = self.class_folders(2)
        good = self.retrain("--input", data, "--max-steps", "2", "--lr", "0.0001")
        self.assertEqual(good.returncode, 0, good.stderr)
        weights = self.folder / "out" / "weights.safetensors"
        before = weights.read_bytes()
        bad = self.retrain("--input", data, "--max-steps", "400", "--lr", "1e12", "--optimizer", "sgd")
        self.assertEqual(bad.returncode, 3, bad.stderr)
        self.assertIn("the loss became", bad.stderr)
        self.assertEqual(weights.read_bytes(), before)
        self.assertNotIn("weights", json.loads(bad.stdout))

    def test_bad_pictures_and_boxes_cost_nothing_else(self):
        data = self.class_folders(3)
        (data / "red" / "1.ppm").write_bytes(b"P6\n32 32\n255\n")
        done = self.retrain("--input", data, "--epochs", "1", batch=2)
        self.assertEqual(done.returncode, 0, done.stderr)
        summary = json.loads(done.stdout)
        self.assertIn("1 pictures could not be read", " ".join(summary["notes"]))
        done = self.retrain("--input", data, "--epochs", "1", batch=100)
        self.refused(done, "a batch of 100", "9 pictures")

    def test_a_gpu_that_is_not_there_is_refused_before_anything_is_written(self):
        data = self.class_folders(1)
        for engine, words in (("torch", ["device cuda:99"]), ("opencv", ["device cuda:99", "engine opencv", "CPU only"])):
            with self.subTest(engine):
                done = self.retrain("--input", data, "--infer-on-gpu", "--device-id", "99", "--engine", engine)
                if f"engine {engine}: not built" in done.stderr:
                    continue
                self.refused(done, *words)
                self.assertFalse((self.folder / "out").exists())

    def test_goes_on_from_a_checkpoint(self):
        data = self.class_folders(2)
        flags = ["--input", data, "--no-augment", "--shuffle", "1", "--optimizer", "sgd", "--lr", "0.001"]
        whole = self.retrain(*flags, "--max-steps", "4", "--checkpoint-every", "2", out="whole")
        self.assertEqual(whole.returncode, 0, whole.stderr)
        half = self.retrain(*flags, "--max-steps", "2", out="half")
        self.assertEqual(half.returncode, 0, half.stderr)
        rest = self.retrain(*flags, "--max-steps", "4", "--resume", json.loads(half.stdout)["checkpoint"], out="rest")
        self.assertEqual(rest.returncode, 0, rest.stderr)
        summary = json.loads(rest.stdout)
        self.assertEqual((summary["first_step"], summary["steps"]), (2, 2))
        done = self.retrain(*flags, "--max-steps", "2", "--resume", json.loads(half.stdout)["checkpoint"], out="none")
        self.refused(done, "2 steps are done already")

    def test_mixed_precision_and_a_stream_without_labels(self):
        done = self.retrain("--input", self.video(12), "--use-amp", "--max-steps", "4", "--lr", "0.0005")
        self.assertEqual(done.returncode, 0, done.stderr)
        summary = json.loads(done.stdout)
        self.assertEqual(summary["steps"], 4)
        self.assertIn("made up", " ".join(summary["notes"]))

    def test_ctrl_c_keeps_what_was_learned(self):
        out = self.folder / "out"
        process = subprocess.Popen([STROBE, "run", "--mode", "retrain", "--model", "squeezenet1_1", "--size", "32x32",
                                    "--input", str(self.class_folders()), "--max-steps", "100000", "-o", str(out),
                                    "--checkpoint-every", "2"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(600):
            if (out / "checkpoint.safetensors").exists():
                break
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 130, stderr)
        for name in ("weights.safetensors", "checkpoint.safetensors", "trace.sqlite"):
            self.assertTrue((out / name).exists(), name)
        self.assertFalse((out / "spool").exists())

    def test_what_cannot_be_trained_is_refused(self):
        cfg, weights = write_tiny_network(self.folder)
        video = self.video(2)
        (self.folder / "bad.json").write_text('{"images": [')
        (self.folder / "other.json").write_text(json.dumps({
            "images": [{"id": 1, "file_name": "f", "width": 1, "height": 1, "frame": 0}],
            "categories": [{"id": 1, "name": "unicorn"}], "annotations": []}))
        (self.folder / "empty").mkdir()
        base = ["run", "--mode", "retrain", "-q", "-o", self.folder / "out"]
        for flags, words in (
                (["--model", cfg, "--weights", weights, "--input", video], ["detector", "--targets"]),
                (["--model", "resnet18", "--input", video, "--targets", self.folder / "bad.json"], ["bad.json"]),
                (["--model", "yolov4-tiny", "--input", video, "--targets", self.folder / "other.json"],
                 ["other.json", "none of its categories"]),
                (["--model", "resnet18", "--input", self.folder / "empty"], ["empty", "no pictures"]),
                (["--model", "resnet18", "--input", video, "--resume", weights], ["tiny.weights"]),
                (["--model", "resnet18", "--input", video, "--engine", "opencv"], ["opencv", "does not train"]),
                (["--model", "resnet18", "--input", video, "--lr", "0"], ["--learning-rate 0"]),
                (["--model", "resnet18", "--input", video, "--split-point", "layer3"], ["--split-point"])):
            with self.subTest(flags):
                self.refused(strobe(*base, *flags), *words)


if __name__ == "__main__":
    unittest.main()
