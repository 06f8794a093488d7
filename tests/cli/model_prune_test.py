"""`strobe model prune`: families of networks on disk, read again by everything that takes a network; `model show`."""
import csv
import json
import struct

from support import Case, built_engines, need, strobe, write_tiny_network


def rows(done):
    return json.loads(done.stdout)["rows"]


def tensors_of(path):
    """Shapes by name, from the header of a safetensors file."""
    data = path.read_bytes()
    header = json.loads(data[8:8 + struct.unpack("<Q", data[:8])[0]])
    return {name: entry["shape"] for name, entry in header.items() if name != "__metadata__"}


def convolutions(path):
    return [layer["out_channels"] for layer in json.loads(path.read_text())["layers"] if layer["type"] == "Convolution"]


class Prune(Case):
    def prune(self, *arguments, network="resnet18"):
        done = strobe("model", "prune", network, "-o", self.folder / "out", "--format", "json", *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return rows(done)

    def test_family_of_resnet18(self):
        for method in ["uniform", "random", "l1"]:
            table = self.prune("--levels", "0,45,...,90", "--method", method, "--seed", 1)
            self.assertEqual([row["level"] for row in table], [0, 45, 90])
            self.assertEqual(table[0]["parameters"], 11689512)
            self.assertEqual(table[0]["parameters_left"], 1)
            self.assertEqual(table[0]["filters"], 4800)
            for row in table:
                self.assertAlmostEqual(row["filters_left"], 1 - row["level"] / 100, delta=0.005)
                file = self.folder / "out" / row["file"]
                self.assertEqual(file.name, f"resnet18_{row['level']}.json")
                shown = strobe("model", "show", file, "--format", "json")
                self.assertEqual(shown.returncode, 0, shown.stderr)
                total = rows(shown)[-1]
                self.assertEqual(total["parameters"], row["parameters"])
                self.assertAlmostEqual(total["gflop"], row["gflop"], places=9)
                shapes = tensors_of(file.with_suffix(".safetensors"))
                widths = convolutions(file)
                self.assertEqual(shapes["conv1.weight"], [widths[0], 3, 7, 7])
                self.assertEqual(shapes["fc.weight"], [1000, widths[-1]])
            self.assertLess(table[2]["parameters"], table[1]["parameters"])

    def test_levels_of_parameters_are_those_of_the_published_networks(self):
        """resnet18 at level 50 of the published data has lost 50.4 % of its parameters, at level 90 90.4 %."""
        table = self.prune("--levels", "50,90", "--method", "random", "--of", "parameters", "--no-weights")
        for row in table:
            self.assertAlmostEqual(row["parameters_left"], 1 - row["level"] / 100, delta=0.005)
        self.assertEqual(sorted(path.name for path in (self.folder / "out").iterdir()),
                         ["layers.csv", "resnet18_50.json", "resnet18_90.json"])

    def test_layers_csv_has_the_published_form(self):
        self.prune("--levels", "0,50", "--no-weights")
        with open(self.folder / "out" / "layers.csv", newline="", encoding="utf-8") as file:
            ours = list(csv.DictReader(file))
        with open(need("tx2/layers.csv"), newline="", encoding="utf-8") as file:
            published = list(csv.DictReader(file))
        self.assertEqual(list(ours[0]), list(published[0]))
        whole = [row for row in ours if row["level"] == "0" and row["net"] == "resnet18"]
        theirs = [row for row in published if row["net"] == "resnet18" and row["level"] == "0"]
        pick = lambda table: [(row["type"], row["ic"], row["oc"], row["oh"]) for row in table
                              if row["type"] in ("conv", "linear", "bn")]
        self.assertEqual(sorted(pick(whole)), sorted(pick(theirs)))
        half = [int(row["oc"]) for row in ours if row["level"] == "50" and row["type"] == "conv"]
        self.assertEqual(half, [int(row["oc"]) // 2 for row in whole if row["type"] == "conv"])
        # More levels and networks into the same folder: one file tells of all.
        self.prune("--levels", "50,70", "--no-weights")
        self.prune("--levels", "70", "--no-weights", network="squeezenet1_1")
        with open(self.folder / "out" / "layers.csv", newline="", encoding="utf-8") as file:
            lists = {(row["net"], row["level"]) for row in csv.DictReader(file)}
        self.assertEqual(lists, {("resnet18", "0"), ("resnet18", "50"), ("resnet18", "70"), ("squeezenet1_1", "70")})

    def test_trained_weights_go_along(self):
        """person-tiny brings its weights: a pruned one has some of them, and is what every engine runs."""
        table = self.prune("--levels", "0,50", "--method", "l1", network="person-tiny")
        self.assertTrue(json.loads((self.folder / "out" / "person-tiny_50.json").read_text())["trained"])
        video = self.video(frames=3, size="384x288")
        for engine in built_engines():
            for row in table:
                run = strobe("run", "--input", video, "--model", self.folder / "out" / row["file"], "--engine", engine, "-o",
                             self.folder / f"{engine}_{row['level']}", "--format", "json")
                self.assertEqual(run.returncode, 0, run.stderr)

    def test_a_file_is_pruned_again(self):
        cfg, weights = write_tiny_network(self.folder)
        table = self.prune("--levels", "25", "--weights", weights, network=cfg)
        self.assertEqual(table[0]["file"], "tiny_25.json")
        again = self.prune("--levels", "50", network=self.folder / "out" / "tiny_25.json")
        self.assertEqual(convolutions(self.folder / "out" / again[0]["file"]), [3, 14])

    def test_show_a_batch(self):
        done = strobe("model", "show", "resnet18", "--batch", 8, "--format", "json")
        self.assertEqual(done.returncode, 0, done.stderr)
        # 64x112x112 numbers before and after bn1, 4 bytes, 8 items: 51.4 MB.
        note = [note for note in json.loads(done.stdout)["notes"] if note.startswith("batch 8: ")]
        self.assertIn("tensors alive at once at most 51.38 MB, while bn1 runs", note[0])

    def test_bad_words(self):
        out = self.folder / "out"
        self.refused(strobe("model", "prune", "resnet18", "--levels", "0,10,...", "-o", out), "levels '0,10,...'")
        self.refused(strobe("model", "prune", "resnet18", "--levels", "99", "-o", out), "99 is not of 0 to 95")
        self.refused(strobe("model", "prune", "resnet18", "--levels", "9", "--method", "l2", "-o", out),
                     "method 'l2': expected one of uniform, random, l1")
        self.refused(strobe("model", "prune", "resnet18", "--levels", "9", "--of", "flop", "-o", out),
                     "share of 'flop': expected one of channels, parameters")
        self.refused(strobe("model", "prune", "resnet19", "--levels", "9", "-o", out), "model 'resnet19'")
        self.assertFalse(out.exists())

    def test_damaged_files(self):
        self.prune("--levels", "50", network="person-tiny")
        file = self.folder / "out" / "person-tiny_50.json"
        text = file.read_text()
        file.write_text(text[:700])
        self.refused(strobe("model", "show", file), file, "no JSON text")
        file.write_text(text.replace('"stride":[2,2]', '"stride":[2,0]', 1))
        self.refused(strobe("model", "show", file), file, "layers[1] stem.conv", "the horizontal stride is 0")
        file.write_text(text)
        weights = file.with_suffix(".safetensors")
        weights.write_bytes(weights.read_bytes()[:-4])
        self.refused(strobe("model", "show", file), weights, "cut short?")
        weights.unlink()
        self.assertIn("seeded", strobe("model", "show", file).stdout)
        (self.folder / "out" / "person-tiny_60.safetensors").write_bytes(b"")
        done = strobe("model", "prune", "person-tiny", "--levels", "60", "--no-weights", "-o", self.folder / "out")
        self.refused(done, "person-tiny_60.safetensors would be taken for the weights")
