"""A headless Chromium for tests, over the pipe of its DevTools protocol; needs no other package.

with Browser() as browser:
    browser.open(path.as_uri())
    browser.click("#tabs a:nth-child(2)")
    browser.value("document.title")
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("chrome")
FLAGS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe"]
FLAGS += ["--no-first-run", "--disable-extensions", "--hide-scrollbars", "about:blank"]


class Browser:
    """One page of a browser of its own."""

    def __init__(self, width: int = 1400, height: int = 900, dark: bool = False) -> None:
        assert CHROMIUM is not None, "there is no Chromium"
        self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        to_read, self._out = os.pipe()
        self._in, to_write = os.pipe()
        self._process = _started(CHROMIUM, self._folder.name, to_read, to_write)
        self._buffer = b""
        self._count = 0
        self._session = ""
        self.errors: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime"):
            self.call(f"{domain}.enable")
        self.resize(width, height, dark)

    def __enter__(self) -> Browser:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._in)
        os.close(self._out)
        self._folder.cleanup()

    def resize(self, width: int, height: int, dark: bool = False) -> None:
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        feature = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[feature])

    def open(self, url: str) -> None:
        """Open a page and wait until it says that it is ready."""
        self.call("Page.navigate", url=url)
        self.wait("document.documentElement?.dataset.ready")

    def value(self, expression: str) -> Any:
        """What JavaScript gives; a promise is awaited."""
        given = {"expression": expression, "returnByValue": True, "awaitPromise": True}
        found = self.call("Runtime.evaluate", **given)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def wait(self, expression: str, seconds: float = 20.0) -> Any:
        """The value of an expression once it is true; an element is an empty object here."""
        end = time.monotonic() + seconds
        while (found := self.value(expression)) in (None, False, 0, ""):
            assert time.monotonic() < end, f"{expression} stays {found}; {self.errors}"
            time.sleep(0.02)
        return found

    def move(self, selector: str) -> tuple[float, float]:
        """Point at the middle of an element, which is scrolled into sight."""
        self.wait(f"document.querySelector({json.dumps(selector)})")
        box = self.value(
            f"(async () => {{ const e = document.querySelector({json.dumps(selector)});"
            "e.scrollIntoView({block: 'nearest', inline: 'nearest'});"
            # What snaps to a place does so in the next frame.
            "await new Promise((f) => requestAnimationFrame(() => requestAnimationFrame(f)));"
            "const r = e.getBoundingClientRect();"
            "return [r.x + Math.min(r.width, 300) / 2, r.y + r.height / 2]; })()"
        )
        x, y = box
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        return x, y

    def click(self, selector: str) -> None:
        x, y = self.move(selector)
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def type(self, text: str) -> None:
        self.call("Input.insertText", text=text)

    def press(self, key: str) -> None:
        for kind in ("keyDown", "keyUp"):
            text = {"text": key} if kind == "keyDown" and len(key) == 1 else {}
            self.call("Input.dispatchKeyEvent", type=kind, key=key, **text)

    def screenshot(self, path: Path) -> None:
        data = self.call("Page.captureScreenshot", format="png")["data"]
        path.write_bytes(base64.b64decode(data))

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        self._count += 1
        message = {"id": self._count, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._count:
                assert "error" not in answer, (method, answer["error"])
                result: dict[str, Any] = answer["result"]
                return result
            if answer.get("method") == "Runtime.exceptionThrown":
                details = answer["params"]["exceptionDetails"]
                self.errors.append(details.get("exception", details).get("description", details))

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            more = os.read(self._in, 1 << 20)
            assert more, "the browser has ended"
            self._buffer += more
        message, _, self._buffer = self._buffer.partition(b"\0")
        found: dict[str, Any] = json.loads(message)
        return found


def _started(program: str, profile: str, to_read: int, to_write: int) -> subprocess.Popen[bytes]:
    """Chromium, which reads its orders from file 3 and answers on file 4."""
    script = f'exec "$@" 3<&{to_read} 4>&{to_write}'
    command = ["/bin/bash", "-c", script, "chromium", program, f"--user-data-dir={profile}", *FLAGS]
    fds = (to_read, to_write)
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(command, pass_fds=fds, **quiet)  # type: ignore[call-overload]
    os.close(to_read)
    os.close(to_write)
    return process  # type: ignore[no-any-return]
