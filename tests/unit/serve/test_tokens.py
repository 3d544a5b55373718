"""Tokens of people and groups, and the log of what they did."""

import asyncio
import datetime as dt
import json
import os
from pathlib import Path
from typing import Any

import pytest

from duckdb_anon import cli
from duckdb_anon.model.errors import AnonError
from duckdb_anon.serve import tokens
from duckdb_anon.serve.audit import Audit, Request
from duckdb_anon.serve.tokens import Client, OneToken, TokenFile

TODAY = dt.datetime.now(dt.UTC).date()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "tokens"


def add(file: Path, name: str, expires: dt.date | None = None, tables: list[str] | None = None) -> bytes:
    return tokens.add(file, name, expires, tables, sessions=3).encode()


def test_token_admits_its_client_and_no_other_text_does(file: Path) -> None:
    token = add(file, "alice", TODAY, ["People"])
    admitted = TokenFile(str(file))
    alice = Client("alice", ("people",), sessions=3)
    assert admitted.client(token) == alice and admitted.cached(token) == alice and admitted.current(alice)
    for wrong in (token + b"x", token[:-1], b"bob." + token.partition(b".")[2], b"", b"alice", b"\xff.\xff"):
        assert admitted.client(wrong) is None and admitted.cached(wrong) is None
    assert Client.from_json(alice.as_json()) == alice


def test_file_has_no_secret_and_belongs_to_its_owner_alone(file: Path) -> None:
    secret = add(file, "alice").partition(b".")[2]
    assert len(secret) >= 22  # 128 bits in base64
    assert secret not in file.read_bytes() and file.stat().st_mode & 0o777 == 0o600


def test_revoked_changed_or_expired_token_admits_nobody_from_then_on(file: Path) -> None:
    first, other = add(file, "alice"), add(file, "bob", TODAY - dt.timedelta(days=1))
    admitted = TokenFile(str(file))
    alice = admitted.client(first)
    assert alice is not None and admitted.client(other) is None
    tokens.revoke(file, "alice")
    assert not admitted.current(alice) and admitted.client(first) is None and admitted.cached(first) is None
    second = add(file, "alice")
    assert admitted.client(first) is None and admitted.client(second) is not None


@pytest.mark.parametrize("spoil", ["mode", "text", "gone"])
def test_file_that_others_read_or_nobody_can_read_admits_nobody(file: Path, spoil: str) -> None:
    token = add(file, "alice")
    admitted = TokenFile(str(file))
    alice = admitted.client(token)
    assert alice is not None
    kept = file.read_text()
    if spoil == "mode":
        file.chmod(0o640)
    elif spoil == "text":
        file.write_text(kept + "{}\n")
    else:
        file.unlink()
    assert admitted.client(token) is None and not admitted.current(alice)
    with pytest.raises(AnonError):
        TokenFile(str(file))
    file.write_text(kept)
    file.chmod(0o600)
    assert admitted.client(token) == alice


def test_names_are_plain_and_taken_once(file: Path) -> None:
    add(file, "alice")
    for name in ("alice", "", "a.b", "a b", "x" * 65):
        with pytest.raises(AnonError):
            add(file, name)
    with pytest.raises(AnonError, match="no token bob"):
        tokens.revoke(file, "bob")


def test_token_for_all_clients_has_128_bits_at_least() -> None:
    with pytest.raises(AnonError, match="at least 22"):
        OneToken("x" * 21)
    assert OneToken("x" * 22).client(b"x" * 22) is not None


def test_command_line_adds_lists_and_revokes(file: Path, capsys: Any) -> None:
    day = (TODAY + dt.timedelta(days=9)).isoformat()
    assert (
        cli.main(["token", "add", str(file), "alice", "--expires", day, "--tables", "people", "--statements", "2"]) == 0
    )
    token = capsys.readouterr().out.strip()
    assert TokenFile(str(file)).client(token.encode()) is not None
    assert cli.main(["token", "list", str(file)]) == 0
    assert capsys.readouterr().out == f"alice: until {day}; tables people; sessions 100, statements 2\n"
    assert cli.main(["token", "revoke", str(file), "alice"]) == 0
    assert file.read_text() == ""


def test_log_is_rotated_private_and_summarized(tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "audit.jsonl"

    async def statements() -> None:
        audit = Audit(str(path), size=4000)
        for number in range(40):
            request = Request("statement", {"token": "alice"}, f"select {number}", key=str(number))
            audit.begin(request)
            refused = "not allowed" if number == 7 else ""
            audit.report({"key": str(number), "engine": None if refused else "closed form", "refused": refused})
            request.outcome = request.outcome if refused else "answered"
            await audit.end(request)
        audit.write("failed token", token=None, address="192.0.2.1")
        audit.close()

    asyncio.run(statements())
    files = sorted(tmp_path.glob("audit.jsonl*"))
    assert len(files) > 1 and all(one.stat().st_mode & 0o777 == 0o600 for one in files)
    lines = [json.loads(line) for one in files for line in one.read_text().splitlines()]
    assert sorted(line.get("statement", "") for line in lines) == sorted(["", *(f"select {n}" for n in range(40))])
    assert cli.main(["audit", str(path)]) == 0
    said = [line.replace("│", " ").split() for line in capsys.readouterr().out.splitlines()]
    assert ["alice", "40", "39", "1", "0", "0"] in [line[:6] for line in said]
    for line in (["closed", "form", "39"], ["192.0.2.1", "unknown", "1"], ["not", "allowed", "1"]):
        assert line in said


def test_what_is_no_log_is_not_summarized(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "notes").write_text('{"a": 1}\n')
    for name in ("notes", "nothing"):
        assert cli.main(["audit", str(tmp_path / name)]) == 1
        assert name in capsys.readouterr().err
    assert not os.path.exists(tmp_path / "nothing")
