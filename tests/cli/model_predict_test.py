"""strobe model fit, predict and evaluate, on measurements that follow a known law."""
import csv
import json
import random
import unittest

from support import Case, need, strobe

HEADER = "net,level,index,type,ic,oc,kh,kw,sh,sw,ph,pw,groups,ih,iw,oh,ow,bias,inplace,inputs".split(",")
BATCHES = (2, 4, 8, 16, 32, 64, 128)
CAPACITY = 3000


def layers_of(net, level, channels):
    left = max(1, channels * (100 - level) // 100)
    rows = [["conv", 3, left, 3, 3, 2, 2, 1, 1, 1, 64, 64, 32, 32, 0, 0, -1],
            ["bn", left, left, 0, 0, 0, 0, 0, 0, 1, 32, 32, 32, 32, 1, 0, 0],
            ["relu", left, left, 0, 0, 0, 0, 0, 0, 1, 32, 32, 32, 32, 0, 1, 1],
            ["conv", left, left, 3, 3, 1, 1, 1, 1, 1, 32, 32, 32, 32, 0, 0, 2],
            ["relu", left, left, 0, 0, 0, 0, 0, 0, 1, 32, 32, 32, 32, 0, 1, 3]]
    return [[net, level, index, *row] for index, row in enumerate(rows)]


def memory_of(channels, level, batch):
    """MiB: a framework's 500, weights, and four maps an item."""
    left = max(1, channels * (100 - level) // 100)
    return 500 + 9 * left * left * 4 / 2**20 + 4 * batch * left * 1024 * 4 / 2**20


def write_folder(folder, networks, seed=1):
    random.seed(seed)
    folder.mkdir()
    with open(folder / "layers.csv", "w", newline="") as layers, open(folder / "measurements.csv", "w", newline="") as out:
        layers, out = csv.writer(layers), csv.writer(out)
        layers.writerow(HEADER)
        out.writerow(["net", "level", "bs", "quantity", "value", "unit", "passed"])
        for net, channels in networks.items():
            for level in range(0, 95, 10):
                layers.writerows(layers_of(net, level, channels))
                for batch in BATCHES:
                    memory = memory_of(channels, level, batch) * random.uniform(0.995, 1.005)
                    passed = memory < CAPACITY
                    out.writerow([net, level, batch, "memory", memory if passed else "", "MiB", int(passed)])


class ModelPredictTest(Case):
    def setUp(self):
        super().setUp()
        self.data = self.folder / "data"
        write_folder(self.data, {"a": 96, "b": 160, "c": 256, "d": 320})

    def ask_json(self, *arguments):
        done = strobe("model", *arguments, "--format", "json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def fit(self, model, *more):
        path = self.folder / f"{model}.json"
        done = strobe("model", "fit", self.data, "--quantity", "memory", "--model", model, "-o", path, *more)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("a, b, c, d", done.stdout)
        return path

    def test_what_is_fitted_predicts_other_levels_and_batches(self):
        for model in ("paper", "strobe"):
            path = self.fit(model)
            layers = self.folder / "other.csv"
            with open(layers, "w", newline="") as file:
                csv.writer(file).writerows([HEADER, *layers_of("c", 35, 256)])
            said = self.ask_json("predict", path, "--network", "c", "--layers", layers, "--batch", 32)
            self.assertEqual(said["unit"], "MiB")
            truth = memory_of(256, 35, 32)
            self.assertLess(abs(said["value"] / truth - 1), 0.15, model)
            low, high = said["interval90"]
            self.assertLess(low, said["value"])
            self.assertGreater(high, said["value"])

    def test_several_batches_and_builtin_networks(self):
        path = self.fit("paper")
        said = self.ask_json("predict", path, "--network", "resnet18", "--batch", "1,8", "--batch", 64)
        self.assertEqual([one["batch"] for one in said["predictions"]], [1, 8, 64])
        table = strobe("model", "predict", path, "--network", "resnet18", "--batch", "1,8")
        self.assertIn("memory_mib", table.stdout)
        self.assertIn("fitted on 280 measurements of a, b, c, d", table.stdout)
        level = self.ask_json("predict", path, "--network", "b", "--layers", self.data / "layers.csv", "--level", 40)
        self.assertEqual(level["batch"], 1)

    def test_evaluate_has_the_agreed_keys(self):
        for model in ("paper", "strobe"):
            for protocol in ("same", "leave-one-out"):
                said = self.ask_json("evaluate", "--fit", self.data, "--quantity", "memory", "--model", model,
                                     "--protocol", protocol)
                self.assertEqual(list(said["by_network"]), ["a", "b", "c", "d"])
                for scores in (said, *said["by_network"].values()):
                    self.assertGreater(scores["rows"], 0)
                    self.assertLess(scores["median_ape_percent"], 60)
                    self.assertTrue(0 <= scores["coverage_90"] <= 1)
                    self.assertTrue(0 <= scores["fit_no_fit_accuracy"] <= 1)
                    self.assertGreater(scores["mape_percent"], 0)
                rows = sum(scores["rows"] for scores in said["by_network"].values())
                self.assertEqual(rows, said["rows"])

    def test_unseen_networks_in_another_folder(self):
        other = self.folder / "other"
        write_folder(other, {"e": 200}, seed=2)
        said = self.ask_json("evaluate", "--fit", self.data, "--test", other, "--quantity", "memory", "--model", "paper")
        self.assertEqual(said["protocol"], "unseen")
        self.assertEqual(list(said["by_network"]), ["e"])
        self.assertLess(said["mape_percent"], 25)
        table = strobe("model", "evaluate", "--fit", self.data, "--test", other, "--quantity", "memory", "--model",
                       "paper")
        self.assertIn("mape_percent", table.stdout)

    def test_rows_without_layers_are_said(self):
        with open(self.data / "measurements.csv", "a") as file:
            file.write("a,5,2,memory,600,MiB,1\n")
        done = strobe("model", "fit", self.data, "--quantity", "memory", "--model", "paper", "-o", self.folder / "m.json")
        self.assertIn("1 memory measurements are not used, their layers are not known: a level 5", done.stdout)

    def test_refusals(self):
        path = self.fit("paper")
        text = path.read_text()
        self.refused(strobe("model", "predict", path, "--network", "resnet19"), "resnet19")
        self.refused(strobe("model", "predict", path, "--network", "a", "--level", 0), "--layers")
        self.refused(strobe("model", "predict", path, "--network", "resnet18", "--batch", 0), "--batch 0")
        layers = self.data / "layers.csv"
        self.refused(strobe("model", "predict", path, "--network", "vgg16x", "--layers", layers), layers, "a, b, c, d")
        self.refused(strobe("model", "predict", path, "--network", "a", "--layers", layers, "--level", 5), "level 5",
                     "0, 10, 20")
        path.write_text(text.replace('"feature_version":1', '"feature_version":7'))
        self.refused(strobe("model", "predict", path, "--network", "resnet18"), path, "feature version 7", "has 1")
        path.write_text(text.replace('"schema_version":1', '"schema_version":9'))
        self.refused(strobe("model", "predict", path, "--network", "resnet18"), "schema version 9")
        path.write_text(text[:1000])
        self.refused(strobe("model", "predict", path, "--network", "resnet18"), path, "JSON")
        self.refused(strobe("model", "evaluate", "--fit", self.data, "--quantity", "power"), "latency or memory")
        self.refused(strobe("model", "evaluate", "--fit", self.data, "--quantity", "memory", "--protocol", "x"),
                     "leave-one-out")
        self.refused(strobe("model", "evaluate", "--fit", self.data, "--quantity", "memory", "--protocol", "unseen"),
                     "--test")
        self.refused(strobe("model", "evaluate", "--fit", self.data, "--quantity", "latency"), "no latency")
        self.refused(strobe("model", "evaluate", "--fit", self.data, "--quantity", "memory", "--model", "magic"), "magic")
        layers.write_text(layers.read_text().replace("relu", "rely", 1))
        self.refused(strobe("model", "fit", self.data, "--quantity", "memory", "-o", self.folder / "n.json"),
                     f"{layers}: line 4: column type: 'rely'")
        self.assertFalse((self.folder / "n.json").exists())

    def test_published_measurements(self):
        folder = need("tx2/measurements.csv").parent
        said = self.ask_json("evaluate", "--fit", folder, "--quantity", "memory", "--model", "paper", "--protocol", "same")
        self.assertEqual(list(said["by_network"]), ["resnet18", "resnet50", "squeezenet", "mobilenetv2"])
        self.assertLess(said["mape_percent"], 5)
        self.assertIn("levels 5,15", said["notes"][-1])


if __name__ == "__main__":
    unittest.main()
