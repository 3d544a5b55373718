"""Tokens of people, the audit log and TLS, with DuckDB's own Quack client."""

import datetime as dt
import ipaddress
import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pytest

from duckdb_anon.serve import tokens
from tests.endtoend.serve.conftest import quack_client
from tests.reference.ports import free_port


@dataclass
class Server:
    """An endpoint with a file of tokens."""

    port: int
    connect: str
    warned: str
    audit: Path
    tokens: dict[str, str]

    def ask(
        self, query: str, who: str, host: str = "localhost", option: str = "", before: str = ""
    ) -> list[tuple[Any]]:
        with quack_client() as run:
            run(before or "select 1")
            return run(
                f"from quack_query('quack:{host}:{self.port}', $t${query}$t$, token := '{self.tokens[who]}'{option})"
            )

    def noted(self, event: str) -> list[dict[str, Any]]:
        lines = [json.loads(line) for line in self.audit.read_text().splitlines()]
        return [line for line in lines if line["event"] == event]


def started(folder: Path, place: Path, *options: str, host: str = "localhost") -> Iterator[Server]:
    given = {
        "alice": tokens.add(place / "tokens", "alice"),
        "bob": tokens.add(place / "tokens", "bob", tables=["boxes"]),
        "wrong": "alice.not-her-secret",
    }
    port = free_port()
    listening = ["--listen", f"{host}:{port}", "--tokens", str(place / "tokens"), "--audit", str(place / "audit.jsonl")]
    command = [sys.executable, "-m", "duckdb_anon.cli", "serve", str(folder / "releases.duckdb"), *listening, *options]
    with (place / "stderr").open("w") as warnings:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=warnings, text=True)
    assert process.stdout is not None
    try:
        assert process.stdout.readline().startswith("analyst endpoint at "), (place / "stderr").read_text()
        connect = process.stdout.readline()
        yield Server(port, connect, (place / "stderr").read_text(), place / "audit.jsonl", given)
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=20) == 0
        process.stdout.close()


@pytest.fixture(scope="module")
def served(folder: Path, serve: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    yield from started(folder, tmp_path_factory.mktemp("tokens"), "--threads", "1")


def test_each_token_reads_its_tables_and_is_noted_by_name(served: Server) -> None:
    before = len(served.noted("statement"))
    assert served.ask("select count(*) from boxes", "bob") == [(2000,)]
    assert served.ask("select count(*) from covered", "alice") == [(2000,)]
    for query in ("select count(*) from covered", "from estimate('select count(*) from covered', 'covered')"):
        with pytest.raises(duckdb.Error, match="published table"):
            served.ask(query, "bob")
    assert served.ask("show tables", "bob") == [("boxes",)]
    assert len(served.ask("from boxes", "bob")) == 2000
    with pytest.raises(duckdb.Error, match="wrong token"):
        served.ask("select 1", "wrong")
    noted = served.noted("statement")[before:]
    assert [(line["token"], line["engine"], line["outcome"]) for line in noted] == [
        ("bob", "release", "answered"), ("alice", "release", "answered"), ("bob", None, "refused"),
        ("bob", None, "refused"), ("bob", "catalog", "answered"), ("bob", "release", "answered"),
    ]  # fmt: skip
    assert all(line["milliseconds"] > 0 for line in noted)
    assert [(line["token"], line["address"]) for line in served.noted("failed token")] == [("alice", "127.0.0.1")]
    assert not any(secret.partition(".")[2] in served.audit.read_text() for secret in served.tokens.values())


def test_log_has_no_value_of_the_data_not_even_in_an_error(served: Server) -> None:
    with pytest.raises(duckdb.Error, match="values could not be read"):
        served.ask("select max(disease::int) from boxes", "alice")
    served.ask("select distinct disease from boxes", "alice")
    failed = served.noted("statement")[-2]
    assert failed["outcome"] == "failed" and failed["statement"] == "select max(disease::int) from boxes"
    facts = [json.dumps({**line, "session": "", "time": ""}) for line in served.noted("statement")]
    assert not any(f"d{number}" in line for number in range(7) for line in facts)


def test_token_is_revoked_without_a_restart(served: Server) -> None:
    served.tokens["carol"] = tokens.add(served.audit.parent / "tokens", "carol")
    with quack_client() as run:
        run(f"attach 'quack:localhost:{served.port}' as r (type quack, token '{served.tokens['carol']}')")
        assert run("select count(*) from r.boxes") == [(2000,)]
        tokens.revoke(served.audit.parent / "tokens", "carol")
        with pytest.raises(duckdb.Error, match="revoked"):
            run("select count(*) from r.boxes")
        served.tokens["team"] = tokens.add(served.audit.parent / "tokens", "team")
    with pytest.raises(duckdb.Error, match="wrong token, or one that was revoked"):
        served.ask("select 1", "carol")
    assert served.ask("select 1", "team") == [(1,)]


def certificate(place: Path) -> tuple[Path, Path]:
    """A certificate of its own for localhost, and its key."""
    pytest.importorskip("cryptography")
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key, now = ec.generate_private_key(ec.SECP256R1()), dt.datetime.now(dt.UTC)
    name = x509.Name([x509.NameAttribute(x509.oid.NameOID.COMMON_NAME, "localhost")])
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    made = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key()).serial_number(1)
        .not_valid_before(now - dt.timedelta(days=1)).not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )  # fmt: skip
    (place / "cert.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    unprotected = serialization.NoEncryption()
    (place / "key.pem").touch(0o600)
    (place / "key.pem").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, unprotected)
    )
    return place / "cert.pem", place / "key.pem"


def test_client_connects_with_tls_and_only_to_a_certificate_it_trusts(folder: Path, serve: Any, tmp_path: Path) -> None:
    cert, key = certificate(tmp_path)
    options = ("--threads", "1", "--tls-cert", str(cert), "--tls-key", str(key))
    for server in started(folder, tmp_path, *options):
        printed = server.connect.partition("token := '...'")[2].partition(")")[0]
        assert printed == ", disable_ssl := false"  # which a client takes for granted of any other host
        trusting = f"set ca_cert_file = '{cert}'"
        for host in ("localhost", "127.0.0.1"):
            assert server.ask("select count(*) from boxes", "alice", host, printed, trusting) == [(2000,)]
        with pytest.raises(duckdb.Error, match="SSL peer certificate"):
            server.ask("select 1", "alice", "localhost", printed)
        with pytest.raises(duckdb.Error, match="returned nothing"):
            server.ask("select 1", "alice", "localhost")


def test_endpoint_without_tls_that_others_reach_warns_and_prints_how_to_connect(
    folder: Path, serve: Any, tmp_path: Path
) -> None:
    for server in started(folder, tmp_path, "--threads", "1", "--anywhere", host="0.0.0.0"):
        assert "cross the network unencrypted" in server.warned
        assert f"'quack:{socket.gethostname()}:{server.port}'" in server.connect
        printed = server.connect.partition("token := '...'")[2].partition(")")[0]
        host = socket.gethostbyname(socket.gethostname())
        assert server.ask("select count(*) from boxes", "alice", host, printed) == [(2000,)]


def test_key_that_others_can_read_is_refused(run: Any, folder: Path, tmp_path: Path) -> None:
    cert, key = certificate(tmp_path)
    key.chmod(0o644)
    code, said = run("serve", str(folder / "releases.duckdb"), "--tls-cert", str(cert), "--tls-key", str(key))
    assert code == 1 and "chmod 600" in said
    code, said = run("serve", str(folder / "releases.duckdb"), "--tls-cert", str(cert))
    assert code == 1 and "needs both" in said
