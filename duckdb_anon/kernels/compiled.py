"""Plain loops compiled to machine code: the one home of what numba is asked to do.

`@compiled` marks a function whose body is loops over arrays and numbers. Nothing happens at import: numba is
imported, and the function compiled, at its first call, so `import duckdb_anon` and the command line start as
quickly as without it. Compiled functions release the GIL, may call one another, and never raise: a function that
may be interrupted takes a flag, see `kernels.threads`.

What was compiled is kept: beside the package where that folder can be written to, in the user's cache folder
otherwise (`$XDG_CACHE_HOME/duckdb_anon` or `~/.cache/duckdb_anon`; `NUMBA_CACHE_DIR`, where set, decides), and
nowhere if neither can be. numba compares the file of a compiled function with what it has kept, but not the files
of the functions that one calls; so the folder is named after the contents of all kernels, and a changed kernel
compiles anew whatever calls it.

Cost: the first call of a function compiles it (0.1 to 2 s, kept), the first one in a process imports numba (0.4 s).
"""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., Any])
_KERNELS = Path(__file__).parent
_WEEK = 7 * 24 * 3600.0
_lock = threading.RLock()


class Compiled:
    """A function that is compiled when it is first called, from Python or by another compiled function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        """Remember what to compile."""
        functools.update_wrapper(self, function)
        self.function = function
        self._dispatcher: Any = None

    def __call__(self, *arguments: Any) -> Any:
        """Call the compiled function."""
        return (self._dispatcher or self.dispatcher())(*arguments)

    def dispatcher(self) -> Any:
        """Return numba's side of the function."""
        with _lock:
            if self._dispatcher is None:
                self._dispatcher = _dispatcher(self.function)
        return self._dispatcher


def compiled(function: Function) -> Function:
    """Compile a function with numba at its first call.

    Args:
        function: loops over arrays and numbers; see numba's list of what it may contain. Arguments by position.

    >>> @compiled
    ... def total(values):
    ...     result = 0
    ...     for value in values:
    ...         result += value
    ...     return result
    >>> import numpy as np
    >>> total(np.arange(4))
    6
    """
    return cast(Function, Compiled(function))


def cache_folder() -> Path | None:
    """Return the folder compiled code is kept in, None where no folder can be written to.

    A folder given in NUMBA_CACHE_DIR is used as it is.
    """
    given = os.environ.get("NUMBA_CACHE_DIR")
    user = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()) / "duckdb_anon"
    for parent in (Path(given),) if given else (_KERNELS / "__pycache__", user):
        folder = parent / f"compiled-{_contents()}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            os.utime(folder)  # in use: `_forget_old` goes by it
        except OSError:
            continue
        if os.access(folder, os.W_OK | os.X_OK):
            _forget_old(parent, folder)
            return folder
    return None


@functools.cache
def _contents() -> str:
    """Name the contents of all kernels."""
    digest = hashlib.sha256()
    for path in sorted(_KERNELS.rglob("*.py")):
        digest.update(path.relative_to(_KERNELS).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _forget_old(parent: Path, used: Path) -> None:
    """Remove what other versions kept and have not used for a week."""
    for folder in parent.glob("compiled-*"):
        try:
            if folder != used and time.time() - folder.stat().st_mtime > _WEEK:
                shutil.rmtree(folder, ignore_errors=True)
        except OSError:
            continue


@functools.cache
def _numba() -> Any:
    """Import numba, and teach it that a `Compiled` global is the function it stands for."""
    import numba
    from numba.extending import typeof_impl

    @typeof_impl.register(Compiled)
    def of_compiled(value: Compiled, context: Any) -> Any:
        return value.dispatcher()._numba_type_

    return numba


def _dispatcher(function: Callable[..., Any]) -> Any:
    numba = _numba()
    options = {"nogil": True, "error_model": "numpy"}
    folder = cache_folder()
    if folder is None:
        return numba.njit(**options)(function)
    # The folder is read when a function is decorated; others in this process keep their own.
    before, numba.config.CACHE_DIR = numba.config.CACHE_DIR, str(folder)
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:  # a function without a file, such as one typed at a prompt, cannot be kept
        return numba.njit(**options)(function)
    finally:
        numba.config.CACHE_DIR = before
