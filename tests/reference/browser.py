"""A real Chromium without a window, driven over its DevTools protocol."""

import base64
import itertools
import json
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
_FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1400,1600")


@dataclass
class Browser:
    """One page of the browser."""

    socket: Any
    connect: Any = None  # opens a web socket to an address
    port: str = ""
    events: list[Mapping[str, Any]] = field(default_factory=list)
    numbers: Iterator[int] = field(default_factory=itertools.count)

    def call(self, method: str, **params: Any) -> Any:
        number = next(self.numbers)
        self.socket.send(json.dumps({"id": number, "method": method, "params": params}))
        while True:
            message = json.loads(self.socket.recv())
            if message.get("id") == number:
                assert "error" not in message, (method, message)
                return message["result"]
            self.events.append(message)

    def run(self, script: str) -> Any:
        """Value of a JavaScript expression on the page."""
        done = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        return None if "exceptionDetails" in done else done["result"].get("value")

    def until(self, script: str, seconds: float = 90, doing: str = "") -> None:
        """Wait for an expression to be true; where the page may not be ready for what makes it so, do that now and then."""
        begun = done = time.monotonic()
        if doing:
            self.run(doing)
        while not self.run(f"!!({script})"):
            now = time.monotonic()
            assert now < begun + seconds, (script, self.run("document.body.innerText")[-2000:])
            if doing and now > done + 5:  # a second press at once would close what the first one opens
                self.run(doing)
                done = now
            time.sleep(0.2)

    def tab(self, url: str) -> "Browser":
        """Another page of the same browser."""
        page = self.call("Target.createTarget", url=url)["targetId"]
        return Browser(self.connect(f"ws://127.0.0.1:{self.port}/devtools/page/{page}"), self.connect, self.port)

    def picture(self, file: Path, *, whole: bool = False) -> Path:
        """Take a picture of the page, below the window's edge too where it is to be whole."""
        taken = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        file.write_bytes(base64.b64decode(taken["data"]))
        return file


@contextmanager
def chromium(folder: Path, connect: Any, flags: Sequence[str] = ()) -> Iterator[Browser]:
    """Start a browser on a blank page; `connect` opens a web socket to an address."""
    assert BROWSER is not None
    own = [*flags, f"--user-data-dir={folder}", "--remote-debugging-port=0", "about:blank"]
    process = subprocess.Popen([BROWSER, *_FLAGS, *own], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        end, estimated = time.monotonic() + 60, folder / "DevToolsActivePort"
        while not estimated.exists() or not estimated.read_text().strip():
            assert time.monotonic() < end, "Chromium did not start"
            time.sleep(0.1)
        port = estimated.read_text().split()[0]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json", timeout=30) as answer:
            page = next(node for node in json.loads(answer.read()) if node["type"] == "page")
        connection = connect(page["webSocketDebuggerUrl"])
        yield Browser(connection, connect, port)
        connection.close()
    finally:
        process.terminate()
        process.wait(timeout=30)
