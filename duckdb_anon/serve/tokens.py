"""Who may connect: one token for all clients, or one per person or group from a file.

A file of tokens has a line of JSON per token: name, scrypt hash, and optionally expiry, tables and limits. It is read
again when it changes, so a token is revoked without a restart. A file that others can read, or that cannot be read,
admits no client. A token is NAME.SECRET with 192 random bits; the file holds a hash of the latter.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import hmac
import json
import os
import re
import secrets
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from duckdb_anon.engine.records.private_files import write_private
from duckdb_anon.model.errors import AnonError
from duckdb_anon.model.identifier_case import fold

LEAST = 22
"""Characters of a token for all clients: 128 bits when they are random and of base64."""
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_BYTES = 24  # of a new secret
_COST = {"n": 1 << 14, "r": 8, "p": 1}  # 16 MB and some 40 ms per try
_FIRST_WAIT, _LONGEST_WAIT = 0.25, 4.0  # seconds
_FORGET = 600.0  # seconds after which an address that failed may try at once again
_MOST_ADDRESSES = 10_000


@dataclass(frozen=True)
class Client:
    """Who sends a request."""

    name: str  # of the token
    tables: tuple[str, ...] | None = None  # names that it may read, folded; None for every table that is served
    sessions: int | None = None  # that its clients may have open, all together; None for what the server allows
    statements: int | None = None  # of theirs that run at once; None for what the server allows

    def as_json(self) -> str:
        """One line, which `from_json` reads."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, line: str) -> Client:
        """The client of such a line."""
        given = json.loads(line)
        return cls(**{**given, "tables": None if given["tables"] is None else tuple(given["tables"])})


@dataclass(frozen=True)
class _Entry:
    """A line of the file."""

    line: str
    client: Client
    salt: bytes
    key: bytes
    expires: dt.date | None

    @classmethod
    def of(cls, line: str) -> _Entry:
        """What a line says; any error means that it is no token."""
        given = json.loads(line)
        scheme, salt, key = given["hash"].split(":")
        if scheme != "scrypt" or set(given) - {"name", "hash", "expires", "tables", "limits"}:
            raise ValueError
        tables = tuple(fold(table) for table in given["tables"]) if "tables" in given else None
        client = Client(given["name"], tables, **given.get("limits", {}))
        expires = dt.date.fromisoformat(given["expires"]) if "expires" in given else None
        return cls(line, client, bytes.fromhex(salt), bytes.fromhex(key), expires)

    def admits(self) -> bool:
        """Whether it has not expired; the day of expiry, in UTC, is the last."""
        return self.expires is None or dt.datetime.now(dt.UTC).date() <= self.expires


class OneToken:
    """One token for all clients; the methods are those of `TokenFile`."""

    def __init__(self, token: str) -> None:
        """Admit who sends `token`."""
        if len(token) < LEAST:
            raise AnonError(
                f"the token has {len(token)} characters. It must have at least {LEAST} (128 bits). Leave it out "
                "and one is generated"
            )
        self._token, self._client = token.encode(), Client("token")

    def cached(self, given: bytes) -> Client | None:  # noqa: D102
        return self._client if hmac.compare_digest(given, self._token) else None

    client = cached

    def current(self, client: Client) -> bool:  # noqa: D102
        return client == self._client

    def name(self, given: bytes) -> str | None:  # noqa: D102
        return None


class TokenFile:
    """Tokens from a file, which is read again when it changes."""

    def __init__(self, path: str) -> None:
        """Read the file."""
        self._path, self._seen = Path(path), (0, 0, 0)
        self._entries: dict[str, _Entry] = {}
        self._cache: dict[bytes, _Entry] = {}
        self._refresh()

    def client(self, given: bytes) -> Client | None:
        """Who sends this token; None for nobody. Takes a try's time unless it was right before."""
        found = self.cached(given)
        if found is not None:
            return found
        name, _, secret = given.partition(b".")
        entry = self._current().get(name.decode(errors="replace"))
        # a name that nobody has takes as long as one that somebody has
        key = _key(secret, entry.salt if entry else b"nobody")
        if entry is None or not hmac.compare_digest(key, entry.key) or not entry.admits():
            return None
        self._cache[hashlib.sha256(given).digest()] = entry
        return entry.client

    def cached(self, given: bytes) -> Client | None:
        """Who sends this token if it was right before and nothing has changed since."""
        entries = self._current()
        entry = self._cache.get(hashlib.sha256(given).digest())
        if entry is None or not entry.admits() or entries.get(entry.client.name) != entry:
            return None
        return entry.client

    def current(self, client: Client) -> bool:
        """Whether a client that was admitted still is: its token is in the file, unchanged and not expired."""
        entry = self._current().get(client.name)
        return entry is not None and entry.client == client and entry.admits()

    def name(self, given: bytes) -> str | None:
        """Whose token a wrong one pretends to be, if there is such a name."""
        name = given.partition(b".")[0].decode(errors="replace")
        return name if name in self._entries else None

    def _current(self) -> dict[str, _Entry]:
        try:
            self._refresh()
        except AnonError:
            self._entries, self._seen = {}, (0, 0, 0)  # nobody, until it can be read again
        return self._entries

    def _refresh(self) -> None:
        require_private(self._path)
        found = self._path.stat()
        seen = (found.st_mtime_ns, found.st_size, found.st_ino)
        if seen != self._seen:
            self._entries = _read(self._path)
            self._seen = seen


class FailedTries:
    """How long an address waits after tries with wrong tokens: twice as long after each, up to some seconds.

    >>> tries = FailedTries()
    >>> for _ in range(3): tries.add("192.0.2.1")
    >>> tries.wait("192.0.2.1"), tries.wait("192.0.2.2")
    (1.0, 0.0)
    """

    def __init__(self) -> None:
        self._failed: dict[str, tuple[int, float]] = {}

    def add(self, address: str) -> None:
        """Count a failed try."""
        count = self._failed.pop(address, (0, 0.0))[0] if self.wait(address) else 0
        self._failed[address] = (count + 1, time.monotonic())
        if len(self._failed) > _MOST_ADDRESSES:
            del self._failed[next(iter(self._failed))]

    def wait(self, address: str) -> float:
        """Seconds until a token of this address is looked at."""
        count, last = self._failed.get(address, (0, 0.0))
        if not count or time.monotonic() - last > _FORGET:
            return 0.0
        return float(min(_FIRST_WAIT * 2 ** min(count - 1, 10), _LONGEST_WAIT))


def require_private(path: Path) -> None:
    """Refuse a file with secrets that others can read."""
    try:
        found = path.stat()
    except OSError as error:
        raise AnonError(f"cannot read {path}: {error.strerror}") from error
    if hasattr(os, "getuid") and (found.st_uid not in (0, os.getuid()) or found.st_mode & 0o077):
        raise AnonError(f"{path} can be read by other users. Only its owner may: chmod 600 {path}")


def add(
    path: Path,
    name: str,
    expires: dt.date | None = None,
    tables: list[str] | None = None,
    sessions: int | None = None,
    statements: int | None = None,
) -> str:
    """Add a token to a file, which is made if there is none; the token is returned and written nowhere."""
    if not _NAME.fullmatch(name):
        raise AnonError(f"{name} is not a name of letters, digits, - and _. Choose one, such as team-a")
    entries = _read(path) if path.exists() else {}
    if name in entries:
        raise AnonError(f"{path} has a token {name}. Revoke it first, or choose another name")
    secret, salt = secrets.token_urlsafe(_BYTES), secrets.token_bytes(16)
    limits = {limit: most for limit, most in (("sessions", sessions), ("statements", statements)) if most}
    hashed = f"scrypt:{salt.hex()}:{_key(secret.encode(), salt).hex()}"
    facts = {"expires": expires and expires.isoformat(), "tables": tables, "limits": limits or None}
    given = {"name": name, "hash": hashed} | {fact: value for fact, value in facts.items() if value is not None}
    _write(path, [*(entry.line for entry in entries.values()), json.dumps(given)])
    return f"{name}.{secret}"


def revoke(path: Path, name: str) -> None:
    """Remove a token; servers notice at the next request."""
    entries = _read(path)
    if name not in entries:
        raise AnonError(f"{path} has no token {name}. It has {', '.join(sorted(entries)) or 'none'}")
    _write(path, [entry.line for entry in entries.values() if entry.client.name != name])


def listed(path: Path) -> list[tuple[Client, dt.date | None]]:
    """Clients and when their tokens expire, by name."""
    return [(entry.client, entry.expires) for _, entry in sorted(_read(path).items())]


def _key(secret: bytes, salt: bytes) -> bytes:
    return hashlib.scrypt(secret, salt=salt, dklen=32, **_COST)


def _read(path: Path) -> dict[str, _Entry]:
    """The lines of the file by name."""
    require_private(path)
    try:
        entries = [_Entry.of(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise AnonError(f"{path} has a line that is no token. Write it with duckdb-anon token") from error
    return {entry.client.name: entry for entry in entries}


def _write(path: Path, lines: Sequence[str]) -> None:
    """Replace the file at once, so that a server never reads half of it."""
    write_private(path, "".join(f"{line}\n" for line in lines))
