"""A headless Chromium, driven through a pipe in the DevTools protocol: no driver, no network."""

import base64
import contextlib
import itertools
import json
import os
import select
import shutil
import signal
import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-pipe",
    "--host-resolver-rules=MAP * ~NOTFOUND",
]


def installed():
    names = ("chromium", "chromium-browser", "google-chrome")
    return next((path for name in names if (path := shutil.which(name))), None)


def axe():
    """Return the script of axe-core: AXE_CORE, or what npm installed in the checkout."""
    places = os.environ.get("AXE_CORE"), ROOT / "node_modules" / "axe-core" / "axe.min.js"
    return next((Path(place) for place in places if place and Path(place).is_file()), None)


def violations(page):
    """Return what axe-core finds wrong with the page, and where."""
    page.ask(axe().read_text(encoding="utf-8") + ";0")
    answer = page.call(
        "Runtime.evaluate",
        expression="axe.run().then(found => JSON.stringify(found.violations.map("
        "one => [one.id, one.help, one.nodes.map(node => node.html.slice(0, 200))])))",
        awaitPromise=True,
        returnByValue=True,
    )
    return json.loads(answer["result"]["value"])


class Page:
    """One page; collects what the console says and what is requested."""

    def __init__(self, out, into):
        self._out, self._into = out, into
        self._numbers = itertools.count(1)
        self._rest = b""
        self.events = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    _session: str | None = None

    def call(self, method, **params):
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == number:
                assert "error" not in answer, answer
                return answer["result"]
            self.events.append(answer)

    def _receive(self):
        deadline = time.monotonic() + 60.0
        while b"\0" not in self._rest:
            ready = select.select([self._into], [], [], max(deadline - time.monotonic(), 0.0))[0]
            assert ready, "the browser did not answer"
            piece = os.read(self._into, 1 << 20)
            assert piece, "the browser is gone"
            self._rest += piece
        first, self._rest = self._rest.split(b"\0", 1)
        return json.loads(first)

    def open(self, url, *, script=True, width=900):
        self.events.clear()
        self.call("Emulation.setScriptExecutionDisabled", value=not script)
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=1200, deviceScaleFactor=1, mobile=False,
        )  # fmt: skip
        self.call("Page.navigate", url=url)
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self._receive())

    def scheme(self, name):
        """Show pages as to someone who prefers "light" or "dark"."""
        feature = {"name": "prefers-color-scheme", "value": name}
        self.call("Emulation.setEmulatedMedia", features=[feature])

    def ask(self, expression):
        """Evaluate JavaScript; the debugger may do so where the page may not."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def wait(self, expression, seconds=30.0):
        """Return what an expression is as soon as it is true."""
        deadline = time.monotonic() + seconds
        while not (found := self.ask(expression)):
            assert time.monotonic() < deadline, f"still not: {expression}"
            time.sleep(0.02)
        return found

    def write(self, selector, text):
        """Replace what a field holds, as somebody who types."""
        self.ask(f"document.querySelector('{selector}').focus()")
        self.ask(f"document.querySelector('{selector}').select()")
        self.call("Input.insertText", text=text)

    def click(self, selector):
        """Press the left button of the mouse above the middle of an element."""
        self.ask(f"document.querySelector('{selector}').scrollIntoView({{block: 'center'}})")
        x, y = self.ask(
            f"(b => [b.x + b.width / 2, b.y + b.height / 2])"
            f"(document.querySelector('{selector}').getBoundingClientRect())"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def press(self, key, code):
        for kind in ("rawKeyDown", "keyUp"):
            self.call(
                "Input.dispatchKeyEvent",
                type=kind, key=key, code=key, windowsVirtualKeyCode=code,
            )  # fmt: skip

    def screenshot(self):
        answer = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        return base64.b64decode(answer["data"])

    def complaints(self):
        """Return errors and warnings of the console, and exceptions."""
        self.ask("0")
        bad = ("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled")
        return [event for event in self.events if event.get("method") in bad]

    def requests(self):
        """Return the addresses that were asked for."""
        self.ask("0")
        return [
            event["params"]["request"]["url"]
            for event in self.events
            if event.get("method") == "Network.requestWillBeSent"
        ]


@contextlib.contextmanager
def browser(profile):
    """Start a browser with an empty profile and yield its page."""
    path = installed()
    assert path is not None
    theirs_in, ours_out = os.pipe()
    ours_in, theirs_out = os.pipe()

    def wire():
        # The protocol's pipe is descriptors 3 and 4; first out of the way, they may be in use.
        spare = os.dup(theirs_in), os.dup(theirs_out)
        os.dup2(spare[0], 3)
        os.dup2(spare[1], 4)

    process = subprocess.Popen(
        [path, *FLAGS, f"--user-data-dir={profile}", "about:blank"],
        preexec_fn=wire,
        close_fds=False,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    os.close(theirs_in)
    os.close(theirs_out)
    try:
        yield Page(ours_out, ours_in)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        os.close(ours_out)
        os.close(ours_in)
