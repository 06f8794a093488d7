"""Engine tensorrt from outside: refused where it is not built or has no GPU; on stand-ins for TensorRT and the driver
(tests/engines/tensorrt) a run, its layers, doctor and info."""
import contextlib
import csv
import io
import json
import os
import pathlib
import sqlite3
import unittest

from support import GPU_ENGINES, STROBE, Case, built_engines, strobe

STAND_INS = pathlib.Path(os.environ.get("STROBE_TEST_BIN", pathlib.Path(STROBE).parent)).parent / "lib/fake_tensorrt"


class Refused(Case):
    def test_where_it_is_not_built(self):
        if "tensorrt" in built_engines(GPU_ENGINES):
            self.skipTest("engine tensorrt is built")
        done = strobe("run", "--engine", "tensorrt", "--infer-on-gpu", "--input", self.made(3), "--model", "person-tiny",
                      "-o", self.folder / "out")
        self.refused(done, "engine tensorrt is not built", "headers of TensorRT", "TensorRT_ROOT")

    def test_on_the_cpu(self):
        if "tensorrt" not in built_engines(GPU_ENGINES):
            self.skipTest("engine tensorrt is not built")
        done = strobe("run", "--engine", "tensorrt", "--input", self.made(3), "--model", "person-tiny",
                      "-o", self.folder / "out")
        self.refused(done, "engine tensorrt runs on GPUs only", "--infer-on-gpu")

    def test_a_tenant_on_the_cpu(self):
        if "tensorrt" not in built_engines(GPU_ENGINES):
            self.skipTest("engine tensorrt is not built")
        study = self.folder / "study.yaml"
        study.write_text(f"tenants: [{{name: a, model: person-tiny, engine: tensorrt, source: {self.made(3)}}}]\n")
        done = strobe("run", study, "-o", self.folder / "out")
        self.refused(done, "study.yaml: tenant a: engine tensorrt runs on GPUs only", "device: cuda:N")
        self.assertFalse((self.folder / "out").exists(), "before a cell was begun")
        study.write_text("tenants: [{name: a, model: 'spin:1ms', engine: tensorrt, rate: 100}]\nduration: 100ms\n")
        self.assertEqual(strobe("run", study, "-o", self.folder / "out").returncode, 0, "which needs no engine")

    def test_without_a_driver_or_its_library(self):
        if "tensorrt" not in built_engines(GPU_ENGINES):
            self.skipTest("engine tensorrt is not built")
        for device, word in [("/none/libcuda.so.1", "no NVIDIA driver"), (self.driver(), "TensorRT's library")]:
            environment = {**os.environ, "STROBE_CUDA_LIBRARY": str(device),
                           "STROBE_TENSORRT_LIBRARY": str(self.folder)}
            done = strobe("run", "--engine", "tensorrt", "--infer-on-gpu", "--input", self.made(3), "--model",
                          "person-tiny", "--no-gpu-trace", "-o", self.folder / "out", env=environment)
            self.refused(done, word)

    @staticmethod
    def driver():
        libraries = sorted(STAND_INS.glob("libnvinfer.so.*"))
        if not libraries:
            raise unittest.SkipTest("the stand-in was not built")
        return libraries[0]


class OnStandIns(Case):
    def setUp(self):
        super().setUp()
        if "tensorrt" not in built_engines(GPU_ENGINES):
            self.skipTest("engine tensorrt is not built")
        self.environment = {**os.environ, "STROBE_CUDA_LIBRARY": str(Refused.driver()),
                            "STROBE_TENSORRT_LIBRARY": str(STAND_INS),
                            "STROBE_TENSORRT_CACHE": str(self.folder / "cache")}

    def strobe(self, *arguments):
        done = strobe(*arguments, env=self.environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_a_run_and_its_layers(self):
        out = self.folder / "out"
        self.strobe("run", "--engine", "tensorrt", "--infer-on-gpu", "--input", self.made(20), "--model", "person-tiny",
                    "--no-video", "--no-gpu-trace", "-o", out)
        rows = list(csv.DictReader(io.StringIO(self.strobe("layers", out, "--fusion", "--format", "csv"))))
        layers = [layer for row in rows for layer in row["layers"].split("+")]
        self.assertEqual(len(layers), len(set(layers)))
        shown = json.loads(self.strobe("model", "show", "person-tiny", "--format", "json"))["rows"]
        computing = [row["name"] for row in shown if row["type"] in ("Convolution", "BatchNorm", "Activation", "Add")]
        self.assertLessEqual({name for name in computing if not name.endswith("linear")}, set(layers))
        fused = next(row for row in rows if row["layers"] == "stem.conv+stem.bn+stem.act")
        self.assertEqual(fused["type"], "CaskConvolution")
        self.assertEqual(float(fused["p50_us"]), 250)  # as the stand-in's profiler says of the first layer

    def test_what_was_built_is_found_again(self):
        arguments = ["run", "--engine", "tensorrt", "--infer-on-gpu", "--input", self.made(5), "--model", "person-tiny",
                     "--no-video", "--no-gpu-trace", "--limit-seconds", "0"]

        def run(name):
            done = strobe(*arguments, "-o", self.folder / name, env=self.environment)
            self.assertEqual(done.returncode, 0, done.stderr)
            with contextlib.closing(sqlite3.connect(self.folder / name / "trace.sqlite")) as trace:
                facts = dict(trace.execute("select name, value from STROBE_FACT"))
            return done.stderr, facts["engine.engine_cache"], self.strobe("layers", self.folder / name, "--format", "csv")

        noise, state, layers = run("first")
        self.assertEqual((noise, state), ("", "miss"))
        self.assertEqual(run("second")[1:], ("hit", layers))
        file, = (self.folder / "cache").glob("*.strobe-engine")
        file.write_bytes(file.read_bytes()[:-100])
        noise, state, again = run("third")
        self.assertEqual((state, again), ("miss", layers))
        self.assertRegex(noise, r"\Astrobe: note: TensorRT's engine cache: .*: is damaged or none of Strobe's\n\Z")
        self.assertEqual(run("fourth")[1:], ("hit", layers))

    def test_the_second_part_of_a_split_network(self):
        first = next((one for one in ("openvino", "torch", "opencv") if one in built_engines()), None)
        if first is None:
            self.skipTest("no engine for the CPU is built")
        arguments = ["run", "--engine", "tensorrt", "--infer-on-gpu", "--input", self.made(5), "--model", "person-tiny",
                     "--split-point", "stem.act", "--no-video", "--no-gpu-trace", "--limit-seconds", "0"]
        for name, flags, engine in (("named", ["--split-engine", first, "--precision", "f16"], first),
                                    ("usual", [], built_engines()[0])):
            out = self.folder / name
            self.strobe(*arguments, *flags, "-o", out)
            with contextlib.closing(sqlite3.connect(out / "trace.sqlite")) as trace:
                facts = dict(trace.execute("select name, value from STROBE_FACT"))
            self.assertEqual((facts["engine.first_part"], facts["engine.first_part_precision"]), (engine, "f32"))
            self.assertEqual(facts["engine.precision"], "f16" if flags else "f32")
            self.assertEqual(facts["engine.device"], "cuda:0")
            ranges = json.loads(self.strobe("stats", out / "trace.sqlite", "--by", "range", "--format", "json"))["rows"]
            counts = {row["name"]: row["count"] for row in ranges}
            self.assertEqual(counts["first part"], counts["second part"])
            rows = list(csv.DictReader(io.StringIO(self.strobe("layers", out, "--fusion", "--format", "csv"))))
            of_tensorrt = [row for row in rows if row["implementation"].startswith("stand_in")]
            self.assertTrue(of_tensorrt)
            self.assertFalse([row for row in of_tensorrt if "stem" in row["layers"]])
            self.assertTrue([row for row in rows if "stem.conv" in row["layers"].split("+")])
        self.refused(strobe(*arguments, "--split-engine", "tensorrt", "-o", self.folder / "none", env=self.environment),
                     "--split-engine tensorrt: runs on GPUs only")

    def test_preprocessing_on_the_gpu(self):
        for level in ("simple", "medium"):
            out = self.folder / level
            builds = self.folder / f"{level}.builds"
            self.environment["FAKE_TRT_BUILDS"] = str(builds)
            self.strobe("run", "--engine", "tensorrt", "--infer-on-gpu", "--prep-on-gpu", "--prep-level", level,
                        "--input", self.made(9), "--model", "person-tiny", "--batch-size", "2", "--no-video",
                        "--no-gpu-trace", "-o", out)
            with contextlib.closing(sqlite3.connect(out / "trace.sqlite")) as trace:
                facts = dict(trace.execute("select name, value from STROBE_FACT"))
            self.assertEqual(facts["prep.device"], "cuda:0")
            ranges = json.loads(self.strobe("stats", out / "trace.sqlite", "--by", "range", "--format", "json"))["rows"]
            self.assertGreaterEqual({row["name"]: row["count"] for row in ranges}["prep"], 9)
            # The network, which the second level finds in the cache, and the one kind of picture, before the run.
            self.assertEqual(builds.read_text(), "bb" if level == "simple" else "b")

    def test_an_engine_file(self):
        version = self.version()
        file = self.folder / "net.engine"
        file.write_text(f"FAKETRT {version} GH100\ninput\tin\t1\t1\t3\t32\t32\noutput\tout\t1\t1\t10\nlayer\tonly\n")
        arguments = ["run", "--engine", "tensorrt", "--infer-on-gpu", "--input", self.made(5), "--model", file,
                     "--no-video", "--no-gpu-trace", "-o", self.folder / "out"]
        self.strobe(*arguments)
        file.write_text("FAKETRT 80601 GH100\n")
        self.refused(strobe(*arguments, env=self.environment), "net.engine", "same version")

    def test_info_and_doctor(self):
        info = next(one for one in json.loads(self.strobe("info", "--format", "json"))["engines"]
                    if one["name"] == "tensorrt")
        self.assertEqual(info["precisions"], ["f32", "f16", "bf16"])
        self.assertEqual(info["file_formats"], [".onnx", ".engine", ".plan"])
        checks = json.loads(strobe("doctor", "--format", "json", env=self.environment).stdout)["rows"]
        found = next(row for row in checks if row["check"] == "engine tensorrt")
        self.assertEqual(found["state"], "broken", "the stand-in computes something else")
        self.assertIn("is right", found["detail"])
        self.assertFalse((self.folder / "cache").exists(), "doctor tries to build, and leaves nothing behind")

    def version(self):
        info = json.loads(self.strobe("info", "--format", "json"))["engines"]
        major, minor, patch = next(one["version"] for one in info if one["name"] == "tensorrt").split(".")
        return int(major) * 10000 + int(minor) * 100 + int(patch)
