"""Bad input: one clear line that says what, where and what was expected; exit code 2; nothing half-written."""
import json
import os
import resource
import sqlite3
import subprocess
import tempfile
import unittest

from support import STROBE, TINY_COUNT, Case, built_engines, need, strobe, write_tiny_network


class BadInput(Case):
    def setUp(self):
        super().setUp()
        self.cfg, self.weights = write_tiny_network(self.folder)
        self.out = self.folder / "out"

    def run_with(self, input_, *flags, model=None, weights=None, out=None):
        return strobe("run", "--input", input_, "--model", model or self.cfg, "--weights", weights or self.weights,
                      "--engine", self.engine(), "--limit-seconds", "0", "--profile-runs", "0", "-o", out or self.out,
                      *flags)

    def refused(self, done, *words):
        super().refused(done, *words)
        self.assertFalse(self.out.exists(), "nothing is left where nothing was")

    def test_nothing_is_left_of_work_that_is_refused(self):
        path, empty, scans = self.folder / "v.mp4", self.folder / "empty", self.folder / "scans"
        path.write_text("this is no video\n" * 50)
        empty.mkdir()
        scans.mkdir()
        (scans / "a.bin").write_bytes(b"four")
        deep = self.out / "in" / "here"
        commands = [("sensors", "weather", scans, "--rate", "3"),
                    ("frames", "extract", path), ("frames", "annotate", path, "--model", self.cfg, "--weights",
                                                  self.weights, "--engine", self.engine())]
        for name in built_engines():
            commands.append(("run", "--input", path, "--model", self.cfg, "--weights", self.weights, "--engine", name))
        if len(built_engines()) > 1:
            commands.append(("run", "--input", path, "--engine", ",".join(built_engines())))
        if "torch" in built_engines():
            commands.append(("run", "--mode", "retrain", "--input", empty, "--model", "mnasnet1_0", "--engine", "torch"))
        for command in commands:
            with self.subTest(command=command):
                self.refused(strobe(*command, "-o", deep))
        # What was there before stays.
        self.out.mkdir()
        done = strobe("frames", "annotate", path, "--model", self.cfg, "--weights", self.weights, "--engine",
                      self.engine(), "-o", deep)
        self.assertEqual(done.returncode, 2)
        self.assertEqual(list(self.out.iterdir()), [])

    def test_missing_video(self):
        self.refused(self.run_with("/nowhere/v.mp4"), "/nowhere/v.mp4", "no such")

    def test_text_file_as_video(self):
        path = self.folder / "v.mp4"
        path.write_text("this is no video\n" * 50)
        self.refused(self.run_with(path), path)

    def test_empty_file(self):
        path = self.folder / "v.mp4"
        path.write_bytes(b"")
        self.refused(self.run_with(path), path)

    def test_folder_without_pictures(self):
        folder = self.folder / "empty"
        folder.mkdir()
        self.refused(self.run_with(folder), folder)

    def test_video_without_its_index(self):
        path = self.video(60)
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
        self.refused(self.run_with(path), path)

    def test_video_that_breaks_off_gives_what_it_has(self):
        path = self.video(100, name="v.avi")
        path.write_bytes(path.read_bytes()[: path.stat().st_size * 6 // 10])
        done = self.run_with(path, "--format", "json")
        self.assertIn(done.returncode, (0, 2), done.stderr)
        run = json.loads(done.stdout)["runs"][0]
        self.assertGreater(run["frames"], 20)
        self.assertLess(run["frames"], 100)
        self.assertTrue(done.returncode == 2 or run.get("notes"), "a break must be told")
        self.assertEqual(len(json.loads((self.out / "detections.json").read_text())), run["frames"])

    def test_numbers_that_are_none_or_do_not_fit(self):
        for flag, value, expected in (("--seed", "-1", "of 0 or more"), ("--seed", "1" * 20 + "0", "64 bits"),
                                      ("--frames", "9" * 19 + "9", "64 bits"), ("--frames", "3.5", "a whole number"),
                                      ("--frames", "many", "a whole number"), ("--score", "nan", "a number"),
                                      ("--score", "half", "a number"), ("--timeout", "1e999", "a finite number")):
            with self.subTest(flag=flag, value=value):
                self.refused(strobe("run", "--input", "synthetic://64x64/3", flag, value, "-o", self.out),
                             flag, value, "expected", expected)
        self.assertFalse(self.out.exists())

    def test_unknown_codec(self):
        path = self.video(20, name="v.avi")
        path.write_bytes(path.read_bytes().replace(b"FMP4", b"ZZZ9"))
        self.refused(self.run_with(path), path)

    def test_sound_without_pictures(self):
        path = self.folder / "a.wav"
        subprocess.run(["ffmpeg", "-v", "error", "-f", "lavfi", "-i", "sine=duration=1", str(path)], check=True)
        self.refused(self.run_with(path), path)

    def test_weights_that_are_too_short(self):
        short = self.folder / "short.weights"
        short.write_bytes(self.weights.read_bytes()[:-40])
        self.refused(self.run_with(self.video(2), weights=short), short, "002_convolutional", "10")

    def test_weights_that_are_too_long(self):
        long = self.folder / "long.weights"
        long.write_bytes(self.weights.read_bytes() + b"\0" * 20)
        self.refused(self.run_with(self.video(2), weights=long), long, "5")

    def test_missing_weights(self):
        self.refused(self.run_with(self.video(2), weights=self.folder / "none.weights"), "none.weights", "no such")

    def test_unknown_layer_type(self):
        cfg = self.folder / "bad.cfg"
        cfg.write_text(self.cfg.read_text().replace("[maxpool]", "[warp]"))
        self.refused(self.run_with(self.video(2), model=cfg), cfg, "warp", "14")

    def test_unknown_model(self):
        self.refused(self.run_with(self.video(2), model="yolov9-huge"), "yolov9-huge", "yolov4-tiny")

    def test_numbers_out_of_range(self):
        for flags, words in ((("--batch", "0"), ("--batch", "at least 1")), (("--frames", "-1"), ("--frames",)),
                             (("--score", "7"), ("--score", "0..1")), (("--queue", "0"), ("--queue",)),
                             (("--size", "12"), ("--size", "WIDTHxHEIGHT")), (("--hint", "fast"), ("--hint", "latency")),
                             (("--precision", "f99"), ("--precision", "f32")), (("--format", "xml"), ("xml", "json")),
                             (("--drop", "all"), ("--drop", "oldest"))):
            with self.subTest(flags):
                self.refused(self.run_with("x.mp4", *flags), *words)

    def test_words_that_are_no_flags_or_numbers(self):
        self.refused(self.run_with("x.mp4", "--btach", "3"), "--btach")
        self.refused(self.run_with("x.mp4", "--batch", "three"), "--batch", "three")
        self.refused(strobe("rnu"), "rnu")
        self.refused(strobe("run"), "--input")

    def test_several_engines_fail_with_one_line(self):
        engines = built_engines()
        if len(engines) < 2:
            self.skipTest("fewer than two engines are built")
        both = ",".join(engines[:2])
        out = self.folder / "two"
        self.refused(strobe("run", "--input", "nothing.mp4", "--engine", both, "-o", out), "nothing.mp4")
        self.refused(strobe("run", "--input", self.video(2), "--engine", engines[0] + ",nonesuch", "-o", out), "nonesuch")
        self.assertFalse(any(out.rglob("trace.sqlite")))

    def test_unknown_engine(self):
        done = strobe("run", "--input", self.video(2), "--engine", "openvno", "-o", self.out)
        self.refused(done, "openvno", "openvino")

    def test_verify_needs_two_engines(self):
        self.refused(self.run_with("x.mp4", "--verify"), "--verify", "two")

    def test_output_that_cannot_be_written(self):
        (self.folder / "file").write_text("x")
        self.refused(self.run_with(self.video(2), out=self.folder / "file/out"), self.folder / "file/out")
        self.refused(self.run_with(self.video(2), out="/proc/strobe-out"), "/proc/strobe-out")

    def test_camera_that_is_not_there(self):
        self.refused(self.run_with("/dev/video99"), "/dev/video99")

    def test_rtsp_server_that_is_not_there(self):
        self.refused(self.run_with("rtsp://127.0.0.1:9/none", "--timeout", "1", "--reconnects", "0"), "rtsp://127.0.0.1:9")

    def test_trace_that_is_none(self):
        bad = self.folder / "t.sqlite"
        bad.write_text("no database")
        for command in (("layers", bad), ("report", bad, "-o", self.folder / "r.html")):
            self.refused(strobe(*command), bad)
            self.assertFalse((self.folder / "r.html").exists())
        self.refused(strobe("layers", "/nowhere/t.sqlite"), "/nowhere/t.sqlite")


class FullDisk(Case):
    """Whatever cannot be written, what was recorded stays readable."""

    def run_limited(self, limit, frames):
        cfg, weights = write_tiny_network(self.folder)
        out = self.folder / "out"
        video = self.video(frames, size="640x480")
        return out, subprocess.run(
            [STROBE, "run", "--input", str(video), "--model", str(cfg), "--weights", str(weights), "--engine",
             self.engine(), "--limit-seconds", "0", "--profile-runs", "0", "-o", str(out)],
            capture_output=True, text=True, timeout=120,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))

    def test_video_that_hits_the_limit(self):
        out, done = self.run_limited(3 << 20, 900)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(len(done.stderr.strip().split("\n")), 1, done.stderr)
        self.assertFalse((out / "annotated.mp4").exists())
        trace = out / "trace.sqlite"
        if not trace.exists():  # the trace itself was over the limit, too: its recording is still there
            trace = self.folder / "recovered.sqlite"
            recovered = strobe("recover", out / "spool", "-o", trace)
            self.assertEqual(recovered.returncode, 0, recovered.stderr)
        count = sqlite3.connect(trace).execute("SELECT COUNT(*) FROM NVTX_EVENTS WHERE eventType = 59").fetchone()[0]
        self.assertGreater(count, 100)

    def test_small_tmpfs(self):
        if os.geteuid() != 0:
            self.skipTest("mounting needs root")
        mount = tempfile.mkdtemp(prefix="strobe-full-")
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", mount], capture_output=True).returncode:
            self.skipTest("a tmpfs cannot be mounted here")
        self.addCleanup(os.rmdir, mount)
        self.addCleanup(subprocess.run, ["umount", "-l", mount], check=True)
        cfg, weights = write_tiny_network(self.folder)
        video = self.video(1500, size="640x480")
        done = strobe("run", "--input", video, "--model", cfg, "--weights", weights, "--engine", self.engine(),
                      "--limit-seconds", "0", "--profile-runs", "0", "-o", mount + "/out")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(len(done.stderr.strip().split("\n")), 1, done.stderr)
        traces = [mount + "/out/trace.sqlite"] if os.path.exists(mount + "/out/trace.sqlite") else []
        if not traces:
            recovered = strobe("recover", mount + "/out/spool", "-o", self.folder / "recovered.sqlite")
            self.assertEqual(recovered.returncode, 0, recovered.stderr)
            traces = [self.folder / "recovered.sqlite"]
        count = sqlite3.connect(traces[0]).execute("SELECT COUNT(*) FROM NVTX_EVENTS WHERE eventType = 59").fetchone()[0]
        self.assertGreater(count, 100)


if __name__ == "__main__":
    unittest.main()
