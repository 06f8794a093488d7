"""`strobe frames`: extracting, annotating, and average precision against pycocotools."""
import csv
import json
import os
import random
import shutil
import subprocess
import unittest

from support import Case, need, overlap, strobe, write_tiny_network

PYTHON = os.environ.get("STROBE_TEST_PYTHON", "")

# Reads pairs of truth and detections, prints COCOeval's measures of each; -1 stands for "no value".
COCOEVAL = """
import contextlib, io, json, sys
import numpy as np
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval
results = []
with contextlib.redirect_stdout(io.StringIO()):
    for truth_file, detections_file in zip(sys.argv[1::2], sys.argv[2::2]):
        truth = COCO(truth_file)
        found = json.load(open(detections_file))
        found = found if isinstance(found, list) else found["annotations"]
        if found:
            detections = truth.loadRes(found)
        else:
            detections = COCO()
            detections.dataset = {"images": truth.dataset["images"], "categories": truth.dataset["categories"],
                                  "annotations": []}
            detections.createIndex()
        run = COCOeval(truth, detections, "bbox")
        run.evaluate(); run.accumulate(); run.summarize()
        mean = lambda values: float(np.mean(values[values > -1])) if (values > -1).any() else -1
        precision, recall = run.eval["precision"], run.eval["recall"]
        results.append({"measures": list(run.stats), "categories": [
            {"id": int(id), "AP": mean(precision[:, :, k, 0, 2]), "AP50": mean(precision[0, :, k, 0, 2]),
             "AP75": mean(precision[5, :, k, 0, 2]), "AR100": mean(recall[:, k, 0, 2])}
            for k, id in enumerate(run.params.catIds)]})
print(json.dumps(results))
"""
# The order of COCOeval's stats.
MEASURES = ["AP", "AP50", "AP75", "AP_small", "AP_medium", "AP_large", "AR1", "AR10", "AR100", "AR_small", "AR_medium",
            "AR_large"]


def need_pycocotools():
    if not PYTHON or subprocess.run([PYTHON, "-c", "import pycocotools"], capture_output=True).returncode != 0:
        raise unittest.SkipTest("pycocotools is absent")


def rows_of(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


class Extract(Case):
    def setUp(self):
        super().setUp()
        self.out = self.folder / "out"

    def extract(self, video, *flags):
        done = strobe("frames", "extract", video, *flags, "-o", self.out)
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = rows_of(self.out / "frames.csv")
        self.assertEqual(sorted(row["file"] for row in rows),
                         sorted(path.name for path in self.out.iterdir() if path.name != "frames.csv"))
        self.assertIn(f"{len(rows)} pictures", done.stdout)
        return rows

    def pixels(self, path, *filters, size="160x120"):
        done = subprocess.run(["ffmpeg", "-v", "error", "-i", path, *filters, "-frames:v", "1", "-f", "rawvideo", "-pix_fmt",
                               "gray", "-s", size, "-"], capture_output=True, check=True)
        return done.stdout

    def test_two_a_second(self):
        rows = self.extract(self.video(100))  # 25 frames a second
        # The first frame at or after 0, 0.5, 1, ... s: 12.5 frames lie between two of them.
        self.assertEqual([int(row["frame"]) for row in rows], [0, 13, 25, 38, 50, 63, 75, 88])
        self.assertEqual([float(row["time_s"]) for row in rows], [n / 25 for n in (0, 13, 25, 38, 50, 63, 75, 88)])
        self.assertEqual(rows[0]["file"], "f_000001.png")

    def test_the_pictures_are_the_frames_of_the_index(self):
        video = self.video(60)
        rows = self.extract(video, "--every", "7", "--prefix", "street", "--start", "0.4", "--end", "0:02")
        self.assertEqual([int(row["frame"]) for row in rows], list(range(10, 50, 7)))
        self.assertEqual(rows[1]["file"], "street_000002.png")
        for row in rows:
            wanted = self.pixels(video, "-vf", f"select=eq(n\\,{row['frame']})")
            found = self.pixels(self.out / row["file"])
            # One conversion to RGB and back; the test picture's neighbours differ by far more.
            difference = sum(abs(a - b) for a, b in zip(wanted, found)) / len(wanted)
            self.assertLess(difference, 1.5)
            other = self.pixels(video, "-vf", f"select=eq(n\\,{int(row['frame']) + 2})")
            self.assertGreater(sum(abs(a - b) for a, b in zip(other, found)) / len(other), 2 * difference)

    def test_variable_frame_rate(self):
        if not shutil.which("ffmpeg"):
            self.skipTest("the program ffmpeg is absent")
        video = self.folder / "vfr.mkv"
        # Frames at 0, 0.1, ... 0.9 s, then one about each half second.
        subprocess.run(["ffmpeg", "-v", "error", "-f", "lavfi", "-i", "testsrc2=size=64x48:rate=10", "-frames:v", "15", "-vf",
                        r"setpts='if(lt(N\,10)\,N*0.1\,0.9+(N-9)*0.5)/TB'", "-fps_mode", "vfr", "-enc_time_base", "1:1000",
                        str(video)], check=True)
        rows = self.extract(video, "--fps", "4")
        probe = subprocess.run(["ffprobe", "-v", "error", "-show_entries", "frame=pts_time", "-of", "json", video],
                               capture_output=True, text=True, check=True)
        times = [float(frame["pts_time"]) for frame in json.loads(probe.stdout)["frames"]]
        self.assertGreater(times[11] - times[10], 0.4)
        for row in rows:
            self.assertAlmostEqual(float(row["time_s"]), times[int(row["frame"])], places=3)
        self.assertEqual([int(row["frame"]) for row in rows], [0, 3, 5, 8, 10, 11, 12, 13, 14])

    def test_sizes_and_formats(self):
        video = self.video(3)
        bytes_of = {}
        for quality in (10, 95):
            rows = self.extract(video, "--every", "1", "--format", "jpg", "--quality", str(quality), "--size", "80x0")
            self.assertEqual([row["file"] for row in rows], [f"f_00000{i}.jpg" for i in (1, 2, 3)])
            bytes_of[quality] = (self.out / "f_000002.jpg").stat().st_size
        self.assertGreater(bytes_of[95], bytes_of[10])
        probe = subprocess.run(["ffprobe", "-v", "error", "-show_entries", "stream=width,height", "-of", "csv=p=0",
                                self.out / "f_000001.jpg"], capture_output=True, text=True, check=True)
        self.assertEqual(probe.stdout.strip(), "80,60")

    def test_fewer_pictures_than_before_are_told(self):
        video = self.video(10)
        self.extract(video, "--every", "2")
        done = strobe("frames", "extract", video, "--every", "5", "-o", self.out)
        self.assertEqual(done.returncode, 0)
        self.assertIn("3 more pictures of that name", done.stderr)
        self.assertEqual(len(rows_of(self.out / "frames.csv")), 2)

    def test_a_video_that_breaks_off(self):
        video = self.video(60, name="in.mkv")
        half = self.folder / "half.mkv"
        half.write_bytes(video.read_bytes()[:video.stat().st_size // 2])
        done = strobe("frames", "extract", half, "--every", "1", "-o", self.out)
        rows = rows_of(self.out / "frames.csv")
        self.assertGreater(len(rows), 5)
        self.assertLess(len(rows), 60)
        self.assertEqual({row["file"] for row in rows} | {"frames.csv"}, {path.name for path in self.out.iterdir()})
        self.assertEqual(len(done.stderr.strip().split("\n")), 1, done.stderr)

    def test_bad_requests(self):
        video = self.video(3)
        for flags, words in ((["--start", "1:75"], ["--start 1:75", "mm:ss"]), (["--end", "x"], ["--end x"]),
                             (["--start", "5", "--end", "4"], ["--end 4"]), (["--fps", "0"], ["--fps 0"]),
                             (["--every", "0"], ["--every 0"]), (["--fps", "1", "--every", "2"], ["--fps", "--every"]),
                             (["--size", "80"], ["--size 80", "WIDTHxHEIGHT"]), (["--format", "gif"], ["png or jpg"]),
                             (["--quality", "0"], ["--quality 0"]), (["--prefix", "a/b"], ["--prefix a/b"])):
            with self.subTest(flags):
                self.refused(strobe("frames", "extract", video, *flags, "-o", self.out), *words)
                self.assertFalse(self.out.exists())
        text = self.folder / "text.mp4"
        text.write_text("no video")
        self.refused(strobe("frames", "extract", text, "-o", self.out), text)
        self.refused(strobe("frames", "extract", self.folder / "none.mp4", "-o", self.out), "none.mp4")
        self.assertFalse(self.out.exists())


class Annotate(Case):
    def setUp(self):
        super().setUp()
        self.out = self.folder / "out"

    def annotate(self, input, *flags):
        done = strobe("frames", "annotate", input, "--engine", self.engine(), *flags, "-o", self.out)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads((self.out / "annotations.json").read_text())

    def fastest(self):
        return ["--model", need("models/yolo-fastest-1.1-xl.cfg"), "--weights", need("models/yolo-fastest-1.1-xl.weights")]

    def test_a_folder_of_real_pictures(self):
        pictures = self.folder / "in"
        pictures.mkdir()
        for name in ("dog.jpg", "eagle.jpg", "horses.jpg"):
            shutil.copy(need(f"samples/{name}"), pictures)
        (pictures / "broken.jpg").write_text("no picture")
        dataset = self.annotate(pictures, *self.fastest())
        images = {image["id"]: image["file_name"] for image in dataset["images"]}
        self.assertEqual(list(images.values()), ["dog.jpg", "eagle.jpg", "horses.jpg"])
        names = {category["id"]: category["name"] for category in dataset["categories"]}
        self.assertEqual((names[1], names[18], names[90]), ("person", "dog", "toothbrush"))
        found = {(images[box["image_id"]], names[box["category_id"]]) for box in dataset["annotations"]}
        self.assertIn(("dog.jpg", "dog"), found)
        self.assertIn(("horses.jpg", "horse"), found)
        dog = next(box for box in dataset["annotations"] if names[box["category_id"]] == "dog")
        self.assertGreater(overlap(dog["bbox"], (130, 220, 180, 320)), 0.5)  # by eye; this small network draws wide
        self.assertGreaterEqual(min(box["score"] for box in dataset["annotations"]), 0.5)
        self.assertEqual({path.name for path in self.out.iterdir()}, {"dog.jpg", "eagle.jpg", "horses.jpg", "annotations.json"})

    def test_only_some_classes(self):
        dataset = self.annotate(need("samples/dog.jpg"), *self.fastest(), "--classes", "dog", "--threshold", "0.2")
        self.assertEqual({box["category_id"] for box in dataset["annotations"]}, {18})
        done = strobe("frames", "annotate", need("samples/dog.jpg"), "--engine", self.engine(), *self.fastest(), "--classes",
                      "dgo", "-o", self.out)
        self.refused(done, "dgo", "did you mean dog?")

    def test_a_video_and_its_frames(self):
        cfg, weights = write_tiny_network(self.folder)
        flags = ["--model", cfg, "--weights", weights, "--threshold", "0.1"]
        video = self.video(12)
        dataset = self.annotate(video, *flags)
        self.assertEqual([image["frame_index"] for image in dataset["images"]], list(range(12)))
        self.assertAlmostEqual(dataset["images"][5]["time_s"], 0.2, places=3)
        self.assertEqual((dataset["images"][0]["width"], dataset["images"][0]["height"]), (160, 120))
        self.assertEqual({path.name for path in self.out.iterdir()}, {"annotated.mp4", "annotations.json"})
        count = subprocess.run(["ffprobe", "-v", "error", "-count_frames", "-show_entries", "stream=nb_read_frames", "-of",
                                "csv=p=0", self.out / "annotated.mp4"], capture_output=True, text=True, check=True)
        self.assertEqual(int(count.stdout), 12)
        shutil.rmtree(self.out)
        again = self.annotate(video, *flags, "--pictures", "--format", "png")
        self.assertEqual(again["annotations"], dataset["annotations"])
        names = [image["file_name"] for image in again["images"]]
        self.assertEqual((names[0], names[11]), ("f_000001.png", "f_000012.png"))
        self.assertEqual({path.name for path in self.out.iterdir()}, {*names, "annotations.json"})

    def test_boxes_are_those_of_a_run(self):
        cfg, weights = write_tiny_network(self.folder)
        video = self.video(6)
        dataset = self.annotate(video, "--model", cfg, "--weights", weights, "--threshold", "0.3")
        done = strobe("run", "-i", video, "--model", cfg, "--weights", weights, "--engine", self.engine(), "--no-record",
                      "--no-video", "--score", "0.3", "-o", self.folder / "run")
        self.assertEqual(done.returncode, 0, done.stderr)
        frames = json.loads((self.folder / "run" / "detections.json").read_text())
        self.assertGreater(len(dataset["annotations"]), 0)
        for frame, image in zip(frames, dataset["images"]):
            boxes = [box for box in dataset["annotations"] if box["image_id"] == image["id"]]
            self.assertEqual(len(boxes), len(frame["boxes"]))
            for box, wanted in zip(boxes, frame["boxes"]):
                for value, key in zip(box["bbox"], "xywh"):
                    self.assertAlmostEqual(value, wanted[key], delta=0.011)

    def test_pycocotools_loads_and_evaluates_it(self):
        need_pycocotools()
        dataset = self.annotate(need("samples/dog.jpg"), *self.fastest())
        truth = self.folder / "truth.json"
        for box in dataset["annotations"]:
            del box["score"]
        truth.write_text(json.dumps(dataset))
        done = subprocess.run([PYTHON, "-c", COCOEVAL, truth, self.out / "annotations.json"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertAlmostEqual(json.loads(done.stdout)[0]["measures"][0], 1, delta=1e-9)
        ours = strobe("frames", "evaluate", self.out / "annotations.json", "--truth", truth, "--format", "json")
        self.assertAlmostEqual(json.loads(ours.stdout)["measures"]["AP"], 1, delta=1e-9)

    def test_bad_requests(self):
        cfg, weights = write_tiny_network(self.folder)
        pictures = self.folder / "in"
        pictures.mkdir()
        engine = ["--engine", self.engine()]
        net = [*engine, "--model", cfg, "--weights", weights]
        self.refused(strobe("frames", "annotate", pictures, *net, "-o", self.out), "no pictures in this folder")
        self.refused(strobe("frames", "annotate", pictures, *net, "-o", pictures), "holds the input")
        self.refused(strobe("frames", "annotate", self.folder / "none", *net, "-o", self.out), "none", "no such file")
        self.refused(strobe("frames", "annotate", pictures, *engine, "--model", "yolov4-tiny", "-o", self.out),
                     "no trained weights", "--weights")
        self.refused(strobe("frames", "annotate", pictures, *engine, "--model", "resnet18", "-o", self.out), "resnet18")
        self.refused(strobe("frames", "annotate", pictures, *net, "--threshold", "2", "-o", self.out), "--threshold 2")
        self.refused(strobe("frames", "annotate", pictures, *net, "--format", "gif", "-o", self.out), "jpg or png")
        self.refused(strobe("frames", "annotate", pictures, "--engine", "openvimo", "-o", self.out), "openvimo")


def random_case(generator, pictures=12, categories=3, crowded=False):
    """A truth and detections that partly fit it, with what makes COCO's definition hard."""
    truth = {"images": [{"id": 3 * i + 5, "file_name": f"{i}.jpg", "width": 640, "height": 480} for i in range(pictures)],
             "categories": [{"id": 2 * k + 1, "name": f"class {k}"} for k in range(categories)], "annotations": []}
    generator.shuffle(truth["images"])
    found = []
    for image in truth["images"]:
        for _ in range(generator.choice([0, 1, 3, 40 if crowded else 6])):
            side = generator.choice([8, 32, 60, 96, 200])
            box = [round(generator.uniform(0, 400), 1), round(generator.uniform(0, 300), 1),
                   side * generator.choice([1, 1, 0.5]), side]
            category = generator.choice(truth["categories"])["id"]
            is_crowd = int(generator.random() < 0.1)
            truth["annotations"].append({"id": len(truth["annotations"]) + 1, "image_id": image["id"], "category_id": category,
                                         "bbox": box, "area": box[2] * box[3] * generator.choice([1, 0.7]),
                                         "iscrowd": is_crowd})
            for _ in range(generator.choice([0, 1, 1, 2, 5 if crowded else 3])):
                shift = generator.choice([0, 0, 1, 0.05 * side, 0.2 * side])
                found.append({"image_id": image["id"],
                              "category_id": category if generator.random() < 0.9 else truth["categories"][0]["id"],
                              "bbox": [box[0] + shift, box[1] - shift, box[2] * generator.choice([1, 1.1, 0.8]), box[3]],
                              "score": generator.choice([0.5, 0.75, round(generator.random(), 2), generator.random()])})
    generator.shuffle(found)
    return truth, found


class Evaluate(Case):
    def write(self, name, content):
        path = self.folder / name
        path.write_text(json.dumps(content))
        return path

    def ours(self, truth, detections):
        done = strobe("frames", "evaluate", detections, "--truth", truth, "--format", "json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def compare(self, cases):
        need_pycocotools()
        paths = []
        for i, (truth, found) in enumerate(cases):
            paths += [self.write(f"truth{i}.json", truth), self.write(f"found{i}.json", found)]
        done = subprocess.run([PYTHON, "-c", COCOEVAL, *paths], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        for i, theirs in enumerate(json.loads(done.stdout)):
            ours = self.ours(paths[2 * i], paths[2 * i + 1])
            for name, value in zip(MEASURES, theirs["measures"]):
                self.same(ours["measures"][name], value, f"case {i}: {name}")
            self.assertEqual([row["id"] for row in ours["categories"]], [row["id"] for row in theirs["categories"]])
            for row, their_row in zip(ours["categories"], theirs["categories"]):
                for name in ("AP", "AP50", "AP75", "AR100"):
                    self.same(row[name], their_row[name], f"case {i}: {row['name']}: {name}")

    def same(self, ours, theirs, what):
        if theirs == -1:
            self.assertIsNone(ours, what)
        else:
            self.assertIsNotNone(ours, what)
            self.assertAlmostEqual(ours, theirs, delta=1e-9, msg=what)

    def test_random_cases(self):
        generator = random.Random(4)
        self.compare([random_case(generator) for _ in range(60)])

    def test_more_than_a_hundred_detections_of_a_picture(self):
        generator = random.Random(5)
        self.compare([random_case(generator, pictures=6, categories=1, crowded=True) for _ in range(6)])

    def test_edges(self):
        box = {"bbox": [10, 10, 50, 50], "area": 2500, "iscrowd": 0}
        images = [{"id": 1, "file_name": "a.jpg", "width": 640, "height": 480}, {"id": 2, "file_name": "b.jpg"}]
        categories = [{"id": 1, "name": "person"}, {"id": 2, "name": "car"}]
        truths = {
            "one": [dict(box, id=1, image_id=1, category_id=1)],
            "crowd only": [dict(box, id=1, image_id=1, category_id=1, iscrowd=1)],
            "crowd beside": [dict(box, id=1, image_id=1, category_id=1), dict(box, id=2, image_id=1, category_id=1, iscrowd=1,
                                                                            bbox=[0, 0, 300, 300], area=90000)],
            "twins": [dict(box, id=1, image_id=1, category_id=1), dict(box, id=2, image_id=1, category_id=1)],
            "none": [],
        }
        found = {
            "none": [],
            "ties": [{"image_id": i, "category_id": 1, "bbox": [10 + d, 10, 50, 50], "score": 0.5}
                     for i in (2, 1) for d in (0, 5, 400)],
            "the other class": [{"image_id": 1, "category_id": 2, "bbox": [10, 10, 50, 50], "score": 0.9}],
            "on the threshold": [{"image_id": 1, "category_id": 1, "bbox": [10, 10, 25, 50], "score": 0.9},
                                 {"image_id": 1, "category_id": 1, "bbox": [10, 10, 37.5, 50], "score": 0.8}],
            "without an area": [{"image_id": 1, "category_id": 1, "bbox": [10, 10, 0, 50], "score": 0.9}],
            "scores beyond 1": [{"image_id": 1, "category_id": 1, "bbox": [10, 10, 50, 50], "score": s} for s in (-3, 7.5, 0)],
        }
        self.compare([({"images": images, "categories": categories, "annotations": truth}, detections)
                      for truth in truths.values() for detections in found.values()])

    def test_tables(self):
        truth, found = random_case(random.Random(1))
        done = strobe("frames", "evaluate", self.write("d.json", found), "--truth", self.write("t.json", truth))
        self.assertEqual(done.returncode, 0, done.stderr)
        for word in ("AP50", "AR100", "class 2", "truths"):
            self.assertIn(word, done.stdout)

    def test_bad_files(self):
        truth, found = random_case(random.Random(2))
        good = self.write("t.json", truth)
        self.refused(strobe("frames", "evaluate", self.folder / "none.json", "--truth", good), "none.json")
        self.refused(strobe("frames", "evaluate", good, "--truth", self.write("list.json", found)), "list.json")
        self.refused(strobe("frames", "evaluate", good, "--truth", good), "t.json", "score")
        found[3]["image_id"] = 4
        self.refused(strobe("frames", "evaluate", self.write("f.json", found), "--truth", good), "f.json: [3]", "image_id 4")
        (self.folder / "x.json").write_text("{]")
        self.refused(strobe("frames", "evaluate", self.folder / "x.json", "--truth", good), "x.json: not JSON")


if __name__ == "__main__":
    unittest.main()
