"""What both parts of `duckdb-anon run` do with a plan: check its fields, hash what it is made from, report progress."""

from __future__ import annotations

import hmac
import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from duckdb_anon.model.errors import AnonError, listed, nearest


def require_known(path: Path, where: str, given: Iterable[str], known: Any) -> None:
    """Refuse names that a part of a plan does not have.

    Raises:
        AnonError: there is one.
    """
    for name in given:
        if name not in known:
            raise AnonError(
                f"run: {path}: {where} has unknown '{name}'{nearest(name, known)}. Allowed: {listed(known)}"
            )


def keyed_hash(key: bytes, stated: Iterable[Any] | Mapping[str, Any]) -> str:
    """Hash of what something is made from, which nobody without the key can try values against."""
    return hmac.digest(key, json.dumps(stated, sort_keys=True, default=str).encode(), "sha256").hex()


def say(line: str) -> None:
    """Report progress on stderr."""
    sys.stderr.write(f"{line}\n")
