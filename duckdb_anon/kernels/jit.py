"""Plain loops compiled to machine code: the only module that talks to numba.

`@compiled` marks a function whose body is loops over arrays and numbers. numba is imported, and the function compiled
for the types at hand and cached, at its first call. Compiled functions release the GIL, may call one another, and never
raise; one that takes longer than a pass over its rows takes a flag, see `kernels.thread_pool`.

Each function and combination of types has a folder of its own, named by the sources of all that the function calls, by
types, processor and versions; so a process never reads code that another version writes at the same time. Folders
stand next to the package, else in the user's cache folder; `NUMBA_CACHE_DIR` overrides both. Those that were not used
for a week are removed. Some options that numba does not document halve the time to compile. They are used if a trial
shows that they work, and never where `DUCKDB_ANON_PLAIN_NUMBA` is set.
Cost: 0.1 to 8 s to compile a function, 0.4 s to import numba.
"""

from __future__ import annotations

import functools
import gc
import hashlib
import os
import platform
import shutil
import threading
import time
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np

from duckdb_anon.model.progress import tick

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


Function = TypeVar("Function", bound=Callable[..., Any])
_PUBLIC = {"nogil": True, "error_model": "numpy"}
_INNER = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
_lock = threading.RLock()


class Compiled:
    """A function that is compiled when Python or another compiled function calls it first."""

    def __init__(self, function: Callable[..., Any], allocates: bool = True, inline: bool = False) -> None:
        """Remember what to compile."""
        functools.update_wrapper(self, function)
        self.function = self.py_func = function
        self.allocates, self.inline = allocates, inline
        self._by_types: dict[Any, Any] = {}

    def __call__(self, *arguments: Any) -> Any:
        """Call the compiled function, unless the call it serves was stopped."""
        tick()
        key = tuple(map(_type_key, arguments))
        dispatcher = self._by_types.get(key)
        if dispatcher is None:
            with _lock:
                dispatcher = self._by_types[key] = self._by_types.get(key) or self._compile(arguments)
        result = dispatcher(*arguments)
        tick()
        return result

    def _compile(self, arguments: tuple[Any, ...]) -> Any:
        numba = _numba()
        signature = tuple(numba.typeof(argument) for argument in arguments)
        options = _PUBLIC | ({"_nrt": self.allocates, "no_cfunc_wrapper": True} if _extras_work() else {})
        folder = cache_folder(self.reached(), f"{signature} {_environment()}")
        with _settings(folder, _extras_work()):
            if folder is not None:
                try:
                    return numba.njit(signature, cache=True, **options)(self.function)
                except Exception:  # pickle and LLVM raise anything on damaged code; a full disk raises OSError
                    shutil.rmtree(folder, ignore_errors=True)
            return numba.njit(signature, **options)(self.function)

    @property
    def targetoptions(self) -> dict[str, str]:
        """Where numba looks for a function that it is to compile as a part of the one that calls it."""
        return {"inline": "always"} if self.inline and _extras_work() else {}

    @functools.cached_property
    def inner(self) -> Any:
        """What other compiled functions call; it becomes part of their machine code."""
        if not _extras_work():
            return _numba().njit(**_PUBLIC)(self.function)
        return _one_version(_numba().njit(_nrt=self.allocates, **_PUBLIC, **_INNER)(self.function))

    def reached(self) -> set[Callable[..., Any]]:
        """The function and all that it calls, directly or not."""
        found, waiting = {self.function}, [self.function]
        while waiting:
            caller = waiting.pop()
            named = (caller.__globals__.get(name) for name in caller.__code__.co_names)
            called = {each.function for each in named if isinstance(each, Compiled)} - found
            found |= called
            waiting += called
        return found


def compiled(function: Function) -> Function:
    """Compile a function with numba at its first call.

    >>> @compiled
    ... def total(values):
    ...     result = 0
    ...     for value in values:
    ...         result += value
    ...     return result
    >>> total(np.arange(4))
    6
    """
    return cast(Function, Compiled(function))


def compiled_in_place(function: Function) -> Function:
    """Compile a function that creates and returns no array, which takes less time to compile."""
    return cast(Function, Compiled(function, allocates=False))


def compiled_inline(function: Function) -> Function:
    """Compile a function as a part of the only function that calls it, which takes less time than two."""
    return cast(Function, Compiled(function, allocates=False, inline=True))


def instead(kernel: Function, replacements: Mapping[Any, Any]) -> Function:
    """Return a compiled function that calls others in the place of some that it would call, directly or not.

    `kernel`: a compiled function; `replacements`: by the compiled function whose place they take; arguments and results
    of the same types.
    """
    return cast(Function, _variant(cast(Compiled, kernel), frozenset(replacements.items())))


@functools.cache
def _variant(kernel: Compiled, replacements: frozenset[tuple[Compiled, Compiled]]) -> Compiled:
    by_name, function = dict(replacements), kernel.function
    called = {name: function.__globals__.get(name) for name in function.__code__.co_names}
    calls = {
        name: by_name.get(each) or _variant(each, replacements)
        for name, each in called.items()
        if isinstance(each, Compiled)
    }
    if all(calls[name] is called[name] for name in calls):
        return kernel
    changed = types.FunctionType(function.__code__, {**function.__globals__, **calls}, function.__name__)
    functools.update_wrapper(changed, function)
    # machine code is found by name: variants with the same name would call one another's functions
    names = sorted(f"{name}={each.function.__module__}.{each.function.__qualname__}" for name, each in calls.items())
    changed.__qualname__ = f"{function.__qualname__}_{hashlib.sha256(str(names).encode()).hexdigest()[:16]}"
    return Compiled(changed, kernel.allocates, kernel.inline)


def _type_key(value: Any) -> Any:
    """What numba's type of a value depends on."""
    if isinstance(value, np.ndarray):
        return value.dtype, value.ndim, value.flags.num
    return (type(value), *map(_type_key, value)) if isinstance(value, tuple) else type(value)


@functools.cache
def _environment() -> str:
    import llvmlite.binding as llvm  # type: ignore[import-untyped]

    processor = llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
    return f"{_numba().__version__} {platform.python_version()} {processor} {_extras_work()}"


@functools.cache
def _numba() -> Any:
    """Import numba, and register `Compiled` as the type of the function it stands for."""
    import numba
    from numba.extending import typeof_impl

    typeof: Callable[[Any], Any] = numba.typeof

    @typeof_impl.register(Compiled)
    def typeof_compiled(value: Compiled, context: Any) -> Any:
        return typeof(value.inner)

    return numba


@contextmanager
def _settings(folder: Path | None, fast: bool) -> Iterator[None]:
    """Settings of numba while a function is compiled: its cache, and LLVM's first level, as good for plain loops.

    The collector of cyclic garbage pauses: it would search all that the compiler makes and find nothing.
    """
    config = _numba().config
    before, collects = (config.CACHE_DIR, config.OPT), gc.isenabled()
    gc.disable()
    try:
        config.CACHE_DIR, config.OPT = str(folder or ""), type(config.OPT)(1) if fast else config.OPT
        yield
    finally:
        config.CACHE_DIR, config.OPT = before
        if collects:
            gc.enable()


def _one_version(dispatcher: Any) -> Any:
    """Compile one version for all numbers, where numba would make another one for each constant a caller passes."""
    unliteral, template = _numba().types.unliteral, dispatcher.get_call_template
    dispatcher.get_call_template = lambda arguments, named: template([unliteral(each) for each in arguments], named)
    return dispatcher


@functools.cache
def _extras_work() -> bool:
    """Try the options that save time; with a numba that lacks them, everything is compiled with documented ones."""
    if os.environ.get("DUCKDB_ANON_PLAIN_NUMBA"):
        return False
    numba = _numba()
    try:
        with _settings(None, fast=True):
            more = _one_version(numba.njit(_nrt=False, **_PUBLIC, **_INNER)(lambda number: number + 1))
            twice = numba.njit(_nrt=False, no_cfunc_wrapper=True, **_PUBLIC)(lambda number: more(1) * number)
            return bool(twice(3) == 6)
    except Exception:
        return False
