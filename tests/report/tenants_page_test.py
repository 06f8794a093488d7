"""The report of tenants: a grid of runs, a LiDAR's scene with its boxes, and pPerf's files out of a trace."""
import csv
import json
import pathlib
import shutil
import tempfile
import unittest

from browser_test import READY
from devtools import Browser, find_chromium
from support import built_engines, need, strobe

GRID = """
duration: 1s
warmup: 100ms
tenants:
  - {name: a, model: "spin:2ms", source: synthetic, rate: 50, deadline: 12ms}
  - {name: b, model: "spin:6ms/3", source: synthetic, rate: 40, deadline: 50ms}
grid: {policy: [fifo, priority], b.rate: [20, 40]}
"""
LIDAR = """
duration: 1s
warmup: 100ms
tenants:
  - {name: lidar, model: pointpillars-small, source: "%s", rate: 4, deadline: 250ms}
  - {name: space, model: pointpillars-small, source: {path: "%s"}, rate: 2}
"""
# Of each plot of a section: how many of its bars, boxes, cells or points have a size.
DRAWN = """[...document.querySelectorAll("#%s .plot")].map(box => [...box.querySelectorAll("svg.main-svg .cartesianlayer .trace path, svg.main-svg .cartesianlayer .hm image, svg.main-svg .cartesianlayer .box")]
  .filter(part => { const size = part.getBoundingClientRect(); return size.width > 0 || size.height > 0; }).length)"""
COLOURS = """(() => { const canvas = document.querySelector("canvas.scene");
  const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data, found = {truth: 0, predicted: 0, coloured: 0};
  for (let i = 0; i < data.length; i += 4) {
    const [r, g, b] = [data[i], data[i + 1], data[i + 2]];
    if (Math.abs(r - 47) + Math.abs(g - 158) + Math.abs(b - 68) < 30) ++found.truth;
    else if (Math.abs(r - 214) + Math.abs(g - 51) + Math.abs(b - 108) < 30) ++found.predicted;
    else if (Math.max(r, g, b) - Math.min(r, g, b) > 40) ++found.coloured;
  }
  return found; })()"""


class TenantsPage(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        program = find_chromium()
        if not program:
            raise unittest.SkipTest("no chromium on this machine")
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="strobe-tenants-page-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.browser = Browser(program)
        cls.addClassCleanup(cls.browser.close)

    def run_grid(self, text, name):
        path = self.folder / f"{name}.yaml"
        path.write_text(text)
        done = strobe("run", path, "-o", self.folder / name, "--quiet")
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.folder / name

    def load(self, *traces):
        page = self.folder / "page.html"
        done = strobe("report", *traces, "-o", page, "--quiet")
        self.assertEqual(done.returncode, 0, done.stderr)
        tab = self.browser.page()
        self.addCleanup(tab.close)
        tab.open(page)
        tab.wait(READY)
        tab.frame()
        return tab

    def check_silent(self, tab):
        self.assertEqual(tab.complaints(), [])
        self.assertEqual(json.loads(tab.evaluate("document.documentElement.dataset.strobeErrors")), [])
        self.assertEqual(tab.requests(), [])

    def check_drawn(self, tab, *sections):
        for section in sections:
            drawn = tab.evaluate(DRAWN % section)
            self.assertTrue(drawn, section)
            for parts in drawn:
                self.assertGreater(parts, 0, section)

    def test_a_grid_of_runs(self):
        out = self.run_grid(GRID, "grid")
        tab = self.load(out)
        sections = tab.evaluate("[...document.querySelectorAll('section.part')].map(part => part.id)")
        self.assertEqual(sections[:6], ["tenants", "frames", "blame", "grid", "effects", "variation"])
        self.assertNotIn("scene", sections)
        self.check_drawn(tab, "frames", "blame", "grid", "effects", "variation")
        self.assertEqual(tab.evaluate("document.querySelectorAll('#tenants tbody tr').length"), 8)
        # Another run is shown when it is asked for, in every section that shows one.
        tab.evaluate("(() => { const menu = document.querySelector('#blame select'); menu.value = '3'; menu.dispatchEvent(new Event('change')); })()")
        tab.frame()
        self.assertEqual(tab.evaluate("document.querySelector('#frames select').value"), "3")
        self.check_drawn(tab, "frames", "blame")
        tab.evaluate("[...document.querySelectorAll('#grid button')].forEach(button => button.click())")
        tab.scheme(dark=True)
        tab.frame()
        self.check_drawn(tab, "frames", "blame", "grid", "effects", "variation")
        self.check_silent(tab)
        # One cell has no grid.
        cell = sorted(out.glob("000*"))[0]
        alone = self.load(cell / "trace.sqlite")
        sections = alone.evaluate("[...document.querySelectorAll('section.part')].map(part => part.id)")
        self.assertEqual(sections[:3], ["tenants", "frames", "blame"])
        self.assertNotIn("grid", sections)
        self.check_silent(alone)

        # The same figures for other programs.
        done = strobe("predictability", out, "--format", "json")
        self.assertEqual(done.returncode, 0, done.stderr)
        answer = json.loads(done.stdout)
        self.assertEqual(len(answer["runs"]), 4)
        self.assertAlmostEqual(sum(row["share"] for row in answer["variation"]["rows"]), 1, places=6)
        effects = answer["effects"]["rows"]
        self.assertEqual({(row["tenant"], row["factor"]) for row in effects},
                         {(tenant, factor) for tenant in "ab" for factor in ("policy", "b.rate")})
        for row in effects:
            self.assertEqual(row["pairs"], 2)
            self.assertLessEqual(row["low_ms"], row["high_ms"])
            self.assertEqual(row["whose"], "both" if row["factor"] == "policy" else "own" if row["tenant"] == "b" else "co-runner")
        self.assertTrue(answer["interactions"]["rows"])

        # pPerf's files.
        files = self.folder / "pperf"
        done = strobe("export", cell, "--to", "pperf", "-o", files)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual({path.name for path in files.iterdir()},
                         {"delays_0.csv", "layer_timings_0.csv", "kernel_timings_0.csv",
                          "e2e_analysis_results_spin-2ms_spin-6ms-3.csv", "e2e_analysis_results_spin-6ms-3_spin-2ms.csv"})
        with open(files / "kernel_timings_0.csv") as file:
            kernels = list(csv.DictReader(file))
        self.assertEqual(list(kernels[0]), ["Input", "Model", "Layer", "Kernel Name", "Start Timestamp", "End Timestamp", "Elapsed Time"])
        for row in kernels:
            self.assertAlmostEqual((int(row["End Timestamp"]) - int(row["Start Timestamp"])) * 1e-6, float(row["Elapsed Time"]), places=9)
        with open(cell / "kernel_timings_0.csv") as file:
            self.assertEqual(list(csv.DictReader(file)), kernels)
        # No GPU is in this trace, so no file says that there was one.
        self.assertEqual(list(cell.glob("gpu_*.csv")), [])

    def test_a_scene_with_true_and_predicted_boxes(self):
        sweep, scenes = need("samples/kitti_000134.bin"), need("sensors/nuscenes")
        if "openvino" not in built_engines():
            self.skipTest("openvino is not built")
        out = self.run_grid(LIDAR % (sweep, scenes), "lidar")
        cell = next(out.glob("000*"))
        # Seeded weights find nothing; as if a trained detector had found a car 10 m ahead, and doubted another one.
        (cell / "lidar_pred_0.json").write_text(json.dumps({"meta": {}, "results": {"kitti_000134": [
            {"sample_token": "kitti_000134", "translation": [10, y, -1], "size": [1.8, 4.2, 1.5], "rotation": [1, 0, 0, 0],
             "velocity": [0, 0], "detection_name": "car", "detection_score": score, "attribute_name": ""}
            for y, score in ((0, 0.9), (4, 0.2))] + ["no box", {"translation": 3}]}}))
        tab = self.load(out)
        self.assertEqual(tab.evaluate("document.querySelectorAll('#scene canvas').length"), 1)
        shown = tab.evaluate("({...document.querySelector('canvas.scene').dataset})")
        self.assertEqual((shown["truth"], shown["predicted"]), ("15", "1"))  # of KITTI's labels, two say DontCare
        colours = tab.evaluate(COLOURS)
        for what in ("truth", "predicted", "coloured"):
            self.assertGreater(colours[what], 100, what)
        tab.evaluate("(() => { const score = document.querySelector('#scene input[aria-label=\"Least score\"]'); score.value = '0.1'; score.dispatchEvent(new Event('input')); })()")
        self.assertEqual(tab.evaluate("document.querySelector('canvas.scene').dataset.predicted"), "2")
        text = tab.evaluate("document.querySelector('#scene').innerText")
        self.assertIn("16,000 of 19,097 points", text)
        self.assertIn("synthetic stream", text)
        self.assertIn("seeded weights", text)
        before = tab.evaluate("document.querySelector('canvas.scene').dataset.drawn")
        tab.evaluate("document.querySelector('canvas.scene').scrollIntoView({block: 'center', behavior: 'instant'})")
        place = tab.evaluate("(() => { const box = document.querySelector('canvas.scene').getBoundingClientRect(); return {x: box.x + box.width / 2, y: box.y + box.height / 2}; })()")
        tab.drag(place["x"], place["y"], 80)
        self.assertGreater(int(tab.evaluate("document.querySelector('canvas.scene').dataset.drawn")), int(before))
        # nuScenes' own annotations, out of the global frame.
        tab.evaluate("(() => { const menu = document.querySelector('#scene select'); menu.value = '1'; menu.dispatchEvent(new Event('change')); })()")
        annotations = json.loads((scenes / "v1.0-mini" / "sample_annotation.json").read_text())
        self.assertEqual(int(tab.evaluate("document.querySelector('canvas.scene').dataset.truth")), len(annotations))
        self.check_silent(tab)
        # What is gone leaves a note and no scene.
        (cell / "lidar_pred_0.json").write_text("[]")
        tab = self.load(out)
        self.assertIn("expected a nuScenes submission", tab.evaluate("document.querySelector('#caveats').innerText"))
        self.check_silent(tab)


if __name__ == "__main__":
    unittest.main()
