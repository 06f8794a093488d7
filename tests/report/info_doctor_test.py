"""`strobe info` and `strobe doctor`: what they say here, and where something is missing."""
import csv
import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from support import GPU_ENGINES, STROBE, built_engines, strobe

ENGINES = ["torch", "openvino", "opencv", "tensorrt"]
STATES = {"works", "advice", "missing", "broken"}


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="strobe-doctor-test-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def elsewhere(self, *arguments, **environment):
        """A copy of the program without the plugins that stand beside it, with this environment."""
        program = self.folder / "bin" / "strobe"
        if not program.exists():
            program.parent.mkdir()
            shutil.copy(STROBE, program)
        clean = {key: value for key, value in os.environ.items() if not key.startswith("STROBE_")}
        return subprocess.run([program, *arguments], capture_output=True, text=True, timeout=300, cwd=self.folder,
                              env={**clean, **environment})

    def checks(self, done):
        return {row["check"]: row for row in json.loads(done.stdout)["rows"]}


class Info(Case):
    def test_json(self):
        done = strobe("info", "--format", "json")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        info = json.loads(done.stdout)
        self.assertEqual(list(info), ["cpu", "memory", "os", "host", "strobe", "time", "media", "engines"])
        self.assertGreater(info["cpu"]["cores_online"], 0)
        self.assertEqual(info["cpu"]["arch"], os.uname().machine)
        self.assertEqual(info["os"]["kernel"], os.uname().release)
        self.assertIsInstance(info["cpu"]["features"], list)
        with open("/proc/meminfo", encoding="ascii") as file:
            self.assertEqual(info["memory"]["total_mib"], int(file.readline().split()[1]) // 1024)
        self.assertRegex(info["time"]["utc"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
        self.assertEqual(set(info["strobe"]), {"version", "revision", "build", "compiler"})
        self.assertEqual([engine["name"] for engine in info["engines"]][:len(ENGINES)], ENGINES)
        for engine in info["engines"]:
            if engine["built"]:
                self.assertEqual(list(engine), ["name", "built", "path", "version", "variants", "precisions", "file_formats"])
                if engine["name"] != "tensorrt":  # without a GPU it has none
                    self.assertIn("f32", engine["precisions"])
                self.assertTrue(pathlib.Path(engine["path"]).exists())
            else:
                self.assertEqual(list(engine), ["name", "built", "how_to_get"])

    def test_csv_has_the_same_facts(self):
        done = strobe("info", "--format", "csv")
        rows = list(csv.reader(io.StringIO(done.stdout)))
        self.assertEqual(rows[0], ["fact", "value"])
        facts = dict(rows[1:])
        self.assertEqual(len(facts), len(rows) - 1, "a fact stands twice")
        info = json.loads(strobe("info", "--format", "json").stdout)
        self.assertEqual(facts["cpu.model"], info["cpu"]["model"])
        self.assertEqual(facts["cpu.features"].split(), info["cpu"]["features"])
        for engine in info["engines"]:
            self.assertEqual(facts[f"engines.{engine['name']}.built"], "yes" if engine["built"] else "no")

    def test_text_has_an_engine_a_line(self):
        lines = strobe("info").stdout.splitlines()
        self.assertEqual(lines[0], "Machine and versions")
        for engine in built_engines():
            self.assertRegex(next(line for line in lines if line.startswith(engine)), r"\bready$")

    def test_without_plugins(self):
        done = self.elsewhere("info", "--format", "json", STROBE_PLUGIN_DIR=str(self.folder))
        self.assertEqual(done.returncode, 0, done.stderr)
        info = json.loads(done.stdout)
        self.assertEqual([engine["built"] for engine in info["engines"]], [False] * len(ENGINES))
        for engine in info["engines"]:
            self.assertIn("make", engine["how_to_get"])
        self.assertIn("libstrobe_media.so", info["media"]["error"])
        text = self.elsewhere("info", STROBE_PLUGIN_DIR=str(self.folder)).stdout
        self.assertEqual(text.count("not built: "), len(ENGINES))

    def test_broken_plugin_is_named(self):
        (self.folder / "libstrobe_engine_torch.so").write_bytes(b"no shared object")
        done = self.elsewhere("info", STROBE_PLUGIN_DIR=str(self.folder))
        self.assertEqual(done.returncode, 0, done.stderr)
        line = next(line for line in done.stdout.splitlines() if line.startswith("torch"))
        self.assertRegex(line, r"broken: .*libstrobe_engine_torch\.so")

    def test_unknown_format(self):
        done = strobe("info", "--format", "xml")
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stderr.count("\n"), 1)
        for word in ("xml", "text", "csv", "json"):
            self.assertIn(word, done.stderr)


class Doctor(Case):
    def test_here(self):
        if not built_engines():
            self.skipTest("no engine is built")
        done = strobe("doctor", "--format", "json")
        rows = json.loads(done.stdout)["rows"]
        for row in rows:
            self.assertEqual(list(row), ["check", "state", "needed", "detail", "remedy"])
            self.assertIn(row["state"], STATES)
            self.assertTrue(row["detail"], row["check"])
            if row["state"] == "broken":
                self.assertTrue(row["remedy"], row["check"])
        checks = self.checks(done)
        self.assertEqual(len(checks), len(rows), "a check stands twice")
        for engine in built_engines(GPU_ENGINES):
            # Without a GPU this one has nothing to run on.
            states = {"works", "missing"} if engine == "tensorrt" else {"works"}
            self.assertIn(checks["engine " + engine]["state"], states, checks["engine " + engine])
        self.assertEqual({name for name, row in checks.items() if row["needed"]}, {"any engine", "media", "recorder"})
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_text_ends_with_the_verdict(self):
        if not built_engines():
            self.skipTest("no engine is built")
        lines = strobe("doctor").stdout.splitlines()
        self.assertEqual(lines[-1], "Strobe can be used here.")
        for line in lines[:-2]:
            self.assertRegex(line, r"^((works|advice|missing|broken) +\S|  +-> \S)")

    def test_without_plugins(self):
        done = self.elsewhere("doctor", "--format", "json", STROBE_PLUGIN_DIR=str(self.folder))
        self.assertEqual(done.returncode, 1)
        checks = self.checks(done)
        for engine in ENGINES:
            self.assertEqual(checks["engine " + engine]["state"], "missing")
            self.assertIn("make", checks["engine " + engine]["remedy"])
        for name in ("any engine", "media"):
            self.assertEqual(checks[name]["state"], "broken")
            self.assertTrue(checks[name]["remedy"])
        self.assertEqual(checks["recorder"]["state"], "works")
        self.assertEqual(checks["report plots"]["state"], "missing")
        self.assertIn("STROBE_PLOTLY_JS", checks["report plots"]["remedy"])
        text = self.elsewhere("doctor", STROBE_PLUGIN_DIR=str(self.folder)).stdout
        self.assertEqual(text.splitlines()[-1], "Strobe cannot be used here: any engine, media")

    def test_without_ffmpeg(self):
        plain = pathlib.Path(STROBE).resolve().parent.parent / "lib" / "strobe" / "libstrobe_media_plain.so"
        shutil.copy(plain, self.folder)
        done = self.elsewhere("doctor", "--format", "json", STROBE_PLUGIN_DIR=str(self.folder))
        media = self.checks(done)["media"]
        self.assertEqual((media["state"], media["needed"]), ("missing", 0))
        self.assertIn("synthetic and PPM pictures only", media["detail"])
        self.assertIn("libavformat-dev", media["remedy"])
        text = self.elsewhere("doctor", STROBE_PLUGIN_DIR=str(self.folder)).stdout
        self.assertEqual(text.splitlines()[-1], "Strobe cannot be used here: any engine")
        (self.folder / "video.mp4").write_bytes(b"x")
        done = self.elsewhere("frames", "extract", "video.mp4", "-o", "out", STROBE_PLUGIN_DIR=str(self.folder))
        self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1), done.stderr)
        self.assertIn("video.mp4: reading this needs FFmpeg, which is not built in: install libavformat-dev", done.stderr)

    def test_parts_that_were_not_built(self):
        checks = self.checks(self.elsewhere("doctor", "--format", "json", STROBE_PLUGIN_DIR=str(self.folder)))
        self.assertEqual((checks["ROS 2 topics"]["state"], checks["ROS 2 topics"]["detail"]), ("missing", "not built"))
        self.assertIn("libfastrtps-dev", checks["ROS 2 topics"]["remedy"])
        self.assertIn(checks["strobe view"]["state"], ("works", "missing"))

    def test_broken_plugin_harms_no_other_check(self):
        (self.folder / "libstrobe_engine_torch.so").write_bytes(b"no shared object")
        checks = self.checks(self.elsewhere("doctor", "--format", "json", STROBE_PLUGIN_DIR=str(self.folder)))
        self.assertEqual(checks["engine torch"]["state"], "broken")
        self.assertIn("libstrobe_engine_torch.so", checks["engine torch"]["detail"])
        self.assertEqual(checks["recorder"]["state"], "works")

    def test_no_temporary_folder(self):
        for place in ("/nonexistent/folder", "/proc"):
            with self.subTest(place):
                done = self.elsewhere("doctor", "--format", "json", TMPDIR=place)
                self.assertEqual(done.returncode, 1)
                recorder = self.checks(done)["recorder"]
                self.assertEqual(recorder["state"], "broken")
                self.assertIn(place, recorder["detail"])
                self.assertIn("TMPDIR", recorder["remedy"])
        self.assertEqual([path.name for path in self.folder.iterdir()], ["bin"], "files were left in the current folder")

    def test_leaves_nothing_behind(self):
        (self.folder / "tmp").mkdir()
        self.assertEqual(strobe("doctor", env={**os.environ, "TMPDIR": str(self.folder / "tmp")}, cwd=self.folder).stderr, "")
        self.assertEqual(list((self.folder / "tmp").iterdir()), [])
        self.assertEqual([path.name for path in self.folder.iterdir()], ["tmp"])

    def test_load_and_cores_are_those_of_the_machine(self):
        checks = self.checks(strobe("doctor", "--format", "json"))
        said = re.search(r"([\d.]+) threads wanted the (\d+) cores", checks["quiet machine"]["detail"])
        self.assertEqual(int(said[2]), os.sysconf("SC_NPROCESSORS_ONLN"))
        self.assertAlmostEqual(float(said[1]), os.getloadavg()[0], delta=1 + 0.3 * os.getloadavg()[0])
        if abs(float(said[1]) - 0.25 * int(said[2])) > 0.06:  # what is said is rounded
            self.assertEqual(checks["quiet machine"]["state"], "advice" if float(said[1]) > 0.25 * int(said[2]) else "works")


if __name__ == "__main__":
    unittest.main()
