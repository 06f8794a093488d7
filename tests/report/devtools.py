"""A headless Chromium, driven over the DevTools protocol on a pair of pipes. Python's standard library only."""
import base64
import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time


def find_chromium():
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Browser:
    """One browser process with a profile of its own; close() ends it and every child."""

    def __init__(self, program, timeout=120):
        self.timeout = timeout
        self.profile = tempfile.mkdtemp(prefix="strobe-chromium-")
        # The browser reads commands from descriptor 3 and answers on 4.
        theirs_in, self.out = os.pipe()
        self.incoming, theirs_out = os.pipe()
        first, second = (fcntl.fcntl(fd, fcntl.F_DUPFD, 64) for fd in (theirs_in, theirs_out))

        def place():
            os.dup2(first, 3)
            os.dup2(second, 4)

        self.process = subprocess.Popen(
            [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--disable-extensions", "--disable-background-networking", "--disable-component-update", "--disable-sync",
             "--hide-scrollbars", "--force-device-scale-factor=1", f"--user-data-dir={self.profile}",
             "--remote-debugging-pipe", "about:blank"],
            preexec_fn=place, close_fds=False, start_new_session=True, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for fd in (theirs_in, theirs_out, first, second):
            os.close(fd)
        self.buffer, self.last, self.events = b"", 0, []

    def close(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        os.close(self.out)
        os.close(self.incoming)
        shutil.rmtree(self.profile, ignore_errors=True)

    def _message(self, until):
        while b"\0" not in self.buffer:
            if not select.select([self.incoming], [], [], max(0, until - time.monotonic()))[0]:
                raise TimeoutError("the browser gives no answer")
            got = os.read(self.incoming, 1 << 20)
            if not got:
                raise ConnectionError("the browser has ended")
            self.buffer += got
        text, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, session=None, **parameters):
        self.last += 1
        message = {"id": self.last, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        text = json.dumps(message).encode() + b"\0"
        while text:
            text = text[os.write(self.out, text):]
        until = time.monotonic() + self.timeout
        while True:
            answer = self._message(until)
            if answer.get("id") == message["id"]:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            if "method" in answer:
                self.events.append(answer)

    def page(self, **look):
        return Page(self, **look)


class Page:
    """One tab. Keeps what the page said on its console, threw, and asked the network for."""

    def __init__(self, browser, width=1440, height=900, dark=False, scripts=True):
        self.browser = browser
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self.target = target
        self.session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(domain + ".enable")
        self.resize(width, height)
        self.scheme(dark)
        if not scripts:
            self.call("Emulation.setScriptExecutionDisabled", value=True)

    def call(self, method, **parameters):
        return self.browser.call(method, self.session, **parameters)

    def close(self):
        self.browser.call("Target.closeTarget", targetId=self.target)

    def resize(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def scheme(self, dark):
        self.call("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def evaluate(self, expression):
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise RuntimeError(details.get("exception", {}).get("description") or details["text"])
        return answer["result"].get("value")

    def wait(self, expression, seconds=60):
        """Until the expression is true; the seconds that took."""
        began = time.monotonic()
        while not self.evaluate(expression):
            if time.monotonic() - began > seconds:
                raise TimeoutError(f"not true after {seconds} s: {expression}")
            time.sleep(0.05)
        return time.monotonic() - began

    def frame(self):
        """Until what was changed is drawn."""
        self.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")

    def open(self, path):
        self.call("Page.navigate", url=path.resolve().as_uri())

    def mouse(self, kind, x, y, **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def drag(self, x, y, dx, dy=0):
        self.mouse("mousePressed", x, y, button="left", clickCount=1)
        for step in range(1, 6):
            self.mouse("mouseMoved", x + dx * step / 5, y + dy * step / 5, button="left", buttons=1)
        self.mouse("mouseReleased", x + dx, y + dy, button="left", clickCount=1)
        self.frame()

    def click(self, x, y):
        self.mouse("mouseMoved", x, y)
        for kind in ("mousePressed", "mouseReleased"):
            self.mouse(kind, x, y, button="left", clickCount=1)
        self.frame()

    def wheel(self, x, y, delta):
        self.mouse("mouseWheel", x, y, deltaX=0, deltaY=delta)
        self.frame()

    def screenshot(self, path, whole=False, height=None):
        parameters = {"format": "png"}
        if whole or height:
            width = self.evaluate("innerWidth")
            tall = height or self.evaluate("document.documentElement.scrollHeight")
            parameters.update(captureBeyondViewport=True, clip={"x": 0, "y": 0, "width": width, "height": tall, "scale": 1})
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", **parameters)["data"]))

    def complaints(self):
        """Errors, warnings and exceptions that the page caused."""
        said = []
        for event in self.browser.events:
            if event.get("sessionId") != self.session:
                continue
            method, got = event["method"], event["params"]
            if method == "Runtime.exceptionThrown":
                details = got["exceptionDetails"]
                said.append(details.get("exception", {}).get("description") or details["text"])
            elif method == "Runtime.consoleAPICalled" and got["type"] in ("error", "warning", "assert"):
                said.append(" ".join(str(argument.get("value", argument.get("description"))) for argument in got["args"]))
            elif method == "Log.entryAdded" and got["entry"]["level"] in ("error", "warning"):
                said.append(got["entry"]["text"])
        return said

    def requests(self):
        """Addresses that were asked for, without the page itself and what lies inside it."""
        urls = [event["params"]["request"]["url"] for event in self.browser.events
                if event.get("sessionId") == self.session and event["method"] == "Network.requestWillBeSent"]
        return [url for url in urls[1:] if not url.startswith(("data:", "blob:"))]
