"""What the tests of the command line share: calling strobe, small inputs, the engines that are built."""
import functools
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import time
import unittest

STROBE = os.environ.get("STROBE", "build/release/bin/strobe")
DATA = pathlib.Path(os.environ.get("STROBE_SHARED_DATA", "../shared/data"))


def strobe(*arguments, timeout=300, **keywords):
    return subprocess.run([STROBE, *map(str, arguments)], capture_output=True, text=True, timeout=timeout, **keywords)


GPU_ENGINES = frozenset({"tensorrt"})  # which run nowhere else


@functools.cache
def built_engines(on=frozenset()):
    """Those that run on the CPU, and those of GPU_ENGINES that `on` has."""
    done = strobe("info", "--format", "json")
    assert done.returncode == 0, done.stderr
    return [engine["name"] for engine in json.loads(done.stdout)["engines"] if engine["built"] and
            (engine["name"] not in GPU_ENGINES or engine["name"] in on)]


def need(path):
    """The path of real data, or a skip with the reason."""
    path = DATA / path
    if not path.exists():
        raise unittest.SkipTest(f"real data is absent: {path}")
    return path


def overlap(a, b):
    """IoU of two boxes (x, y, w, h)."""
    left, top = max(a[0], b[0]), max(a[1], b[1])
    right, bottom = min(a[0] + a[2], b[0] + b[2]), min(a[1] + a[3], b[1] + b[3])
    both = max(0, right - left) * max(0, bottom - top)
    return both / (a[2] * a[3] + b[2] * b[3] - both)


# A network that every engine runs in a millisecond; weights are seeded by the test.
TINY_CFG = """[net]
width=64
height=64
channels=3

[convolutional]
batch_normalize=1
filters=8
size=3
stride=2
pad=1
activation=leaky

[maxpool]
size=2
stride=2

[convolutional]
filters=14
size=1
stride=1
pad=1
activation=linear

[yolo]
mask=0,1
anchors=10,14, 23,27
classes=2
num=2
"""
# bias, scale, mean, variance of 8 channels and 8x3x3x3 weights; then 14 biases and 14x8 weights.
TINY_COUNT = 4 * 8 + 8 * 27 + 14 + 14 * 8


def write_tiny_network(folder):
    import random
    import struct
    random.seed(7)
    cfg, weights = folder / "tiny.cfg", folder / "tiny.weights"
    cfg.write_text(TINY_CFG)
    numbers = [random.uniform(0.05, 0.6) for _ in range(TINY_COUNT)]
    weights.write_bytes(struct.pack("<3iq", 0, 2, 5, 0) + struct.pack(f"<{TINY_COUNT}f", *numbers))
    return cfg, weights


class Case(unittest.TestCase):
    """A test with a folder of its own, and a short synthetic video made by the ffmpeg program."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="strobe-cli-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def video(self, frames=40, size="160x120", name="in.mp4"):
        if not shutil.which("ffmpeg"):
            self.skipTest("the program ffmpeg is absent")
        path = self.folder / name
        subprocess.run(["ffmpeg", "-v", "error", "-y", "-f", "lavfi", "-i", f"testsrc2=size={size}:rate=25", "-frames:v",
                        str(frames), "-pix_fmt", "yuv420p", str(path)], check=True)
        return path

    @staticmethod
    def made(frames=40, size="160x120"):
        """A source of so many pictures, for tests that need neither a file nor FFmpeg."""
        return f"synthetic://{size}@25/{frames}"

    @staticmethod
    def is_writing(out):
        """Whether a run's annotated video is under way, which is opened after input and network."""
        return any(out.glob("*annotated.mp4*"))

    def wait_until(self, is_so, seconds=60):
        end = time.monotonic() + seconds
        while not is_so():
            self.assertLess(time.monotonic(), end, "it did not happen")
            time.sleep(0.02)

    @classmethod
    def endless(cls):
        """A source that no machine is fast enough to finish: for tests that end the run themselves."""
        return cls.made(1_000_000_000)

    def engine(self):
        engines = built_engines()
        if not engines:
            self.skipTest("no engine is built")
        return "openvino" if "openvino" in engines else engines[0]

    def refused(self, done, *words):
        """One line on stderr that has these words, exit code 2, nothing on stdout."""
        self.assertEqual(done.returncode, 2, done.stderr)
        lines = done.stderr.strip().split("\n")
        self.assertEqual(len(lines), 1, done.stderr)
        self.assertTrue(lines[0].startswith("strobe: "), lines[0])
        for word in words:
            self.assertIn(str(word), lines[0])
        self.assertEqual(done.stdout, "")
