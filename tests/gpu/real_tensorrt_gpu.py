"""The engine tensorrt on a real NVIDIA device. Skipped where there is none, or no TensorRT."""
import json
import statistics
import unittest

from real_gpu import HardwareCase, devices
from support import GPU_ENGINES, built_engines


@unittest.skipUnless(devices(), "no NVIDIA device here")
class Tensorrt(HardwareCase):
    def setUp(self):
        super().setUp()
        if "tensorrt" not in built_engines(GPU_ENGINES):
            self.skipTest("engine tensorrt is not built")
        if not built_engines():
            self.skipTest("no engine for the CPU is built, whose values are the right ones")
        self.environment["STROBE_TENSORRT_CACHE"] = str(self.folder / "cache")
        info = json.loads(self.strobe("info", "--format", "json").stdout)["engines"]
        self.precisions = next(one for one in info if one["name"] == "tensorrt")["precisions"]
        if not self.precisions:
            self.skipTest("TensorRT's library is not here")
        self.run_it("--dump-outputs", self.folder / "cpu", engine=built_engines()[0])
        self.right = self.values(self.folder / "cpu")

    def on_gpu(self, *flags, **more):
        [run] = self.run_it("--infer-on-gpu", *flags, engine="tensorrt", **more)
        return run, {name.removeprefix("engine."): value for name, value in self.facts(run["trace"]).items()}

    def test_every_precision_computes_what_the_cpu_does(self):
        for precision, allowed in (("f32", 1e-3), ("f16", 0.05), ("bf16", 0.1)):
            with self.subTest(precision):
                if precision not in self.precisions:
                    self.skipTest("not on this device")
                self.on_gpu("--precision", precision, "--dump-outputs", self.folder / precision)
                self.check_values(self.folder / precision, self.right, allowed)

    def test_what_was_built_is_read_again_and_is_the_same(self):
        layers = {}
        for state in ("miss", "hit"):
            out = self.folder / state
            self.strobe("run", "--input", self.made(12), "--model", "yolov4-tiny", "--engine", "tensorrt", "--infer-on-gpu",
                        "--size", "96x96", "-q", "--no-video", "--limit-seconds", "0", "--profile-runs", "3",
                        "--dump-outputs", self.folder / {"miss": "built", "hit": "read"}[state], "-o", out)
            facts = self.facts(out / "trace.sqlite")
            self.assertEqual(facts["engine.engine_cache"], state)
            layers[state] = {row["kernel"]: row["layers"] for row in self.answer("layers", out, "--fusion")}
        self.assertTrue(layers["miss"])
        self.assertEqual(layers["miss"], layers["hit"])
        self.assertLess(float(facts["engine.read_s"]), float(facts["engine.built_before_in_s"]))
        self.check_values(self.folder / "read", self.values(self.folder / "built"), 1e-5)

    def test_kernels_belong_to_stages_and_frames(self):
        run, _ = self.on_gpu()
        self.check_device_times(run["trace"])
        self.assertTrue(self.has_kernels(run["trace"]))
        frames = {row["frame"] for row in self.answer("kernels", run["trace"], "--by", "frame")}
        self.assertEqual(frames - {None}, set(range(12)))
        stages = {row["stage"] for row in self.answer("kernels", run["trace"], "--by", "stage")}
        self.assertEqual(stages - {None}, {"infer"})

    def test_the_second_part_of_a_split_network(self):
        self.run_it("--dump-outputs", self.folder / "whole", model="resnet18", engine=built_engines()[0])
        run, facts = self.on_gpu("--split-point", "resnet18:layer2", "--dump-outputs", self.folder / "parts",
                                 model="resnet18")
        self.assertEqual(facts["first_part"], built_engines()[0])
        self.assertTrue(self.has_kernels(run["trace"]))
        self.check_values(self.folder / "parts", self.values(self.folder / "whole"), 1e-2)

    def test_pictures_prepared_on_the_gpu(self):
        for level in ("simple", "medium"):
            with self.subTest(level):
                here, there = self.folder / f"{level}-here", self.folder / f"{level}-there"
                self.on_gpu("--prep-level", level, "--dump-outputs", here)
                self.on_gpu("--prep-level", level, "--prep-on-gpu", "--batch-size", "2", "--dump-outputs", there)
                right = self.values(here)
                for name, values in self.values(there).items():
                    mean = statistics.fmean(abs(a - b) / (1 + abs(b)) for a, b in zip(values, right[name], strict=True))
                    self.assertLess(mean, 0.02, name)


if __name__ == "__main__":
    unittest.main()
