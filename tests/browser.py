"""Chromium without a window, as tests use it: told what to do over its DevTools protocol."""

import base64
import json
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from websockets.sync.client import ClientConnection, connect

CHROMIUM = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)

_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--remote-debugging-port=0",
)
_OWN_ERRANDS = ", ".join(
    f"MAP {host} ~NOTFOUND" for host in ("*.google.com", "*.googleapis.com", "*.gstatic.com")
)
"""Where the browser itself goes, whatever it shows: there is nobody."""
_PATIENCE = 60.0
"""Seconds that the browser may take for one thing, on a busy machine."""


class Tab:
    """One page of a browser, and all that it said of itself."""

    def __init__(self, connection: ClientConnection, session: str, hosts: socket.socket) -> None:
        self._connection, self._session, self._number = connection, session, 0
        self._hosts = hosts
        self.events: list[dict[str, Any]] = []

    def do(self, method: str, **params: Any) -> dict[str, Any]:
        """Call a method of the protocol, and return its result."""
        self._number += 1
        call = {"id": self._number, "sessionId": self._session, "method": method, "params": params}
        self._connection.send(json.dumps(call))
        while True:
            heard = json.loads(self._connection.recv(_PATIENCE))
            if heard.get("id") == self._number and heard.get("sessionId") == self._session:
                assert "error" not in heard, heard
                result: dict[str, Any] = heard["result"]
                return result
            self.events.append(heard)

    def open(self, page: Path | str) -> None:
        """Show a file, or an address, and wait until it is read and drawn."""
        for domain in ("Page", "Network", "Runtime", "Log", "Performance"):
            self.do(f"{domain}.enable")
        self.do("Page.navigate", url=page if isinstance(page, str) else page.as_uri())
        while not any(each.get("method") == "Page.domContentEventFired" for each in self.events):
            self.events.append(json.loads(self._connection.recv(_PATIENCE)))
        drawn = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
        self.do("Runtime.evaluate", expression=drawn, awaitPromise=True)

    def value(self, expression: str) -> Any:
        """Return what a JavaScript expression gives."""
        result = self.do("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def metric(self, name: str) -> float:
        """Return a measure of the browser, in seconds or pieces."""
        metrics = self.do("Performance.getMetrics")["metrics"]
        return float(next(each["value"] for each in metrics if each["name"] == name))

    def came_to_a_host(self, within: float) -> bool:
        """Wait so many seconds for anything of the page's to reach for a host, whichever."""
        self._hosts.settimeout(within)
        try:
            self._hosts.accept()[0].close()
        except TimeoutError:
            return False
        return True

    @property
    def requested(self) -> list[str]:
        """The addresses that the page asked for, itself among them."""
        sent = (e for e in self.events if e.get("method") == "Network.requestWillBeSent")
        return [each["params"]["request"]["url"] for each in sent]

    @property
    def complaints(self) -> list[str]:
        """What stands in the console, and what was thrown."""
        wanted = ("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled")
        return [json.dumps(each["params"]) for each in self.events if each.get("method") in wanted]

    def screenshot(self, file: Path, *, whole: bool = False) -> None:
        """Keep what is seen as a PNG file."""
        shot = self.do("Page.captureScreenshot", captureBeyondViewport=whole)
        file.write_bytes(base64.b64decode(shot["data"]))


@contextmanager
def opened(
    width: int = 1000, height: int = 1400, *, dark: bool = False, rules: str = ""
) -> Iterator[Tab]:
    """Start a browser with one empty tab; every host is a port of ours, which notes who comes.

    ``rules`` say in Chromium's words where some hosts are instead.
    """
    assert CHROMIUM, "there is no chromium"
    folder = Path(tempfile.mkdtemp(prefix="daruma-browser-"))
    with socket.create_server(("127.0.0.1", 0)) as knocked:
        port = knocked.getsockname()[1]
        before = ", ".join(filter(None, (rules, _OWN_ERRANDS)))
        rule = f"--host-resolver-rules={before}, MAP * 127.0.0.1:{port}"
        args = [
            CHROMIUM,
            *_FLAGS,
            rule,
            f"--user-data-dir={folder}",
            f"--window-size={width},{height}",
        ]
        browser = subprocess.Popen([*args, "about:blank"], stderr=subprocess.PIPE, text=True)
        try:
            with connect(_address(browser), max_size=None) as connection:
                tab = _attached(connection, knocked)
                scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
                tab.do("Emulation.setEmulatedMedia", features=[scheme])
                yield tab
        finally:
            browser.kill()
            browser.communicate()
            shutil.rmtree(folder, ignore_errors=True)


def _address(browser: subprocess.Popen[str]) -> str:
    assert browser.stderr
    for line in browser.stderr:
        if "DevTools listening on " in line:
            return line.partition("listening on ")[2].strip()
    raise AssertionError("the browser did not start")


def _attached(connection: ClientConnection, hosts: socket.socket) -> Tab:
    def call(number: int, method: str, **params: Any) -> dict[str, Any]:
        connection.send(json.dumps({"id": number, "method": method, "params": params}))
        while True:
            heard: dict[str, Any] = json.loads(connection.recv(_PATIENCE))
            if heard.get("id") == number:
                result: dict[str, Any] = heard["result"]
                return result

    target = call(1, "Target.createTarget", url="about:blank")["targetId"]
    session = call(2, "Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
    return Tab(connection, session, hosts)
