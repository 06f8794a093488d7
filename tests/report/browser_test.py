"""The HTML report in a headless Chromium: it loads without a complaint, draws everything, and answers mouse and wheel."""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import time
import unittest

from devtools import Browser, find_chromium
from support import STROBE, built_engines, strobe, write_tiny_network

SYNTHETIC = os.environ.get("STROBE_SYNTHETIC_TRACE", "build/release/bin/strobe_synthetic_trace")
READY = "document.documentElement?.dataset.strobeReady === '1'"
# Of each plot: its label, and how many of its curves and bars have a path with an area or a length.
PLOTS = """[...document.querySelectorAll(".plot")].map(box => ({label: box.getAttribute("aria-label"),
  drawn: [...box.querySelectorAll("svg.main-svg .cartesianlayer .trace path")].filter(path => {
    const size = path.getBoundingClientRect();
    return (path.getAttribute("d") || "").length > 4 && (size.width > 1 || size.height > 1);
  }).length}))"""
# Pixels of the timeline that are coloured (no grey of text, grid or card), and how many different colours those have.
PIXELS = """(() => {
  const canvas = document.querySelector(".timeline canvas.base");
  const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", {willReadFrequently: true});
  copy.drawImage(canvas, 0, 0);
  const data = copy.getImageData(0, 0, canvas.width, canvas.height).data, colours = new Set();
  let count = 0;
  for (let i = 0; i < data.length; i += 4) {
    if (data[i + 3] < 100 || Math.max(data[i], data[i + 1], data[i + 2]) - Math.min(data[i], data[i + 1], data[i + 2]) < 40) continue;
    ++count;
    colours.add(data[i] >> 5 << 10 | data[i + 1] >> 5 << 5 | data[i + 2] >> 5);
  }
  return {count, colours: colours.size};
})()"""
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


class Report(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        program = find_chromium()
        if not program:
            raise unittest.SkipTest("no chromium on this machine")
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="strobe-report-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.browser = Browser(program)
        cls.addClassCleanup(cls.browser.close)

    # --- Traces ------------------------------------------------------------------------------------------------------

    def video(self, frames):
        if not shutil.which("ffmpeg"):
            self.skipTest("the program ffmpeg is absent")
        path = self.folder / f"{frames}.mp4"
        if not path.exists():
            subprocess.run(["ffmpeg", "-v", "error", "-f", "lavfi", "-i", "testsrc=size=320x240:rate=25", "-frames:v",
                            str(frames), "-pix_fmt", "yuv420p", str(path)], check=True)
        return path

    def engines(self, count):
        if len(built_engines()) < count:
            self.skipTest(f"needs {count} engine{'s' if count > 1 else ''}; built: {', '.join(built_engines()) or 'none'}")
        return built_engines()[:count]

    def page_of(self, *traces):
        page = self.folder / (traces[0].parent.name + "-" + traces[0].stem + ".html")
        done = strobe("report", *traces, "-o", page, "--quiet")
        self.assertEqual(done.returncode, 0, done.stderr)
        return page

    def synthetic(self, kind):
        path = self.folder / f"{kind}.sqlite"
        subprocess.run([SYNTHETIC, kind, str(path)], check=True, timeout=300)
        return path

    # --- What holds for every report -----------------------------------------------------------------------------------

    def load(self, html, **look):
        tab = self.browser.page(**look)
        self.addCleanup(tab.close)
        tab.open(html)
        tab.wait(READY)
        tab.frame()
        return tab

    def sections(self, tab):
        return tab.evaluate("[...document.querySelectorAll('section.part')].map(part => part.id)")

    def check_silent(self, tab):
        self.assertEqual(tab.complaints(), [])
        self.assertEqual(json.loads(tab.evaluate("document.documentElement.dataset.strobeErrors")), [])
        self.assertEqual(tab.requests(), [])

    def check_drawn(self, tab, plots):
        found = tab.evaluate(PLOTS)
        self.assertGreaterEqual(len(found), plots)
        for plot in found:
            self.assertGreater(plot["drawn"], 0, plot["label"])
        pixels = tab.evaluate(PIXELS)
        self.assertGreater(pixels["count"], 2000)
        self.assertGreater(pixels["colours"], 3)

    def check_everywhere(self, html, plots):
        """Light and dark, wide and narrow; the page in light and wide."""
        tab = self.load(html)
        self.check_drawn(tab, plots)
        self.assertLessEqual(tab.evaluate(OVERFLOW), 0)
        light = tab.evaluate("getComputedStyle(document.body).backgroundColor")
        tab.scheme(dark=True)
        tab.frame()
        self.check_drawn(tab, plots)
        dark = tab.evaluate("getComputedStyle(document.body).backgroundColor")
        self.assertGreater(sum(channels(light)), 600)
        self.assertLess(sum(channels(dark)), 150)
        tab.scheme(dark=False)
        tab.resize(420, 900)
        time.sleep(0.4)  # plots follow a new width after a moment
        tab.frame()
        self.assertLessEqual(tab.evaluate(OVERFLOW), 0)
        self.check_drawn(tab, plots)
        self.check_silent(tab)
        tab.resize(1440, 900)
        time.sleep(0.4)
        tab.frame()
        return tab

    def check_interactive(self, tab):
        tab.evaluate("document.querySelector('.timeline').scrollIntoView({block: 'center', behavior: 'instant'})")
        time.sleep(0.5)  # the wheel belongs to the page for a moment after it has scrolled
        place = tab.evaluate("(() => { const box = document.querySelector('.timeline').getBoundingClientRect();"
                             "return {x: box.x, y: box.y, width: box.width, height: box.height}; })()")
        x, y = place["x"] + place["width"] / 2, place["y"] + place["height"] / 2
        view = lambda: json.loads(tab.evaluate("document.querySelector('.timeline').dataset.view"))
        whole = view()
        for _ in range(4):
            tab.wheel(x, y, -120)
        zoomed = view()
        self.assertLess(zoomed["to"] - zoomed["from"], 0.6 * (whole["to"] - whole["from"]))
        tab.drag(x, y, -200)
        panned = view()
        self.assertGreater(panned["from"], zoomed["from"])
        self.assertAlmostEqual(panned["to"] - panned["from"], zoomed["to"] - zoomed["from"], delta=1)
        # Along the lanes there is a box below the pointer somewhere; pointing at it and pressing it tell what it is.
        tip = "(tip => tip && !tip.hidden ? tip.innerText : null)(document.querySelector('.tip'))"
        places = ((place["x"] + column, place["y"] + lane) for lane in range(100, int(place["height"]), 9)
                  for column in range(160, int(place["width"]), 61))
        for px, py in places:
            tab.mouse("mouseMoved", px, py)
            told = tab.evaluate(tip)
            if told:
                break
        self.assertIsNotNone(told, "no box answers the pointer")
        self.assertRegex(told, r"lasts\s+[\d.,]+ (s|ms|µs|ns)")
        tab.mouse("mouseMoved", place["x"] + 5, place["y"] + 5)
        self.assertIsNone(tab.evaluate(tip))
        tab.click(px, py)
        self.assertEqual(tab.evaluate(tip), told)
        tab.evaluate("[...document.querySelectorAll('#timeline button')].find(b => b.textContent === 'Fit').click()")
        tab.frame()
        fit = view()
        self.assertAlmostEqual(fit["from"], whole["from"], delta=1)
        self.assertAlmostEqual(fit["to"], whole["to"], delta=1)
        return whole

    # --- The cases -----------------------------------------------------------------------------------------------------

    def has_findings(self, folder):
        done = strobe("advise", folder / "trace.sqlite", "--format", "json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return bool(json.loads(done.stdout)["rows"])

    def test_two_engines(self):
        engines = self.engines(2)
        out = self.folder / "two"
        done = strobe("run", "--input", self.video(30), "--model", "yolov4-tiny", "--size", "160x160", "--engine",
                      ",".join(engines), "--limit-seconds", "0.1", "--profile-runs", "3", "-q", "-o", out)
        self.assertEqual(done.returncode, 0, done.stderr)
        html = self.page_of(out)  # the folder stands for the traces of both engines
        tab = self.check_everywhere(html, plots=4 + 3 * 2)
        # Findings are there where rules found something, which depends on what else the machine did.
        findings = ["analyses"] if any(self.has_findings(out / engine.replace(":", "-")) for engine in engines) else []
        self.assertEqual(self.sections(tab), ["comparison", "timeline", "latency", "stages", "limits", "layers", "fusion",
                                              "queues", *findings, "machine"])
        self.check_interactive(tab)
        # What the page says first: who is faster, what limits it, where time goes.
        lead = tab.evaluate("document.getElementById('lead').innerText")
        verdict = tab.evaluate("document.getElementById('verdict').innerText")
        self.assertRegex(verdict, r"^(%s) finishes [\d.]+ frames a second end to end: [\d.]+× (%s)" % ((("|".join(engines)),) * 2))
        for words in ("What limits", "Where a frame's time goes", "waiting in queues", "What the cores do", "seeded"):
            self.assertIn(words, lead)
        names = tab.evaluate("[...document.querySelectorAll('#comparison td.name')].map(cell => cell.innerText.trim())")
        self.assertEqual(names, engines)
        self.check_silent(tab)
        with self.subTest("on paper"):
            self.check_print(html)
        with self.subTest("without scripts"):
            plain = self.browser.page(scripts=False)
            self.addCleanup(plain.close)
            plain.open(html)
            plain.wait("document.readyState === 'complete'")
            text = plain.evaluate("document.body.innerText")
            for words in ("switched off", "end_to_end_fps", *engines):
                self.assertIn(words, text)

    def check_print(self, html):
        """A dark page prints as a light one, with every section."""
        tab = self.load(html, dark=True)
        tab.call("Emulation.setEmulatedMedia", media="print", features=[{"name": "prefers-color-scheme", "value": "dark"}])
        time.sleep(0.3)
        tab.frame()
        self.assertGreater(sum(channels(tab.evaluate("getComputedStyle(document.body).backgroundColor"))), 600)
        self.assertLess(sum(channels(tab.evaluate("getComputedStyle(document.body).color"))), 250)
        ink = tab.evaluate("getComputedStyle(document.querySelector('.plot svg.main-svg .xtick text')).fill")
        self.assertLess(sum(channels(ink)), 400)
        self.check_drawn(tab, 4)
        self.assertEqual(tab.evaluate("getComputedStyle(document.querySelector('.controls')).display"), "none")
        self.assertGreater(len(tab.call("Page.printToPDF", printBackground=True)["data"]), 50_000)
        self.check_silent(tab)

    def test_killed_run(self):
        engine = self.engines(1)[0]
        cfg, weights = write_tiny_network(self.folder)
        out = self.folder / "killed"
        process = subprocess.Popen([STROBE, "run", "--input", str(self.video(4000)), "--model", str(cfg), "--weights",
                                    str(weights), "--engine", engine, "-o", str(out)],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while not (out / "spool").exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(1.0)
        process.kill()
        process.wait()
        trace = self.folder / "recovered.sqlite"
        self.assertEqual(strobe("recover", out, "-o", trace).returncode, 0)
        tab = self.check_everywhere(self.page_of(trace), plots=4)
        sections = self.sections(tab)
        for present in ("timeline", "latency", "stages"):
            self.assertIn(present, sections)
        for absent in ("limits", "layers", "fusion"):
            self.assertNotIn(absent, sections)
        self.assertNotIn("NaN", tab.evaluate("document.body.innerText"))
        self.check_interactive(tab)
        # The folder of the killed run does as well.
        self.check_silent(self.load(self.page_of(out)))

    def test_without_what_comes_afterwards(self):
        engine = self.engines(1)[0]
        cfg, weights = write_tiny_network(self.folder)
        out = self.folder / "bare"
        done = strobe("run", "--input", self.video(30), "--model", cfg, "--weights", weights, "--engine", engine,
                      "--limit-seconds", "0", "--profile-runs", "0", "-q", "-o", out)
        self.assertEqual(done.returncode, 0, done.stderr)
        tab = self.check_everywhere(self.page_of(out / "trace.sqlite"), plots=4)
        sections = self.sections(tab)
        for absent in ("limits", "layers", "fusion"):
            self.assertNotIn(absent, sections)
        self.assertIn("no limit is known", tab.evaluate("document.getElementById('lead').innerText"))
        self.assertNotIn("NaN", tab.evaluate("document.body.innerText"))
        self.check_interactive(tab)

    def test_large_trace(self):
        html = self.page_of(self.synthetic("large"))
        tab = self.browser.page()
        self.addCleanup(tab.close)
        tab.open(html)
        tab.wait(READY, seconds=10)  # a guard against hanging, not a measurement
        self.assertGreaterEqual(tab.evaluate("JSON.parse(document.getElementById('strobe-data').textContent).runs[0].timeline.ranges"), 200_000)
        self.check_drawn(tab, plots=7)
        whole = self.check_interactive(tab)
        self.assertLess(whole["boxes"], 60_000)  # drawing follows the pixels, not the ranges
        self.check_silent(tab)

    def test_names_stay_text(self):
        tab = self.check_everywhere(self.page_of(self.synthetic("hostile")), plots=7)
        text = tab.evaluate("document.body.innerText")
        for name in ("</script><script>document.title=\"broken\"</script>\"'`${1} <b>", "<img src=x onerror=", "pöst 火 🔥",
                     "&lt;draw&gt; {{title}} <!--", "\"quoted\" <i>video<b> & 'more' 火.mp4 through <u>net"):
            self.assertIn(name, text)
        self.assertIn("\"quoted\" <i>video<b> & 'more' 火.mp4", tab.evaluate("document.title"))
        self.assertEqual(tab.evaluate("document.querySelectorAll('main img, main i > u, main u, dd script, td script').length"), 0)
        self.assertIn("<script>key</script>", tab.evaluate("document.getElementById('machine').textContent"))
        self.check_interactive(tab)
        self.check_silent(tab)


def channels(colour):
    """Red, green and blue of "rgb(1, 2, 3)"."""
    return [float(part) for part in colour[colour.index("(") + 1:].rstrip(")").split(",")[:3]]


if __name__ == "__main__":
    unittest.main()
