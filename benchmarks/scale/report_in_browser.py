#!/usr/bin/env python3
"""A report in a headless Chromium: time until it stands, and time between frames while it is zoomed and panned.

usage: report_in_browser.py REPORT.html [SCREENSHOTS]
"""
import base64
import json
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests/report"))
from devtools import Browser, find_chromium  # noqa: E402

READY = "document.documentElement?.dataset.strobeReady === '1'"
# Turns the wheel `zooms` times at the pointer, then pans for 90 frames; what a frame took to draw, and the time from one
# to the next.
MOVE = """new Promise(done => {
  const box = document.querySelector(".timeline"), canvas = box.querySelector("canvas.base");
  const place = canvas.getBoundingClientRect(), drawn = [], between = [];
  const wheel = turn => canvas.dispatchEvent(new WheelEvent("wheel", {clientX: place.x + place.width * 0.4,
    clientY: place.y + 120, bubbles: true, cancelable: true, ...turn}));
  for (let i = 0; i < %d; ++i) wheel({deltaY: -120});
  let frames = 0, before = 0;
  const step = now => {
    if (before) { between.push(now - before); drawn.push(JSON.parse(box.dataset.view).ms); }
    before = now;
    if (frames++ === 90) { const view = JSON.parse(box.dataset.view); done({drawn, between, boxes: view.boxes, ms_of_view: (view.to - view.from) / 1e6}); return; }
    wheel({deltaX: 12});
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
        time.sleep(0.5)  # the wheel belongs to the page for a moment after it has scrolled
        for number, zooms in enumerate((0, 9, 9, 9, 9)):
            found = tab.evaluate(MOVE % zooms)
            result[f"view of {found['ms_of_view']:.0f} ms"] = {
                "boxes": found["boxes"],
                "draw_ms_p50": quantile(found["drawn"], 0.5), "draw_ms_p95": quantile(found["drawn"], 0.95),
                "between_ms_p50": quantile(found["between"], 0.5), "between_ms_p95": quantile(found["between"], 0.95)}
            if len(sys.argv) > 2:
                shot = tab.call("Page.captureScreenshot", format="png")
                pathlib.Path(f"{sys.argv[2]}.{number}.png").write_bytes(base64.b64decode(shot["data"]))
        print(json.dumps(result, indent=1))
    finally:
        browser.close()


if __name__ == "__main__":
    main()
