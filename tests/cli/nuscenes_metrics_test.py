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

    def streaming(self, root, rows, *flags, code=0, header=None):
        header = header or "time_stamp,input_token,comm_delay,decode_delay,inference_delay,e2e_delay,model_name,model_type"
        (root / "delays_0.csv").write_text(header + "\n" + "".join(
            ",".join(map(str, row)) + "\n" for row in rows))
        done = self.evaluate(root, "--delays", root / "delays_0.csv", *flags)
        self.assertEqual(done.returncode, code, done.stderr)
        return json.loads(done.stdout) if code == 0 else done.stderr

    def rows_of(self, delay):
        return [(0, token, 0, 0, delay / 2, delay, "det", "lidar") for token in self.results["results"]]

    def test_without_delay_streaming_accuracy_is_the_accuracy(self):
        root = self.write(seed=21, scenes=2, samples=5, objects=60)
        plain = self.figures(root, "--split", "all")
        found = self.streaming(root, self.rows_of(0))
        for when in ("still", "stream"):
            self.same(found[when]["label_aps"], plain["label_aps"], when)
            self.assertAlmostEqual(found[when]["NDS"], plain["NDS"], places=9)
        self.assertEqual(found["results"], 10)

    def test_late_results_are_held_against_where_things_are_then(self):
        # One car that drives 10 m/s, found exactly where it was measured: at 1 m, right for 100 ms of delay, never more.
        root = self.write(seed=22, scenes=1, samples=4, objects=0)
        tables = self.database.tables
        samples = tables["sample"]
        lidar = {row["sample_token"]: row for row in tables["sample_data"]
                 if row["is_key_frame"] and "LIDAR_TOP" in row["filename"]}
        ego = {row["token"]: row for row in tables["ego_pose"]}
        car = self.database.add("instance", category_token=self.database.category["vehicle.car"],
                                nbr_annotations=len(samples), first_annotation_token="", last_annotation_token="")
        notes, results = [], {}
        start = ego[lidar[samples[0]["token"]]["ego_pose_token"]]["translation"]
        for sample in samples:
            seconds = (sample["timestamp"] - samples[0]["timestamp"]) / 1e6
            place = [start[0] + 5 + 10 * seconds, start[1] + 5, 1.0]
            notes.append(self.database.add(
                "sample_annotation", sample_token=sample["token"], instance_token=car["token"],
                attribute_tokens=[], visibility_token="4", translation=place, size=[2.0, 4.5, 1.5],
                rotation=[1.0, 0.0, 0.0, 0.0], num_lidar_pts=9, num_radar_pts=0, next="", prev=""))
            results[sample["token"]] = [dict(
                sample_token=sample["token"], translation=place, size=[2.0, 4.5, 1.5], rotation=[1.0, 0.0, 0.0, 0.0],
                velocity=[10.0, 0.0], detection_name="car", detection_score=0.9, attribute_name="")]
        for before, after in zip(notes, notes[1:]):
            before["next"], after["prev"] = after["token"], before["token"]
        car["first_annotation_token"], car["last_annotation_token"] = notes[0]["token"], notes[-1]["token"]
        self.results = {"meta": {}, "results": results}
        root = self.database.write(self.folder / "one")
        (root / "results.json").write_text(json.dumps(self.results))
        keep = list(results)[:-1]  # the last one has no annotation after it
        for delay, right in ((0.0, [0.5, 1, 2, 4]), (0.04, [0.5, 1, 2, 4]), (0.09, [1, 2, 4]), (0.15, [2, 4]),
                             (0.3, [4]), (0.45, [])):
            found = self.streaming(root, [(0, token, 0, 0, delay / 2, delay, "det", "lidar") for token in keep])
            self.assertEqual(found["beyond_annotations"], 0)
            for distance, ap in found["stream"]["label_aps"]["car"].items():
                self.assertAlmostEqual(ap, 1.0 if float(distance) in right else 0.0, places=9, msg=(delay, distance))
            for ap in found["still"]["label_aps"]["car"].values():
                self.assertAlmostEqual(ap, 1.0, places=9)
        # pPerf's swapped columns: what is called e2e is the part.
        swapped = self.streaming(root, [(0, token, 0, 0, 0.3, 0.1, "det", "lidar") for token in keep])
        self.assertTrue(swapped["delays_swapped"])
        self.assertAlmostEqual(swapped["delay_ms"]["p50"], 300)
        late = self.streaming(root, [(0, list(results)[-1], 0, 0, 0.1, 0.2, "det", "lidar")])
        self.assertEqual(late["beyond_annotations"], 1)

    def test_bad_delays(self):
        root = self.write(seed=23, samples=2)
        token = next(iter(self.results["results"]))
        rows = [(0, token, 0, 0, 0.1, 0.2, "a", "lidar"), (0, token, 0, 0, 0.1, 0.2, "b", "multi-modal")]
        self.assertIn("a, b", self.streaming(root, rows, code=2))
        self.assertEqual(self.streaming(root, rows, "--tenant", "b")["results"], 1)
        self.assertIn('no result of "c"', self.streaming(root, rows, "--tenant", "c", code=2))
        self.assertIn("absent-token", self.streaming(root, [(0, "absent-token", 0, 0, 0.1, 0.2, "a", "lidar")], code=2))
        self.assertIn("line 2", self.streaming(root, [(0, token, 0, 0, 0.1, "soon", "a", "lidar")], code=2))
        negative = [(0, token, 0, 0, 0.3, -5, "a", "lidar")]
        self.assertIn("seconds from 0 to 3600", self.streaming(root, negative, code=2))
        self.assertIn("no result in space", self.streaming(root, [(0, token, 0, 0, 0.1, 0.2, "a", "image")], code=2))
        # Whose columns are swapped is asked of the tenant alone.
        rows = [(0, token, 0, 0, 0.1, 0.4, "a", "lidar")] + 9 * [(0, token, 0, 0, 0.4, 0.1, "b", "image")]
        self.assertFalse(self.streaming(root, rows, "--tenant", "a")["delays_swapped"])
        self.assertAlmostEqual(self.streaming(root, rows, "--tenant", "a")["delay_ms"]["p50"], 400)
        absent = json.loads((root / "results.json").read_text())
        absent["results"].pop(token)
        (root / "results.json").write_text(json.dumps(absent))
        self.assertIn("none of the 1 results of a is in the file",
                      self.streaming(root, [(0, token, 0, 0, 0.1, 0.2, "a", "lidar")], code=2))
        self.assertIn("no column input_token", self.streaming(root, [(1, 2)], code=2, header="frame,delay"))

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

    def test_results_by_sample_data(self):
        """What a run writes has tokens of sample_data, and sweeps between the key frames, too."""
        root = self.write(seed=31, scenes=2, samples=4, sweeps=2)
        plain = self.figures(root, "--split", "all")
        lidar = [row for row in self.database.tables["sample_data"] if "LIDAR_TOP" in row["filename"]]
        key = {row["sample_token"]: row["token"] for row in lidar if row["is_key_frame"]}
        between = [row["token"] for row in lidar if not row["is_key_frame"]]
        self.assertEqual(len(between), 12)
        of_run = {"meta": {}, "results": {
            key[token]: [{**box, "sample_token": key[token]} for box in boxes]
            for token, boxes in self.results["results"].items()}}
        boxes = next(iter(of_run["results"].values()))
        # A sweep comes first, as it may.
        of_run["results"] = {between[0]: [{**box, "sample_token": between[0]} for box in boxes], **of_run["results"]}
        for token in between[1:5]:
            of_run["results"][token] = []

        def evaluate(*flags):
            (root / "results.json").write_text(json.dumps(of_run))
            return self.figures(root, *flags)

        found = evaluate()
        for flags in ((), ("--split", "all")):
            found = evaluate(*flags)
            for name in ("mean_ap", "label_aps", "label_tp_errors", "nd_score"):
                self.same(found[name], plain[name], name)
            self.assertEqual((found["skipped"], found["absent"], found["samples"]), (5, 0, 8))
        self.assertIn("5 lists are of no key frame", strobe("sensors", "evaluate", root / "results.json", "--root", root).stdout)
        gone = list(key.values())[1]
        missing = of_run["results"].pop(gone)
        found = evaluate()
        self.assertEqual((found["skipped"], found["absent"], found["samples"]), (5, 1, 7))
        self.refused(self.evaluate(root, "--split", "all"), "no results for it")
        # Two sensors of one sample, or nothing that has annotations.
        camera = {row["sample_token"]: row["token"] for row in self.database.tables["sample_data"]
                  if row["is_key_frame"] and "CAM_FRONT" in row["filename"]}
        of_run["results"][gone] = missing
        of_run["results"][next(iter(camera.values()))] = []
        (root / "results.json").write_text(json.dumps(of_run))
        self.refused(self.evaluate(root), "stands there twice")
        of_run["results"] = {between[0]: [], between[1]: []}
        (root / "results.json").write_text(json.dumps(of_run))
        self.refused(self.evaluate(root), "none of its 2 lists is of a key frame")

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
