# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""A headless Chromium, spoken to by its DevTools protocol over two pipes. Nothing but the standard library."""

import base64
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path

PROGRAM = shutil.which("chromium")


class BrowserError(RuntimeError):
    """The browser did not do what was asked."""


class Browser:
    """One tab. Keeps what the page wrote to its console and every request that it made."""

    def __init__(self, profile: Path, width: int = 1360, height: int = 1000):
        if PROGRAM is None:
            raise BrowserError("chromium is not installed; scripts/install-deps --observe installs it")
        ours_read, theirs_write = os.pipe()
        theirs_read, ours_write = os.pipe()

        def place_pipes() -> None:
            # Where --remote-debugging-pipe looks for them. Neither may lie where the other goes.
            read, write = os.dup(theirs_read), os.dup(theirs_write)
            os.dup2(read, 3)
            os.dup2(write, 4)

        self._log = (profile.parent / f"{profile.name}.log").open("wb")
        self._process = subprocess.Popen(
            [PROGRAM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
             "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars",
             "--disable-extensions", "--force-device-scale-factor=1", "--remote-debugging-pipe",
             f"--user-data-dir={profile}", f"--window-size={width},{height}", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log, close_fds=False, preexec_fn=place_pipes)
        os.close(theirs_read)
        os.close(theirs_write)
        self._read, self._write = ours_read, ours_write
        self._buffer = b""
        self._number = 0
        self._session = None
        self.console: list[str] = []  # errors and warnings
        self.requests: list[str] = []
        targets = self.call("Target.getTargets", timeout=60)["targetInfos"]
        page = next(target for target in targets if target["type"] == "page")
        attached = self.call("Target.attachToTarget", targetId=page["targetId"], flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        # Processor time, not the clock's: other programs share the machine.
        self.call("Performance.enable", timeDomain="threadTicks")
        self.resize(width, height)

    def __enter__(self):
        return self

    def __exit__(self, *unused) -> None:
        self.close()

    def close(self) -> None:
        """Ends the browser and all of its processes."""
        try:
            self._session = None
            self.call("Browser.close", timeout=10)
        except (BrowserError, OSError):
            pass
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._read)
        os.close(self._write)
        self._log.close()

    # The protocol.

    def call(self, method: str, timeout: float = 30, **parameters) -> dict:
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + timeout
        while True:
            answer = self._receive(deadline, method)
            if answer.get("id") != self._number:
                self._note(answer)
            elif "error" in answer:
                raise BrowserError(f"{method}: {answer['error']}")
            else:
                return answer["result"]

    def _receive(self, deadline: float, waiting_for: str) -> dict:
        while b"\0" not in self._buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._read], [], [], left)[0]:
                raise BrowserError(f"{waiting_for}: no answer in time")
            data = os.read(self._read, 1 << 20)
            if not data:
                raise BrowserError(f"{waiting_for}: the browser ended")
            self._buffer += data
        text, self._buffer = self._buffer.split(b"\0", 1)
        return json.loads(text)

    def _note(self, event: dict) -> None:
        method, data = event.get("method"), event.get("params", {})
        if method == "Network.requestWillBeSent":
            self.requests.append(data["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            details = data["exceptionDetails"]
            self.console.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Runtime.consoleAPICalled" and data["type"] in ("error", "warning", "assert"):
            self.console.append(" ".join(str(each.get("value", each.get("description"))) for each in data["args"]))
        elif method == "Log.entryAdded" and data["entry"]["level"] in ("error", "warning"):
            self.console.append(f"{data['entry']['text']} ({data['entry'].get('url', '')})")

    # What a person does.

    def open(self, url: str) -> None:
        answer = self.call("Page.navigate", url=url)
        if answer.get("errorText"):
            raise BrowserError(f"{url}: {answer['errorText']}")
        self.until("document.readyState === 'complete'", 60)

    def resize(self, width: int, height: int) -> None:
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def prefer(self, **features: str) -> None:
        """prefer(prefers_color_scheme="dark")"""
        media = [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]
        self.call("Emulation.setEmulatedMedia", features=media)

    def run(self, expression: str):
        """The value of a JavaScript expression in the page."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise BrowserError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def until(self, expression: str, seconds: float = 20):
        """Its value, as soon as that is true."""
        deadline = time.monotonic() + seconds
        while not (value := self.run(expression)):
            if time.monotonic() > deadline:
                raise BrowserError(f"after {seconds} s still not: {expression}; console: {self.console}")
            time.sleep(0.05)
        return value

    def busy_seconds(self) -> float:
        """Processor time of the page's own thread so far."""
        metrics = self.call("Performance.getMetrics")["metrics"]
        return next(metric["value"] for metric in metrics if metric["name"] == "TaskDuration")

    _KEYS = {"Tab": ("Tab", 9, ""), "Enter": ("Enter", 13, "\r"), "Escape": ("Escape", 27, ""), " ": ("Space", 32, " "),
             "ArrowLeft": ("ArrowLeft", 37, ""), "ArrowUp": ("ArrowUp", 38, ""), "ArrowRight": ("ArrowRight", 39, ""),
             "ArrowDown": ("ArrowDown", 40, ""), "End": ("End", 35, ""), "Home": ("Home", 36, "")}

    def press(self, key: str, shift: bool = False) -> None:
        code, number, text = self._KEYS[key]
        common = {"key": key, "code": code, "windowsVirtualKeyCode": number, "modifiers": 8 if shift else 0}
        self.call("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", text=text, **common)
        self.call("Input.dispatchKeyEvent", type="keyUp", **common)

    def type(self, text: str) -> None:
        self.call("Input.insertText", text=text)

    def tab_to(self, selector: str, most: int = 200, back: bool = False) -> None:
        """By the Tab key alone, as who has no pointer does."""
        for _ in range(most):
            self.press("Tab", shift=back)
            if self.run(f"document.activeElement.matches({json.dumps(selector)})"):
                return
        raise BrowserError(f"{selector} cannot be reached by Tab")

    def picture(self, path: Path) -> None:
        answer = self.call("Page.captureScreenshot", format="png", timeout=60)
        path.write_bytes(base64.b64decode(answer["data"]))
