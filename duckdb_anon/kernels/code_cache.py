"""Folders in which machine code of compiled functions is cached, one for each function and combination of types.

A folder is named by the sources of all functions that the function calls and by what its caller says of types,
processor and versions. So a process never reads code that another version, or a process that compiled for other
types, writes at the same time. Folders stand beside the package, else in the user's cache folder
(`$XDG_CACHE_HOME/duckdb_anon`, by default `~/.cache/duckdb_anon`); `NUMBA_CACHE_DIR` overrides both. Those that were
not used for a week are removed.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

_KERNELS = Path(__file__).parent
_WEEK = 7 * 24 * 3600.0
AnyFunction = Callable[..., Any]


def cache_folder(functions: Iterable[AnyFunction], versions: str) -> Path | None:
    """Return the folder for the machine code of a function."""
    reached = sorted((f.__code__.co_filename, f.__module__, f.__qualname__) for f in functions)
    files = sorted({Path(file) for file, _, _ in reached})
    if not all(file.is_file() for file in files):
        return None
    digest = hashlib.sha256(f"{versions} {[names for _, *names in reached]}".encode())
    for file in files:
        digest.update(file.read_bytes())
    for parent in _parents():
        folder = parent / f"compiled-{digest.hexdigest()[:24]}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            os.utime(folder)  # the time of last use
        except OSError:
            continue
        if os.access(folder, os.W_OK | os.X_OK):
            _remove_unused(parent)
            return folder
    return None


def _parents() -> tuple[Path, ...]:
    override = os.environ.get("NUMBA_CACHE_DIR")
    user = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser())
    return (Path(override),) if override else (_KERNELS / "__pycache__", user / "duckdb_anon")


def _remove_unused(parent: Path) -> None:
    for folder in parent.glob("compiled-*"):
        try:
            if time.time() - folder.stat().st_mtime > _WEEK:
                shutil.rmtree(folder, ignore_errors=True)
        except OSError:
            continue
