#!/usr/bin/env python3
"""A report in a headless Chromium: time until it stands, and time between frames while it is zoomed and panned.

usage: report_in_browser.py REPORT.html [SCREENSHOT.png]
"""
import base64
import json
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests/report"))
from devtools import Browser, find_chromium  # noqa: E402

READY = "document.documentElement?.dataset.strobeReady === '1'"
# Pans at a width of view for 90 frames and gathers what a frame took to draw and the time from one to the next.
PAN = """new Promise(done => {
  const view = timelineView, width = (view.groups[0].run.timeline.run[1]) / %f, drawn = [], between = [];
  let at = 0.3 * view.groups[0].run.timeline.run[1], frames = 0, before = 0;
  const step = now => {
    if (before) between.push(now - before);
    before = now;
    if (frames++ === 90) return done({drawn, between});
    at += width / 60;
    view.show(at, at + width);
    const began = performance.now();
    view.draw();
    drawn.push(performance.now() - began);
    requestAnimationFrame(step);
  };
  requestAnimationFrame(step);
})"""


def quantile(values, q):
    return sorted(values)[min(len(values) - 1, int(q * len(values)))]


def main():
    page = pathlib.Path(sys.argv[1]).resolve()
    browser = Browser(find_chromium(), timeout=300)
    try:
        tab = browser.page()
        begin = time.perf_counter()
        tab.open(page)
        tab.wait(READY, seconds=240)
        result = {"page_mb": page.stat().st_size / 1e6, "open_s": time.perf_counter() - begin}
        tab.frame()
        tab.evaluate("document.querySelector('.timeline').scrollIntoView({block: 'center', behavior: 'instant'})")
        for zoom in (1, 10, 100, 1000, 10000):
            answer = tab.call("Runtime.evaluate", expression=PAN % zoom, awaitPromise=True, returnByValue=True)
            found = answer["result"]["value"]
            result[f"zoom {zoom}"] = {
                "draw_ms_p50": quantile(found["drawn"], 0.5), "draw_ms_p95": quantile(found["drawn"], 0.95),
                "between_ms_p50": quantile(found["between"], 0.5), "between_ms_p95": quantile(found["between"], 0.95)}
        print(json.dumps(result, indent=1))
        if len(sys.argv) > 2:
            tab.evaluate("timelineView.fit()")
            tab.frame()
            shot = tab.call("Page.captureScreenshot", format="png")
            pathlib.Path(sys.argv[2]).write_bytes(base64.b64decode(shot["data"]))
            tab.evaluate("timelineView.show(timelineView.to * 0.4, timelineView.to * 0.4 + timelineView.longest / 2000)")
            tab.frame()
            shot = tab.call("Page.captureScreenshot", format="png")
            pathlib.Path(sys.argv[2]).with_suffix(".near.png").write_bytes(base64.b64decode(shot["data"]))
    finally:
        browser.close()


if __name__ == "__main__":
    main()
