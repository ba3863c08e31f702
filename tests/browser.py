"""Debian's chromium without a screen, driven by its own protocol over a websocket: no package but `websockets`."""
import base64
import io
import itertools
import json
import shutil
import subprocess
import tempfile
import time
import urllib.request

import numpy as np

FLAGS = ("--headless --no-sandbox --use-gl=angle --use-angle=swiftshader --enable-unsafe-swiftshader --disable-quic "
         "--no-first-run --disable-background-networking --disable-component-update --disable-sync "
         "--remote-debugging-port=0 --hide-scrollbars").split()


def chromium():
    """Where it is; None if there is none (yet: `.ci/run` has it installed while other tests run)."""
    return shutil.which("chromium") or shutil.which("chromium-browser")


class Browser:
    """One page; a context manager."""

    def __init__(self, width=1000, height=700):
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.process = subprocess.Popen(
            [chromium(), *FLAGS, f"--window-size={width},{height}", f"--user-data-dir={self.folder.name}",
             "about:blank"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.numbers, self.requests, self.errors = itertools.count(1), [], []
        try:
            self.socket = self._connect(width, height)
        except BaseException:
            self.__exit__()
            raise

    def _connect(self, width, height):
        from websockets.sync.client import connect

        port = self.until(lambda: self._port(), 60)
        targets = self.until(lambda: json.load(urllib.request.urlopen(f"http://127.0.0.1:{port}/json", timeout=30)), 60)
        page = next(each for each in targets if each["type"] == "page")
        self.socket = connect(page["webSocketDebuggerUrl"], max_size=None, compression=None)
        for domain in ("Page", "Runtime", "Network"):
            self.command(f"{domain}.enable")
        self.command("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                     mobile=False)
        return self.socket

    def _port(self):
        with open(f"{self.folder.name}/DevToolsActivePort") as file:
            return int(file.readline())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.folder.cleanup()

    @staticmethod
    def until(ask, seconds=30.0):
        """What `ask` returns as soon as that is true; AssertionError when it takes too long."""
        end, error = time.monotonic() + seconds, None
        while time.monotonic() < end:
            try:
                if found := ask():
                    return found
            except OSError as problem:
                error = problem
            time.sleep(0.1)
        raise AssertionError(f"not within {seconds:g} s: {error}")

    def command(self, method, **given):
        """The result of a command of the protocol; what the page asked for and said meanwhile is kept."""
        number = next(self.numbers)
        self.socket.send(json.dumps({"id": number, "method": method, "params": given}))
        while True:
            said = json.loads(self.socket.recv(timeout=60))
            if said.get("method") == "Network.requestWillBeSent":
                self.requests.append(said["params"]["request"]["url"])
            if said.get("method") == "Runtime.exceptionThrown":
                self.errors.append(said["params"]["exceptionDetails"])
            if said.get("id") == number:
                assert "error" not in said, said["error"]
                return said["result"]

    def open(self, url):
        self.command("Page.navigate", url=url)

    def evaluate(self, expression):
        """The value of an expression of JavaScript."""
        return self.command("Runtime.evaluate", expression=expression, returnByValue=True,
                            awaitPromise=True)["result"].get("value")

    def text(self):
        return self.evaluate("document.body.innerText") or ""

    def picture(self):
        """What is on the screen, (height, width, 3) from 0 to 255."""
        from PIL import Image

        data = self.command("Page.captureScreenshot", format="png")["data"]
        return np.asarray(Image.open(io.BytesIO(base64.b64decode(data))).convert("RGB")).astype(int)

    def settled(self, seconds=20.0):
        """The picture, as soon as two in a row are alike."""
        last = [self.picture()]

        def same():
            time.sleep(0.3)
            last.append(self.picture())
            return (last[-1] == last[-2]).all()
        self.until(same, seconds)
        return last[-1]

    def click(self, x, y, kinds=("mousePressed", "mouseReleased")):
        for kind in kinds:
            self.command("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def place(self, expression):
        """The middle of an element on the screen."""
        return self.evaluate(f"(() => {{ const b = ({expression}).getBoundingClientRect(); "
                             "return [b.x + b.width / 2, b.y + b.height / 2] })()")

    def type(self, text):
        self.command("Input.insertText", text=text)
        for kind in ("keyDown", "keyUp"):
            self.command("Input.dispatchKeyEvent", type=kind, key="Enter", code="Enter", windowsVirtualKeyCode=13)
