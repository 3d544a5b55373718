"""TOML files that users write: read, and refused where they have a name that means nothing."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from duckdb_anon.model.errors import AnonError, listed, nearest


def read_toml(function: str, path: Path) -> dict[str, Any]:
    """The contents of a file."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise AnonError(f"{function}: {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise AnonError(f"{function}: {path} is not a valid TOML file: {error}") from error


def require_known(function: str, where: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Refuse names that a part of a file does not have."""
    names = list(known)
    for name in given:
        if name not in names:
            raise AnonError(f"{function}: {where} has unknown '{name}'{nearest(name, names)}. Allowed: {listed(names)}")
