"""The workbench in a real Chromium: from a messy table to a published file, verified, and back by `duckdb-anon run`."""

import csv
import datetime as dt
import http.client
import json
import os
import random
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

import duckdb_anon
from duckdb_anon.cli import main
from duckdb_anon.engine.catalog.catalog import Catalog, write_comments
from tests.reference.browser import BROWSER, Browser, chromium
from tests.reference.ports import free_port

pytestmark = [pytest.mark.campaign, pytest.mark.skipif(BROWSER is None, reason="there is no Chromium here")]
pytest.importorskip("marimo", reason="the workbench extra is not installed")
psutil = pytest.importorskip("psutil")
client = pytest.importorskip("websockets.sync.client")
TOKEN = "only-for-this-test"
HOSTILE = "<script>window.attacked=1</script>"
HELPERS = """
function deep(selector, root = document) {
  let found = [...root.querySelectorAll(selector)]
  for (const e of root.querySelectorAll('*')) if (e.shadowRoot) found.push(...deep(selector, e.shadowRoot))
  return found
}
function step(name) { deep('[role=radio]').find(e => e.value == name).click() }
function press(text) { deep('button').find(e => e.innerText.trim() == text).click() }
function choose(select, start) {
  select.value = [...select.options].find(o => o.text.startsWith(start)).value
  select.dispatchEvent(new Event('change', {bubbles: true}))
}
function role(column, start) {
  choose(deep('select', [...document.querySelectorAll('.line')].find(e => e.getAttribute('aria-label') == column))[0], start)
}
function says(text) { return document.body.innerText.includes(text) }
"""


def hospital(file: Path, rows: int) -> None:
    """A messy table: names, phones, mixed dates with bare years, postcodes, codes for missing values, texts, lists."""
    draw = random.Random(7)
    with file.open("w", newline="", encoding="utf-8") as out:
        write = csv.writer(out).writerow
        write(["patient_id", "name", "phone", "birth_date", "sex", "postcode", "diagnosis", "codes", "notes", "income",
               "country", HOSTILE])  # fmt: skip
        for i in range(rows):
            born = dt.date(1930, 1, 1) + dt.timedelta(days=draw.randrange(28000))
            spelling = draw.choices(("%Y-%m-%d", "%d.%m.%Y", "%d/%m/%Y", "%Y"), (65, 25, 5, 5))[0]
            income = "N/A" if draw.random() < 0.06 else draw.choice((15, 22, 30, 41, 55, 900)) * 1000
            write([
                f"P{i:06d}", draw.choice(("Anna Weber", "Ben Koch", "Clara Wolf")), f"+49 30 {draw.randrange(10**6, 10**7)}",
                born.strftime(spelling), draw.choice("FfMM"), draw.choice(("01067", "04109", "10115", "20095")),
                draw.choice(("asthma", "diabetes", "flu", "fracture", "HIV", "migraine")), draw.choice(("A01;B20", "E11;J45")),
                f"call the daughter, who lives near {draw.randrange(rows)}", income, "DE",
                draw.choice(("<img src=x onerror=window.attacked=1>", "no")),
            ])  # fmt: skip


def connected(url: str):
    """A web socket that is open until the browser closes it."""
    socket = client.connect(url, max_size=None, origin=None).__enter__()
    socket.recv = partial(socket.recv, timeout=60)  # a browser that hangs fails the test
    return socket


@contextmanager
def serving(folder: Path, port: int, file: str = "hospital.csv") -> Iterator[subprocess.Popen[str]]:
    """A server that is killed at the end, as by a crash."""
    command = [sys.executable, "-m", "duckdb_anon.cli", "workbench", file, "--no-browser", "--token", TOKEN]
    process = subprocess.Popen(
        [*command, "--listen", f"localhost:{port}"],
        cwd=folder,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline().startswith(f"http://localhost:{port}/")
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.fixture(scope="module")
def axe(tmp_path_factory):
    """The program of axe-core; tests that need it are left out where npm brings none."""
    folder = tmp_path_factory.mktemp("axe")
    if shutil.which("npm") is None:
        pytest.skip("there is no npm here")
    done = subprocess.run(
        ["npm", "pack", "axe-core@4", "--silent"], cwd=folder, capture_output=True, timeout=60, check=False
    )
    packed = next(folder.glob("*.tgz"), None)
    if done.returncode or packed is None:
        pytest.skip("npm brings no axe-core")
    with tarfile.open(packed) as archive:
        file = archive.extractfile("package/axe.min.js")
        assert file is not None
        return file.read().decode()


def opened(page: Browser, port: int, step: str = "Table") -> None:
    """Open the address at a step."""
    page.call("Network.enable")
    page.call("Page.navigate", url=f"http://localhost:{port}/?access_token={TOKEN}&step={step}")
    page.until("document.body && document.querySelector('h2')", 60)
    page.call("Runtime.evaluate", expression=HELPERS)


def go(page: Browser, step: str, word: str) -> None:
    page.until("deep('[role=radio]').length >= 5")
    page.run(f"step({json.dumps(step)})")
    page.until(f"says({json.dumps(word)})")


def left_the_machine(page: Browser, server: int, port: int) -> list[str]:
    """Requests of the page to anything but the server, and connections of the server to anything but this machine."""
    urls = [e["params"]["request"]["url"] for e in page.events if e["method"] == "Network.requestWillBeSent"]
    found = [url for url in urls if not url.startswith((f"http://localhost:{port}/", "data:", "blob:"))]
    for process in (psutil.Process(server), *psutil.Process(server).children(recursive=True)):
        found += [
            c.raddr.ip for c in process.net_connections("inet") if c.raddr and c.raddr.ip not in ("127.0.0.1", "::1")
        ]
    return found


def serious(page: Browser, axe: str) -> list[str]:
    page.call("Runtime.evaluate", expression=axe)
    faults = "v => v.id + ' ' + v.nodes[0].html"
    run = f"axe.run().then(r => r.violations.filter(v => ['serious', 'critical'].includes(v.impact)).map({faults}))"
    return list(page.run(run))


def pictures(page: Browser, name: str, axe: str) -> None:
    """Nothing serious at either width; with ANON_PICTURES, pictures to look at."""
    for width in (1280, 390):
        page.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=1400, deviceScaleFactor=1, mobile=width < 500
        )
        assert serious(page, axe) == []
        page.until(f"document.querySelector('#App').scrollWidth <= {width}", 10)
        if folder := os.environ.get("ANON_PICTURES"):
            page.picture(Path(folder) / f"{name}_{width}.png")


def test_from_a_messy_table_to_a_verified_file_and_back_by_run(tmp_path, axe, capsys):
    hospital(tmp_path / "hospital.csv", 5000)
    port, flags = free_port(), ["--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1"]
    with chromium(tmp_path / "browser", connected, flags) as page:
        with serving(tmp_path, port) as server:
            opened(page, port)
            page.until("deep('[role=checkbox]').length == 3")
            assert page.run("says('values NULL that it cannot read')")
            for k in range(3):
                page.run(f"deep('[role=checkbox]')[{k}].click()")
                page.until(f"document.querySelectorAll('[role=status] p').length == {k + 1}")
            pictures(page, "table", axe)
            go(page, "Roles", "unique on the chosen")
            page.run("role('income', 'insensitive')")
            page.until("says('weaker than the proposed')")
            pictures(page, "roles", axe)
            other = page.tab(f"http://localhost:{port}/?step=Roles")  # another tab has the cookie
            other.until("document.body && document.body.innerText.includes('weaker than the proposed')", 60)
            other.call("Runtime.evaluate", expression=HELPERS)
            other.until("deep('select').length > 10")
            other.run("role('income', 'sensitive')")
            other.until("!says('weaker than the proposed')")
            other.call("Page.close")
            page.call("Page.bringToFront")  # pages behind others are drawn seldom
            page.run("role('sex', 'insensitive')")
            page.until("says('sex of hospital is labelled')")
            assert not page.run("says('income of hospital is labelled')")  # what the other tab did stays
            assert left_the_machine(page, server.pid, port) == []
        with serving(tmp_path, port) as server:  # the first one was killed
            opened(page, port, "Roles")
            page.until("says('sex of hospital is labelled') && deep('select').length > 10")
            page.run("role('sex', 'quasi')")
            page.until("!says('weaker than the proposed')")
            go(page, "Promise", "What it does not")
            page.until("deep('button').some(e => e.innerText == 'Try methods')")
            page.run("press('Try methods')")
            page.until("document.querySelector('[role=progressbar]')")
            page.until("deep('select').some(s => s.options.length > 2)", 120)
            page.run("choose(deep('select').find(s => s.options.length > 2), 'mondrian')")
            page.until("[...document.querySelectorAll('code')].some(e => e.innerText.includes('l :='))")
            page.until("document.querySelector('marimo-vega')")
            pictures(page, "promise", axe)
            page.run("step('Look')")
            page.until("deep('button').some(e => e.innerText == 'Look at a trial release')")
            page.run("press('Look at a trial release')")
            page.until("says('The strongest attacker') && says('Distributions')", 120)
            pictures(page, "look", axe)
            page.run("step('Release')")
            page.until("deep('button').some(e => e.innerText == 'Release')")
            page.run("press('Release')")
            page.until("says('Written and verified') || says('Nothing was written:')", 120)
            pictures(page, "release", axe)
            assert page.run("says('Written and verified')"), page.run("document.body.innerText")[:2000]
            assert page.run("window.attacked") is None
            assert left_the_machine(page, server.pid, port) == []
    again = tmp_path / "again"
    again.mkdir()
    for name in ("plan.toml", "hospital.csv"):
        shutil.copy(tmp_path / name, again / name)
    assert main(["run", str(again / "plan.toml")]) == 0
    guarantees = [verified(folder / "hospital_release.parquet") for folder in (tmp_path, again)]
    assert guarantees[0] == guarantees[1] and {"k", "l"} <= {check for check, *_ in guarantees[0]}
    assert all(holds for *_, holds in guarantees[0])
    with duckdb_anon.connect() as con:
        columns = con.sql(f"from '{again / 'hospital_release.parquet'}'").columns
    assert not {"name", "phone", "patient_id", "notes"} & set(columns)


def verified(file: Path) -> list[tuple[str, str, bool]]:
    with duckdb_anon.connect() as con:
        relation = Catalog(con, "memory", "main").relation("test", "release", str(file))
        con.execute(f"create table r as from '{file}'")
        write_comments(con, "r", relation.comment, relation.comments)
        rows = con.execute("""select "check", promised, holds from verify_release('r')
            where "check" not in ('rows', 'description', 'signature') order by all""").fetchall()
    return [(check, promised, holds) for check, promised, holds in rows]


def test_work_is_stopped_by_the_keyboard_and_strangers_get_nothing(tmp_path):
    hospital(tmp_path / "hospital.csv", 2000)
    port = free_port()
    with (
        serving(tmp_path, port) as server,
        chromium(tmp_path / "browser", connected) as page,
    ):
        for path, host in (("/", f"localhost:{port}"), (f"/?access_token={TOKEN}", "evil.example")):
            connection = http.client.HTTPConnection("localhost", port)
            connection.request("GET", path, headers={"Host": host})
            answer = connection.getresponse()
            assert answer.status in (303, 401, 421) and b"hospital" not in answer.read()
            connection.close()
        addresses = {c.laddr.ip for c in psutil.Process(server.pid).net_connections("inet") if c.status == "LISTEN"}
        assert addresses == {"127.0.0.1"}
        opened(page, port, "Promise")
        page.until("deep('button').some(e => e.innerText == 'Try methods')")
        reach(page, "Try methods")
        page.until("deep('button').some(e => e.innerText == 'Stop')")
        reach(page, "Stop")
        page.until("says('stopped; what was done before is kept')", 30)
        assert not page.run("!!document.querySelector('[role=progressbar]')")


def reach(page: Browser, button: str) -> None:
    """Press a button that Tab leads to."""
    active = "(() => { let a = document.activeElement; while (a.shadowRoot && a.shadowRoot.activeElement) a = a.shadowRoot.activeElement; return a.innerText })()"
    for _ in range(60):
        key(page, "Tab", 9)
        if page.run(active) == button:
            key(page, "Enter", 13, "\r")
            return
    raise AssertionError(f"Tab does not lead to {button}")


def key(page: Browser, name: str, code: int, text: str = "") -> None:
    for kind in ("keyDown", "keyUp"):
        page.call("Input.dispatchKeyEvent", type=kind, key=name, code=name, windowsVirtualKeyCode=code,
                  **({"text": text} if text and kind == "keyDown" else {}))  # fmt: skip


def test_an_address_that_other_machines_reach_is_refused(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["workbench", "--listen", "0.0.0.0:0", "--no-browser"]) == 1
    assert "0.0.0.0 can be reached from other machines" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
