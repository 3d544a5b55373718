"""The seal of a release: one digest of everything its description says, and an optional signature (Ed25519) of it.

The seal is the SHA-256 of the description (original, call, day, version, digest of the rows) and of the columns' roles,
so a claim that was edited differs from it. Anybody can compute a seal; who made the release shows by the signature
alone. `duckdb-anon keygen` makes the pair of keys; `release()` signs with the file that DUCKDB_ANON_KEY names, and
readers compare the signer with the public key that DUCKDB_ANON_PUBLIC_KEY names, which they got another way. While one
is named, a release without a signature fails as one with a wrong signature does. A signature holds for a comment that
is the description and nothing else: what is cut off, or written before or after it, ends it.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from duckdb_anon.engine.catalog.column_roles import label_of
from duckdb_anon.engine.records.private_files import write_private
from duckdb_anon.model.errors import AnonError
from duckdb_anon.model.release_comment import Description, field_comments, read_description

KEY = "DUCKDB_ANON_KEY"
PUBLIC_KEY = "DUCKDB_ANON_PUBLIC_KEY"


def sealed(description: Description, comments: Mapping[str, str | None]) -> Description:
    """A description with its seal, and with a signature where there is a key."""
    read = read_description(replace(description, seal="", signature="").comment())
    if read is not None and read.method == description.method:
        description = read  # dates are read back as texts, and the comment is compared with what is read
    seal = seal_of(description, comments)
    file = os.environ.get(KEY)
    return replace(description, seal=seal, signature=_signed(Path(file), seal) if file else "")


def seal_of(description: Description, comments: Mapping[str, str | None]) -> str:
    """The seal that a description and the roles of columns should have."""
    plain = replace(description, seal="", signature="").comment()
    read = read_description(plain)  # numbers as they are read back
    roles = {}
    for column, text in comments.items():
        for name, comment in (field_comments(text) or {column: text or ""}).items():
            label = label_of(comment)
            if label is not None:
                roles[name] = replace(label, hierarchy=None).text()
    facts = [read.comment() if read is not None else plain, sorted(roles.items())]
    return hashlib.sha256(json.dumps(facts, ensure_ascii=True).encode()).hexdigest()


def is_sealed(description: Description, comments: Mapping[str, str | None]) -> bool:
    """Whether nothing of a description was changed since it was written."""
    return bool(description.seal) and description.seal == seal_of(description, comments)


def signer_of(comment: str, comments: Mapping[str, str | None]) -> tuple[str, bool] | None:
    """The public key of a release's signature and whether it holds; None where there is none and none is expected.

    `comment`: of the table; `comments`: of its columns. Without a signature the key that is expected is given.
    """
    expected, description = _expected(), read_description(comment) or Description()
    if not description.signature:
        return None if expected is None else (expected, False)
    public, _, signature = description.signature.partition(":")
    ed25519 = _ed25519()
    try:
        ed25519.Ed25519PublicKey.from_public_bytes(bytes.fromhex(public)).verify(
            bytes.fromhex(signature), bytes.fromhex(description.seal)
        )
        holds = True
    except Exception:  # InvalidSignature, or no key at all
        holds = False
    whole = comment.strip() == description.comment() and is_sealed(description, comments)
    return public, holds and whole and expected in (None, public)


def _expected() -> str | None:
    """The public key whose owner signs; None where none is named."""
    file = os.environ.get(PUBLIC_KEY)
    try:
        return None if file is None else Path(file).read_text(encoding="utf-8").strip()
    except OSError as error:
        raise AnonError(f"{PUBLIC_KEY}: {file}: {error.strerror}") from error


def make_keys(file: Path) -> Path:
    """Write a new private key (0600) and the public key beside it, with '.pub' at its end."""
    public = file.with_name(f"{file.name}.pub")
    for path in (file, public):
        if path.exists():
            raise AnonError(f"keygen: {path} exists. A key that is replaced signs nothing any more: give another name")
    key = _ed25519().Ed25519PrivateKey.generate()
    write_private(file, key.private_bytes_raw().hex() + "\n")
    public.write_text(key.public_key().public_bytes_raw().hex() + "\n", encoding="utf-8")
    return public


def _signed(file: Path, seal: str) -> str:
    try:
        if file.stat().st_mode & 0o077:
            raise AnonError(f"{KEY}: {file} can be read by others. Run chmod 600 on it")
        key = _ed25519().Ed25519PrivateKey.from_private_bytes(bytes.fromhex(file.read_text(encoding="utf-8").strip()))
    except OSError as error:
        raise AnonError(f"{KEY}: {file}: {error.strerror}") from error
    except ValueError as error:
        raise AnonError(f"{KEY}: {file} is no private key. Make one with duckdb-anon keygen") from error
    return f"{key.public_key().public_bytes_raw().hex()}:{key.sign(bytes.fromhex(seal)).hex()}"


def _ed25519() -> Any:
    try:
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ModuleNotFoundError as error:
        raise AnonError("signatures need the package cryptography: pip install 'duckdb-anon[sign]'") from error
    return ed25519
