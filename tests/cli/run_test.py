"""`strobe run`: what it prints and leaves behind, on every engine that is built."""
import csv
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import time
import unittest

from support import STROBE, Case, built_engines, need, overlap, strobe, write_tiny_network

COLUMNS = "frame,read_ms,prep_ms,infer_ms,post_ms,draw_ms,write_ms,total_ms".split(",")


def frames_of(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


class OneEngine(Case):
    def setUp(self):
        super().setUp()
        self.cfg, self.weights = write_tiny_network(self.folder)
        self.out = self.folder / "out"

    def run_tiny(self, *flags, frames=40, engine=None, **keywords):
        return strobe("run", "--input", self.video(frames), "--model", self.cfg, "--weights", self.weights, "--engine",
                      engine or self.engine(), "--limit-seconds", "0.05", "--format", "json", "-o", self.out, *flags,
                      **keywords)

    def test_summary_and_files(self):
        for engine in built_engines():
            with self.subTest(engine):
                done = self.run_tiny(engine=engine)
                self.assertEqual(done.returncode, 0, done.stderr)
                run = json.loads(done.stdout)["runs"][0]
                self.assertEqual((run["engine"], run["frames"], run["dropped"]), (engine, 40, 0))
                for key in ("inference_fps", "end_to_end_fps", "limit_fps"):
                    self.assertGreater(run[key], 0, key)
                self.assertIn(run["slowest_stage"]["name"], ("read", "prep", "infer", "post", "draw", "write"))
                self.assertEqual([stage["name"] for stage in run["stages"]],
                                 ["read", "prep", "infer", "post", "draw", "write"])
                for stage in run["stages"]:
                    self.assertLessEqual(stage["p50_ms"], stage["p90_ms"])
                    self.assertLessEqual(stage["p90_ms"], stage["p99_ms"])
                    self.assertLessEqual(stage["p99_ms"], stage["max_ms"])
                self.assertGreater(run["latency_ms"]["p50"], 0)
                rows = frames_of(self.out / "frames.csv")
                self.assertEqual(list(rows[0]), COLUMNS)
                self.assertEqual([int(row["frame"]) for row in rows], list(range(40)))
                for row in rows:
                    self.assertLessEqual(sum(float(row[c]) for c in COLUMNS[1:-1]), float(row["total_ms"]) + 1e-3)
                detections = json.loads((self.out / "detections.json").read_text())
                self.assertEqual([frame["frame"] for frame in detections], list(range(40)))
                self.assertAlmostEqual(detections[25]["time_s"], 1.0, places=3)
                self.assertFalse((self.out / "spool").exists())

    def test_video_has_every_frame_and_the_size(self):
        done = self.run_tiny()
        video = json.loads(done.stdout)["runs"][0]["video"]
        probe = subprocess.run(["ffprobe", "-v", "error", "-count_frames", "-show_entries",
                                "stream=codec_name,width,height,nb_read_frames", "-of", "json", video],
                               check=True, capture_output=True, text=True)
        stream = json.loads(probe.stdout)["streams"][0]
        self.assertEqual((stream["codec_name"], stream["width"], stream["height"], stream["nb_read_frames"]),
                         ("h264", 160, 120, "40"))

    def test_trace_answers_sql_written_for_nsight_exports(self):
        trace = json.loads(self.run_tiny().stdout)["runs"][0]["trace"]
        rows = dict(sqlite3.connect(trace).execute(
            "SELECT s.value, COUNT(*) FROM NVTX_EVENTS n JOIN StringIds s ON n.textId = s.id "
            "WHERE n.eventType = 59 GROUP BY s.value"))
        for stage in ("prep", "infer", "post", "draw", "write"):
            self.assertEqual(rows[stage], 40, stage)

    def test_batches_and_frame_limit(self):
        done = self.run_tiny("--batch", "4", "--frames", "10")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)["runs"][0]["frames"], 10)
        self.assertEqual(len(frames_of(self.out / "frames.csv")), 10)

    def test_batches_and_sessions_find_the_same_boxes(self):
        boxes = []
        for flags in (("--sessions", "1"), ("--sessions", "3", "--queue", "1"), ("--batch", "3")):
            self.run_tiny("--score", "0.05", *flags)
            boxes.append([[(box["label"], round(box["x"]), round(box["w"])) for box in frame["boxes"]]
                          for frame in json.loads((self.out / "detections.json").read_text())])
        self.assertTrue(any(boxes[0]))
        self.assertEqual(boxes[0], boxes[1])
        self.assertEqual(boxes[0], boxes[2])

    def test_text_and_csv_tables(self):
        video, engine = self.video(10), self.engine()
        common = ("run", "--input", video, "--model", self.cfg, "--weights", self.weights, "--engine", engine,
                  "--limit-seconds", "0.05", "-o", self.out)
        text = strobe(*common)
        self.assertIn("end_to_end_fps", text.stdout)
        self.assertIn("strobe report", text.stdout)
        table = list(csv.DictReader(strobe(*common, "--format", "csv").stdout.splitlines()))
        self.assertEqual(table[0]["engine"], engine)
        self.assertGreater(float(table[0]["limit_fps"]), 0)

    def test_without_recording_only_the_frame_rate_is_known(self):
        run = json.loads(self.run_tiny("--no-record").stdout)["runs"][0]
        self.assertGreater(run["end_to_end_fps"], 0)
        self.assertNotIn("trace", run)

    def test_one_picture_is_a_video_of_one_frame(self):
        picture = self.folder / "one.png"
        subprocess.run(["ffmpeg", "-v", "error", "-i", str(self.video(1)), str(picture)], check=True)
        done = strobe("run", "--input", picture, "--model", self.cfg, "--weights", self.weights, "--engine",
                      self.engine(), "--format", "json", "-o", self.out)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)["runs"][0]["frames"], 1)
        self.assertTrue((self.out / "annotated.jpg").exists())

    def test_interrupt_keeps_everything_so_far(self):
        process = subprocess.Popen([STROBE, "run", "--input", self.endless(), "--model", str(self.cfg), "--weights",
                                    str(self.weights), "--engine", self.engine(), "--format", "json", "-o",
                                    str(self.out)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.wait_until(lambda: self.is_writing(self.out))
        time.sleep(1.0)
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, stderr)
        run = json.loads(stdout)["runs"][0]
        self.assertGreater(run["frames"], 0)
        self.assertEqual(len(frames_of(self.out / "frames.csv")), run["frames"])
        probe = subprocess.run(["ffprobe", "-v", "error", "-count_frames", "-show_entries", "stream=nb_read_frames",
                                "-of", "csv=p=0", run["video"]], check=True, capture_output=True, text=True)
        self.assertEqual(int(probe.stdout), run["frames"])

    def test_killed_run_is_recovered(self):
        process = subprocess.Popen([STROBE, "run", "--input", self.endless(), "--model", str(self.cfg), "--weights",
                                    str(self.weights), "--engine", self.engine(), "-o", str(self.out)],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.wait_until(lambda: self.is_writing(self.out))
        time.sleep(1.0)
        process.kill()
        process.wait()
        trace = self.folder / "recovered.sqlite"
        done = strobe("recover", self.out / "spool", "-o", trace)
        self.assertEqual(done.returncode, 0, done.stderr)
        count = sqlite3.connect(trace).execute(
            "SELECT COUNT(*) FROM NVTX_EVENTS n JOIN StringIds s ON n.textId = s.id WHERE s.value = 'infer'").fetchone()
        self.assertGreater(count[0], 10)


class SeveralEngines(Case):
    def test_side_by_side_with_verification(self):
        engines = built_engines()
        if len(engines) < 2:
            self.skipTest("needs two engines")
        cfg, weights = write_tiny_network(self.folder)
        out = self.folder / "out"
        done = strobe("run", "--input", self.video(20), "--model", cfg, "--weights", weights, "--engine",
                      ",".join(engines), "--limit-seconds", "0.05", "--score", "0.05", "--verify", "--format", "json",
                      "-o", out)
        self.assertEqual(done.returncode, 0, done.stderr)
        result = json.loads(done.stdout)
        self.assertEqual([run["engine"] for run in result["runs"]], engines)
        self.assertEqual(result["runs"][0]["speed_up"], 1.0)
        self.assertTrue(result["verify"]["agree"])
        for row in result["verify"]["engines"]:
            self.assertGreater(row["boxes"], 0)
            self.assertLess(row["max_rel"], 1e-3)
        rows = frames_of(out / "frames.csv")
        self.assertEqual(list(rows[0]), COLUMNS + ["engine"])
        self.assertEqual(len(rows), 20 * len(engines))
        for engine in engines:
            self.assertTrue((out / engine / "trace.sqlite").exists())
            self.assertTrue((out / engine / "annotated.mp4").exists())
        page = self.folder / "report.html"
        reported = strobe("report", *(run["trace"] for run in result["runs"]), "-o", page)
        self.assertEqual(reported.returncode, 0, reported.stderr)
        self.assertGreater(page.stat().st_size, 100_000)

    def test_untrained_network_says_so_and_draws_nothing(self):
        out = self.folder / "out"
        done = strobe("run", "--input", self.video(3), "--model", "yolov4-tiny", "--engine", self.engine(),
                      "--limit-seconds", "0.05", "--profile-runs", "1", "--format", "json", "-o", out)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(any("meaningless" in note for note in json.loads(done.stdout)["runs"][0]["notes"]))
        self.assertEqual([frame["boxes"] for frame in json.loads((out / "detections.json").read_text())], [[], [], []])


class Layers(Case):
    def test_fusion_map_covers_the_network(self):
        for engine in built_engines():
            with self.subTest(engine):
                cfg, weights = write_tiny_network(self.folder)
                out = self.folder / engine
                done = strobe("run", "--input", self.video(3), "--model", cfg, "--weights", weights, "--engine", engine,
                              "--limit-seconds", "0.05", "--format", "json", "-o", out)
                self.assertEqual(done.returncode, 0, done.stderr)
                table = strobe("layers", out / "trace.sqlite", "--fusion", "--format", "csv")
                self.assertEqual(table.returncode, 0, table.stderr)
                kernels = list(csv.DictReader(table.stdout.splitlines()))
                joined = "+".join(kernel["layers"] for kernel in kernels)
                self.assertIn("000_convolutional", joined)
                self.assertIn("002_convolutional", joined)
                self.assertGreater(sum(float(kernel["mean_us"]) for kernel in kernels if kernel["mean_us"]), 0)
                layers = list(csv.DictReader(strobe("layers", out / "trace.sqlite", "--format", "csv").stdout.splitlines()))
                self.assertIn("000_convolutional", [layer["layer"] for layer in layers])
                if engine == "openvino":
                    fused = [kernel["layers"] for kernel in kernels if "000_convolutional" in kernel["layers"]]
                    self.assertTrue(any(".bn" in names and ".leaky" in names for names in fused), fused)


# Boxes of OpenCV 4.11's DNN module on real weights: data/models/README.md. x, y, w, h in pixels of the picture.
REFERENCE = {
    ("yolo-fastest-1.1-xl", "dog.jpg"): [("dog", 0.958, (114, 189, 271, 347)), ("bicycle", 0.894, (113, 127, 460, 370)),
                                         ("car", 0.841, (450, 78, 234, 84))],
    ("yolo-fastest-1.1-xl", "giraffe.jpg"): [("giraffe", 0.995, (156, 14, 270, 418)), ("zebra", 0.943, (300, 213, 112, 224))],
    ("yolo-fastest-1.1-xl", "eagle.jpg"): [("bird", 0.993, (144, 78, 426, 376))],
    ("yolo-fastest-1.1-xl", "horses.jpg"): [("cow", 0.878, (439, 208, 157, 141)), ("horse", 0.820, (31, 190, 292, 205)),
                                            ("horse", 0.615, (240, 171, 179, 201)), ("horse", 0.475, (2, 194, 137, 88)),
                                            ("cow", 0.458, (273, 178, 168, 184)), ("horse", 0.306, (33, 180, 123, 70))],
    ("yolo-fastest-1.1", "eagle.jpg"): [("bird", 0.876, (223, 87, 364, 356))],
}


class RealWeights(Case):
    def test_boxes_are_those_of_the_reference_on_every_engine(self):
        for (model, picture), expected in REFERENCE.items():
            cfg, image = need(f"models/{model}.cfg"), need(f"samples/{picture}")
            for engine in built_engines():
                with self.subTest(f"{model} {picture} {engine}"):
                    out = self.folder / engine / model / picture
                    done = strobe("run", "--input", image, "--model", cfg, "--weights", cfg.with_suffix(".weights"),
                                  "--labels", need("models/coco.names"), "--engine", engine, "--limit-seconds", "0",
                                  "--profile-runs", "0", "--format", "json", "-o", out)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    boxes = json.loads((out / "detections.json").read_text())[0]["boxes"]
                    for label, score, place in expected:
                        # A score at the threshold's edge may fall below it.
                        near = [box for box in boxes if box["label"] == label and abs(box["score"] - score) < 0.02 and
                                overlap((box["x"], box["y"], box["w"], box["h"]), place) >= 0.9]
                        self.assertTrue(near or score < 0.32, f"{label} {score} {place} is not among {boxes}")
                    sure = [box for box in boxes if box["score"] > 0.32]
                    self.assertEqual(len(sure), len([1 for _, score, _ in expected if score > 0.32]), boxes)


class RealVideo(Case):
    def test_every_frame_of_a_street_is_detected_and_drawn(self):
        video, cfg = need("video/test-lowres.mp4"), need("models/yolo-fastest-1.1-xl.cfg")
        done = strobe("run", "--input", video, "--model", cfg, "--weights", cfg.with_suffix(".weights"), "--engine",
                      self.engine(), "--limit-seconds", "0.2", "--format", "json", "-o", self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)["runs"][0]["frames"], 168)
        labels = [box["label"] for frame in json.loads((self.folder / "detections.json").read_text())
                  for box in frame["boxes"]]
        self.assertGreater(labels.count("car"), 168)


if __name__ == "__main__":
    unittest.main()
