"""Apache Superset itself, a server on a metadata database of its own, and a browser that looks at it.

What runs here runs where Superset is installed beside the package; .ci/extra-superset makes such an environment.
"""

import io
import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
import uuid
import zipfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.reference.browser import BROWSER, Browser, chromium
from tests.reference.ports import free_port

PASSWORD = "only-for-this-test"
CONFIGURATION = """
SECRET_KEY = "a key for one test, which is long enough"
SQLALCHEMY_DATABASE_URI = "sqlite:///{folder}/metadata.db"
TALISMAN_ENABLED = False
WTF_CSRF_ENABLED = False
FEATURE_FLAGS = {{"ENABLE_TEMPLATE_PROCESSING": True}}
"""
SET_UP = """
from superset.cli.main import superset
for command in {commands}:
    superset.main(command, standalone_mode=False)
"""


@dataclass(frozen=True)
class Superset:
    """A running server: what it answers over HTTP to its administrator."""

    url: str
    token: str = ""
    password: str = PASSWORD

    def call(self, path: str, body: Any = None, method: str | None = None, kind: str = "application/json") -> Any:
        """Answer of the API; where it refuses, its message as {"refused": ...}."""
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"Content-Type": kind, "Authorization": f"Bearer {self.token}"}
        request = urllib.request.Request(f"{self.url}/api/v1/{path}", data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.loads(answer.read())
        except urllib.error.HTTPError as error:
            with error:
                return {"refused": error.read().decode()}

    def chart_data(self, dataset: int, **query: Any) -> Any:
        """What a chart's query gives: rows and the SQL that Superset made of it; or {"refused": ...}."""
        statement = {"row_limit": 1000, "filters": [], "extras": {}, **query}
        body = {"datasource": {"id": dataset, "type": "table"}, "queries": [statement], "result_format": "json"}
        answer = self.call("chart/data", {**body, "result_type": "full", "force": True})
        return answer["result"][0] if "result" in answer else answer

    def import_dashboards(self, folder: Path, uri: str, replaced: str) -> None:
        """Import exported dashboards as a user does, with another URI in them."""
        bundle, border = io.BytesIO(), uuid.uuid4().hex
        with zipfile.ZipFile(bundle, "w") as packed:
            for file in sorted(folder.rglob("*.yaml")):
                packed.writestr(f"superset/{file.relative_to(folder)}", file.read_text().replace(replaced, uri))
        parts = [
            f'--{border}\r\nContent-Disposition: form-data; name="formData"; filename="people.zip"\r\n\r\n'.encode(),
            bundle.getvalue(),
            f"\r\n--{border}--\r\n".encode(),
        ]
        done = self.call("dashboard/import/", b"".join(parts), kind=f"multipart/form-data; boundary={border}")
        assert done == {"message": "OK"}, done


class Dashboards(Browser):
    """A browser in which somebody is logged in."""

    def log_in(self, superset: Superset) -> None:
        self.call("Network.enable")
        self.call("Page.navigate", url=f"{superset.url}/login/")
        self.until(f"document.readyState == 'complete' && location.href.startsWith('{superset.url}')")
        form = f"new URLSearchParams({{username: 'admin', password: '{superset.password}'}})"
        assert self.run(f"fetch('/login/', {{method: 'POST', body: {form}}}).then(answer => answer.ok)")

    def answers(self, least: int) -> list[Any]:
        """What came for charts and filters, once there are so many."""
        found: list[Any] = []
        end = time.monotonic() + 60
        while len(found) < least:
            assert time.monotonic() < end, (found, self.run("document.body.innerText")[-2000:])
            self.run("1")  # events arrive with answers
            finished = {
                event["params"]["requestId"] for event in self.events if event["method"] == "Network.loadingFinished"
            }
            for event in [event for event in self.events if event["method"] == "Network.responseReceived"]:
                number, url = event["params"]["requestId"], event["params"]["response"]["url"]
                if number in finished:
                    self.events.remove(event)
                    if "/api/v1/chart/data" in url:
                        body = self.call("Network.getResponseBody", requestId=number)["body"]
                        found += json.loads(body).get("result", [])
        return found


@pytest.fixture(scope="session")
def superset(tmp_path_factory):
    """Superset from nothing: metadata, an administrator, roles, a server."""
    if find_spec("superset") is None:
        pytest.skip("Superset is not installed")
    folder = tmp_path_factory.mktemp("superset")
    (folder / "superset_config.py").write_text(CONFIGURATION.format(folder=folder))
    environment = {
        **os.environ, "SUPERSET_CONFIG_PATH": str(folder / "superset_config.py"), "FLASK_APP": "superset",
        "PYTHONWARNINGS": "ignore", "SUPERSET_HOME": str(folder),
    }  # fmt: skip
    names = ["--username", "admin", "--firstname", "A", "--lastname", "B", "--email", "a@b.org"]
    commands = [["db", "upgrade"], ["fab", "create-admin", *names, "--password", PASSWORD], ["init"]]
    done = subprocess.run(
        [sys.executable, "-c", SET_UP.format(commands=commands)],
        env=environment, cwd=folder, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    port = free_port()
    command = [str(Path(sys.executable).parent / "superset"), "run", "-p", str(port)]
    with (folder / "log").open("w") as log:
        server = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    try:
        yield logged_in(Superset(f"http://localhost:{port}"), folder)
    finally:
        server.terminate()
        server.wait(timeout=30)


def logged_in(superset: Superset, folder: Path) -> Superset:
    """Log in once the server answers."""
    login = {"username": "admin", "password": PASSWORD, "provider": "db"}
    end = time.monotonic() + 90
    while True:
        try:
            return Superset(superset.url, superset.call("security/login", login)["access_token"])
        except OSError:
            assert time.monotonic() < end, (folder / "log").read_text()[-2000:]
            time.sleep(0.5)


@pytest.fixture(scope="session")
def browser(superset, tmp_path_factory):
    """A browser in which the administrator is logged in."""
    if BROWSER is None:
        pytest.skip("there is no Chromium here")
    websocket = pytest.importorskip("websocket", reason="websocket-client comes with Superset")
    folder = tmp_path_factory.mktemp("browser")
    with chromium(folder, lambda url: websocket.create_connection(url, timeout=60, suppress_origin=True)) as page:
        made = Dashboards(page.socket)
        made.log_in(superset)
        yield made
