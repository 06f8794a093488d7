"""strobe sensors weather, from outside: sweeps of nuScenes and KITTI, folders, words that are off."""
import hashlib
import json
import math
import struct
import unittest

from support import Case, need, strobe

SWEEP = ("sensors/nuscenes/samples/LIDAR_TOP/"
         "n015-2018-07-24-11-22-45+0800__LIDAR_TOP__1532402927647951.pcd.bin")


def kitti(points):
    return b"".join(struct.pack("<4f", 2 + i / 9, 1 - i / 7, .5, (i % 100) / 100) for i in range(points))


class Weather(Case):
    def weather(self, path, *flags):
        return strobe("sensors", "weather", path, "-o", self.folder / "out.bin", *flags)

    def test_real_sweep_in_rain(self):
        sweep = need(SWEEP)
        done = self.weather(sweep, "--kind", "rain", "--rate", 10, "--seed", 1, "--mode", "monte-carlo",
                            "--rules", "lisa", "--format", "json")
        self.assertEqual(done.returncode, 0, done.stderr)
        told = json.loads(done.stdout)
        self.assertEqual(told["points"], 34688)
        self.assertEqual(told["lost"] + told["scattered"] + told["kept"], 34688)
        self.assertEqual((self.folder / "out.bin").stat().st_size, 20 * (told["scattered"] + told["kept"]))
        far = told["beyond_near_limit"]
        for key, share in (("lost_share", .0769), ("scattered_share", .0115)):  # LISA's
            self.assertAlmostEqual(far[key], share, delta=5 * math.sqrt(2 * share / 26292))

    def test_threads_do_not_matter(self):
        path = self.folder / "in.bin"
        path.write_bytes(kitti(5000))
        digests = set()
        for threads in (1, 2, 7):
            self.assertEqual(self.weather(path, "--kind", "snow", "--rate", 5, "--seed", 9, "--threads", threads).returncode, 0)
            digests.add(hashlib.sha256((self.folder / "out.bin").read_bytes()).hexdigest())
        self.assertEqual(len(digests), 1)

    def test_folder_has_a_manifest(self):
        (self.folder / "in").mkdir()
        for i in range(3):
            (self.folder / "in" / f"{i}.bin").write_bytes(kitti(300 + i))
        done = strobe("sensors", "weather", self.folder / "in", "--kind", "fog", "--fog", "moderate-advection",
                      "-o", self.folder / "out", "--format", "json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)["sweeps"], 3)
        manifest = json.loads((self.folder / "out" / "manifest.json").read_text())
        for entry in manifest["files"]:
            written = (self.folder / "out" / entry["file"]).read_bytes()
            self.assertEqual(entry["sha256"], hashlib.sha256(written).hexdigest())

    def test_what_is_off_is_refused(self):
        good = self.folder / "good.bin"
        good.write_bytes(kitti(10))
        bad = self.folder / "bad.bin"
        bad.write_bytes(kitti(10) + b"xyz")
        nan = self.folder / "nan.bin"
        nan.write_bytes(kitti(3) + struct.pack("<4f", math.nan, 0, 0, .5) + kitti(3))
        rain = ("--kind", "rain", "--rate", 10)
        self.refused(self.weather(bad, *rain), "bad.bin", "163 bytes")
        self.refused(self.weather(nan, *rain), "nan.bin", "point 3")
        self.refused(self.weather(good, "--kind", "rain", "--rate", -1), "rate -1")
        self.refused(self.weather(good, "--kind", "rain"), "--rate")
        self.refused(self.weather(good, "--kind", "hail", "--rate", 1), "hail")
        self.refused(self.weather(good, "--kind", "fog", "--mode", "monte-carlo"), "expected mode mean")
        self.refused(self.weather(good, "--kind", "fog", "--fog", "pea"), "pea")
        self.refused(self.weather(self.folder / "none.bin", *rain), "none.bin")
        self.refused(self.weather(good, "--kind", "snow", "--rate", 1e9), "rate 1e+09", "0 to 10000")
        self.assertFalse((self.folder / "out.bin").exists())

    def test_a_sweep_does_not_replace_itself(self):
        good = self.folder / "good.bin"
        good.write_bytes(kitti(10))
        (self.folder / "link.bin").symlink_to(good)
        for name in ("good.bin", "link.bin"):
            done = strobe("sensors", "weather", good, "-o", self.folder / name, "--rate", 10)
            self.refused(done, name, "the same file")
        self.assertEqual(good.read_bytes(), kitti(10))


if __name__ == "__main__":
    unittest.main()
