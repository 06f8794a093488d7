"""`strobe model export`: networks as ONNX files, and what it refuses."""

from support import Case, built_engines, strobe, write_tiny_network


class Export(Case):
    def export(self, network, *arguments, name="net.onnx"):
        path = self.folder / name
        done = strobe("model", "export", network, "-o", path, *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(done.stdout.strip().split("\n")), 1)
        self.assertIn(str(path), done.stdout)
        return path, done.stdout

    def test_the_same_bytes_each_time(self):
        first, said = self.export("resnet18", "--seed", 3)
        again, _ = self.export("resnet18", "--seed", 3, name="again.onnx")
        other, _ = self.export("resnet18", "--seed", 4, name="other.onnx")
        self.assertIn("seeded", said)
        self.assertEqual(first.read_bytes(), again.read_bytes())
        self.assertNotEqual(first.read_bytes(), other.read_bytes())

    def test_batch_size_and_weights(self):
        cfg, weights = write_tiny_network(self.folder)
        path, said = self.export(cfg, "--weights", weights, "--batch", "dynamic", "--width", 96, "--height", 32)
        self.assertIn("batchx3x32x96", said)
        self.assertNotIn("seeded", said)
        fixed, said = self.export(cfg, "--weights", weights, "--batch", 4, name="fixed.onnx")
        self.assertIn("4x3x64x64", said)
        self.assertNotEqual(path.read_bytes(), fixed.read_bytes())

    def test_a_pruned_network_runs_from_its_file(self):
        if "openvino" not in built_engines():
            self.skipTest("engine openvino is not built")
        done = strobe("model", "prune", "person-tiny", "--levels", "50", "-o", self.folder / "pruned")
        self.assertEqual(done.returncode, 0, done.stderr)
        path, _ = self.export(self.folder / "pruned" / "person-tiny_50.json")
        done = strobe("run", "--input", self.made(5), "--model", path, "--engine", "openvino", "--no-video", "-o",
                      self.folder / "out")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_refusals(self):
        out = self.folder / "net.onnx"
        cases = [(["resnet18", "-o", self.folder / "net.xml"], ["net.xml", ".onnx"]),
                 (["resnet18", "-o", self.folder / "none" / "net.onnx"], ["none", "no such folder"]),
                 (["resnet18", "-o", out, "--batch", "0"], ["--batch", "'0'", "dynamic"]),
                 (["resnet18", "-o", out, "--batch", "two"], ["--batch", "'two'"]),
                 (["resnet19", "-o", out], ["resnet19", "resnet18"]),
                 (["resnet18", "-o", out, "--weights", self.folder / "no.safetensors"], ["no.safetensors"])]
        for arguments, words in cases:
            with self.subTest(arguments):
                self.refused(strobe("model", "export", *arguments), *words)
        self.assertFalse(out.exists())
        (self.folder / "folder.onnx").mkdir()
        self.refused(strobe("model", "export", "resnet18", "-o", self.folder / "folder.onnx"), "folder.onnx")
