"""`strobe sensors evaluate` against nuscenes-devkit (PyPI) on the same files, and the reader behind it."""
import json
import math
import os
import pathlib
import subprocess
import unittest

from nuscenes_database import Database
from support import Case, need, strobe

# An interpreter with nuscenes-devkit; its own one, as it asks for packages that nothing else here needs.
PYTHON = os.environ.get("STROBE_NUSCENES_PYTHON") or os.environ.get("STROBE_TEST_PYTHON") or "python3"
PEER = pathlib.Path(__file__).parent / "nuscenes_peer.py"


class Metrics(Case):
    def write(self, results=None, database=None, **arguments):
        self.database = database or Database(**arguments)
        root = self.database.write(self.folder / "root")
        self.results = results or self.database.results()
        (root / "results.json").write_text(json.dumps(self.results))
        return root

    def evaluate(self, root, *flags):
        return strobe("sensors", "evaluate", root / "results.json", "--root", root, "--format", "json", *flags)

    def figures(self, root, *flags):
        done = self.evaluate(root, *flags)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def peer(self, *arguments):
        if subprocess.run([PYTHON, "-c", "import nuscenes, pyquaternion"], capture_output=True).returncode:
            self.skipTest("nuscenes-devkit is absent")
        done = subprocess.run([PYTHON, PEER, *map(str, arguments)], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def same(self, ours, theirs, place=""):
        if isinstance(theirs, dict):
            for key, value in theirs.items():
                self.same(ours[key], value, f"{place}/{key}")
        elif theirs is None:
            self.assertIsNone(ours, place)
        else:
            self.assertLess(abs(ours - theirs), 1e-9, place)

    def compare(self, root, split):
        theirs = self.peer(root, root / "results.json", split)
        ours = self.figures(root, "--split", split)
        for key in ("label_aps", "mean_dist_aps", "mean_ap", "label_tp_errors", "tp_errors", "tp_scores", "nd_score"):
            self.same(ours[key], theirs[key], key)
        return ours

    def test_random_databases(self):
        for seed, shape in enumerate([dict(scenes=2, samples=5), dict(scenes=3, samples=8, objects=90),
                                      dict(scenes=1, samples=1, objects=30), dict(scenes=4, samples=3, objects=60)]):
            with self.subTest(seed=seed):
                ours = self.compare(self.write(seed=seed, **shape), "every")
                self.assertGreater(ours["mean_ap"], 0)
                counts = ours["filters"]["truths"]
                self.assertTrue(counts["boxes"] > counts["in_range"] > counts["with_points"] >= counts["kept"])

    def test_bicycles_in_racks_do_not_count(self):
        ours = self.compare(self.write(seed=11, scenes=2, samples=4, objects=150), "mini_val")
        self.assertGreater(ours["filters"]["truths"]["with_points"], ours["filters"]["truths"]["kept"])

    def test_classes_without_truth_or_without_predictions(self):
        self.compare(self.write(seed=5, classes={"car", "barrier"}), "mini_val")
        database = Database(seed=6)
        results = database.results()
        for boxes in results["results"].values():
            boxes[:] = [box for box in boxes if box["detection_name"] not in ("car", "traffic_cone")]
        self.compare(self.write(results, database), "mini_val")

    def test_perfect_and_equal_scores(self):
        database = Database(seed=7, samples=3)
        results = database.results()
        for boxes in results["results"].values():
            for box in boxes:
                box["detection_score"] = 0.5
        self.compare(self.write(results, database), "mini_val")

    def test_scores_of_zero_and_near_it(self):
        database = Database(seed=8)
        results = database.results()
        for boxes in results["results"].values():
            for i, box in enumerate(boxes):
                box["detection_score"] = [0.0, 0.3, 1e-300][i % 3]
        self.compare(self.write(results, database), "mini_val")

    def test_real_key_frame(self):
        root = need("sensors/nuscenes")
        tables = {n: json.loads((root / "v1.0-mini" / f"{n}.json").read_text())
                  for n in ("sample_annotation", "instance", "category", "attribute")}
        category = {r["token"]: r["name"] for r in tables["category"]}
        name = {r["token"]: category[r["category_token"]] for r in tables["instance"]}
        attribute = {r["token"]: r["name"] for r in tables["attribute"]}
        classes = {"human.pedestrian.adult": "pedestrian", "vehicle.bus.rigid": "bus", "vehicle.car": "car",
                   "vehicle.truck": "truck", "vehicle.trailer": "trailer", "vehicle.construction": "construction_vehicle",
                   "vehicle.motorcycle": "motorcycle", "vehicle.bicycle": "bicycle",
                   "movable_object.trafficcone": "traffic_cone", "movable_object.barrier": "barrier"}
        boxes = [{"sample_token": r["sample_token"], "translation": r["translation"], "size": r["size"],
                  "rotation": r["rotation"], "velocity": [0, 0], "detection_name": classes[name[r["instance_token"]]],
                  "detection_score": 0.9,
                  "attribute_name": "".join(attribute[t] for t in r["attribute_tokens"])}
                 for r in tables["sample_annotation"]
                 if name[r["instance_token"]] in classes and r["num_lidar_pts"] + r["num_radar_pts"] > 0]
        results = self.folder / "truth.json"
        results.write_text(json.dumps({"meta": {}, "results": {boxes[0]["sample_token"]: boxes}}))
        done = strobe("sensors", "evaluate", results, "--root", root, "--format", "json")
        self.assertEqual(done.returncode, 0, done.stderr)
        figures = json.loads(done.stdout)
        self.assertEqual(figures["split"], "mini_train")
        for cls, counts in figures["classes"].items():
            # The truth as prediction: all is found where there is something.
            self.assertAlmostEqual(figures["mean_dist_aps"][cls], 1 if counts["truths"] else 0, msg=cls)
            if counts["truths"]:
                self.assertAlmostEqual(figures["label_tp_errors"][cls]["trans_err"], 0)
                self.assertAlmostEqual(figures["label_tp_errors"][cls]["scale_err"], 0)

    def test_splits(self):
        root = self.write(seed=9, scenes=4, samples=2)
        scene = {r["token"]: r["name"] for r in self.database.tables["scene"]}
        of = {r["token"]: scene[r["scene_token"]] for r in self.database.tables["sample"]}
        self.assertEqual(self.figures(root)["samples"], 8)
        part = {t: b for t, b in self.results["results"].items() if of[t] in ("scene-0103", "scene-0916")}
        (root / "results.json").write_text(json.dumps({"meta": {}, "results": part}))
        self.assertEqual(self.figures(root)["split"], "mini_val")
        self.refused(self.evaluate(root, "--split", "all"), "no results for it")
        self.refused(self.evaluate(root, "--split", "night"), "night", "mini_val")

    def test_refusals(self):
        root = self.write(seed=10, scenes=2, samples=2)
        token = next(iter(self.results["results"]))

        def refused(change, *words):
            results = json.loads(json.dumps(self.results))
            change(results)
            (root / "results.json").write_text(json.dumps(results))
            self.refused(self.evaluate(root), *words)

        def first(results):
            return results["results"][token][0]

        refused(lambda r: r["results"].pop(token), token, "no results")
        refused(lambda r: r["results"].update({"nowhere": []}), "nowhere", "is not in")
        refused(lambda r: r["results"].update({token: [first(r)] * 501}), "more than 500")
        refused(lambda r: r.pop("results"), 'no "results"')
        refused(lambda r: first(r).update(detection_name="cat"), "cat", "pedestrian")
        refused(lambda r: first(r).update(attribute_name="vehicle.flying"), "vehicle.flying")
        refused(lambda r: first(r).pop("size"), '"size"')
        refused(lambda r: first(r).update(translation=[1, 2]), "3 numbers")
        refused(lambda r: first(r).update(translation=[1, 2, math.nan]), "NaN")
        refused(lambda r: first(r).update(sample_token="other"), "other", token)
        refused(lambda r: first(r).update(detection_score="high"), "number", "high")
        (root / "results.json").write_text("{\"results\": {")
        self.refused(self.evaluate(root), "line 1")

    def test_broken_tables(self):
        root = self.write(seed=12, scenes=1, samples=2)
        tables = root / "v1.0-mini"

        def refused(name, change, *words):
            whole = (tables / f"{name}.json").read_text()
            (tables / f"{name}.json").write_text(change(whole))
            self.refused(self.evaluate(root), f"{name}.json", *words)
            (tables / f"{name}.json").write_text(whole)

        sample = self.database.tables["sample"][0]["token"]
        refused("sample_annotation", lambda t: t.replace(sample, "f" * 32), "f" * 32, "sample.json")
        refused("sample", lambda t: t[:len(t) // 2], "line")
        refused("ego_pose", lambda t: t.replace('"translation"', '"place"', 1), "translation", "row 0")
        refused("instance", lambda t: t.replace('"category_token": "', '"category_token": "x', 1), "category.json")
        refused("scene", lambda t: "[]", "scene")
        (tables / "category.json").unlink()
        self.refused(self.evaluate(root), "category.json", "no such file")


if __name__ == "__main__":
    unittest.main()
