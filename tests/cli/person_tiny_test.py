"""The built-in person detector on frames that it was not trained on, against the network that labelled the others."""
import json
import unittest

from support import Case, built_engines, need, strobe


class PersonTiny(Case):
    def test_finds_people_in_frames_it_never_saw(self):
        video = need("video/vtest.avi")
        cfg, weights = need("models/yolo-fastest-1.1_body.cfg"), need("models/yolo-fastest-1.1_body.weights")
        labels = self.folder / "labels.txt"
        labels.write_text("person\n")
        pictures = self.folder / "pictures"
        # The last fifth of the video was held out.
        done = strobe("frames", "extract", video, "--start", "65", "--every", "12", "-o", pictures)
        self.assertEqual(done.returncode, 0, done.stderr)
        teacher = strobe("frames", "annotate", pictures, "--model", cfg, "--weights", weights, "--labels", labels, "--size",
                         "1152x864", "--threshold", "0.5", "--engine", self.engine(), "-o", self.folder / "teacher")
        self.assertEqual(teacher.returncode, 0, teacher.stderr)
        for engine in built_engines():
            out = self.folder / engine
            done = strobe("frames", "annotate", pictures, "--threshold", "0.05", "--engine", engine, "-o", out)
            self.assertEqual(done.returncode, 0, done.stderr)
            judged = strobe("frames", "evaluate", out / "annotations.json", "--truth",
                            self.folder / "teacher/annotations.json", "--format", "json")
            self.assertEqual(judged.returncode, 0, judged.stderr)
            self.assertGreater(json.loads(judged.stdout)["measures"]["AP50"], 0.9, engine)

    def test_boxes_out_of_the_box(self):
        out = self.folder / "out"
        done = strobe("run", "--input", need("video/vtest.avi"), "--frames", "10", "--engine", self.engine(), "-o", out, "-q",
                      "--limit-seconds", "0", "--profile-runs", "0")
        self.assertEqual(done.returncode, 0, done.stderr)
        frames = json.loads((out / "detections.json").read_text())
        self.assertEqual(len(frames), 10)
        for frame in frames:
            self.assertGreaterEqual(len(frame["boxes"]), 3)
            self.assertEqual({box["label"] for box in frame["boxes"]}, {"person"})


if __name__ == "__main__":
    unittest.main()
