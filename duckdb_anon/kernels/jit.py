"""Plain loops compiled to machine code: the only module that talks to numba.

`@compiled` marks a function whose body is loops over arrays and numbers. numba is imported, and the function compiled
for the types at hand and cached, at its first call. Compiled functions release the GIL, may call one another, and never
raise; one that takes longer than a pass over its rows takes a flag, see `kernels.thread_pool`.

Machine code is in the user's cache folder (`NUMBA_CACHE_DIR` names another one), in files named by a digest of all that
the function calls, of types, processor and versions: every checkout and environment shares it, and a process never
reads code that another version writes at the same time. What was not used for a week is removed. Some options that
numba does not document halve the time to compile. They are used if a trial shows that they work, and never where
`DUCKDB_ANON_PLAIN_NUMBA` is set.
Cost: 0.1 to 8 s to compile a function, 0.4 s to import numba.
"""

from __future__ import annotations

import functools
import gc
import hashlib
import math
import os
import platform
import threading
import time
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np

from duckdb_anon.model.progress import tick

_USUAL_LOCATORS = "UserProvidedCacheLocator,InTreeCacheLocator,UserWideCacheLocator,IPythonCacheLocator"
_WEEK = 7 * 24 * 3600.0
AnyFunction = Callable[..., Any]


def code_digest(functions: Iterable[AnyFunction], versions: str) -> str:
    """Name of machine code: what the functions say, in whatever file and line, and the numbers they take from there."""
    said = sorted(
        repr((f.__module__, f.__qualname__, f.__defaults__, *_said(f.__code__, f.__globals__))) for f in functions
    )
    return hashlib.sha256(f"{versions} {said}".encode()).hexdigest()[:24]


def _said(code: types.CodeType, names: Mapping[str, Any]) -> Iterator[Any]:
    yield code.co_code, code.co_names, code.co_varnames
    for constant in code.co_consts:
        yield list(_said(constant, names)) if isinstance(constant, types.CodeType) else constant
    for value in map(names.get, code.co_names):
        yield value if isinstance(value, (int, float, np.generic)) else getattr(value, "__name__", "")


def cache_folder() -> Path | None:
    """Return the folder of machine code, the same for every checkout and environment of a user."""
    user = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser())
    folder = Path(os.environ.get("NUMBA_CACHE_DIR") or user / "duckdb_anon")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    return folder if os.access(folder, os.W_OK | os.X_OK) else None


class Locator:
    """Tells numba where the machine code of the function that it compiles is: in files that the digest names."""

    function: AnyFunction | None = None
    folder: Path | None = None
    digest = ""

    @classmethod
    def from_function(cls, function: AnyFunction, file: str) -> Locator | None:
        """Return a locator, unless it is a function that another thread compiles."""
        return cls() if function is cls.function else None

    def get_cache_path(self) -> str:
        """The folder."""
        return str(self.folder)

    def ensure_cache_path(self) -> None:
        """Nothing to do: the folder is there."""

    def get_source_stamp(self) -> str:
        """Nothing: the digest is of the source."""
        return ""

    def get_disambiguator(self) -> str:
        """What the files' names end in."""
        return self.digest


Function = TypeVar("Function", bound=Callable[..., Any])
_PUBLIC = {"nogil": True, "error_model": "numpy"}
_INNER = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
_lock = threading.RLock()


class _Clock:
    """Seconds without those in which functions are compiled, which happens once on a machine."""

    def __init__(self) -> None:
        self._compiled, self._since = 0.0, math.inf  # since when one is compiled

    def now(self) -> float:
        """Seconds from some time on."""
        return min(time.perf_counter(), self._since) - self._compiled

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Stop until the block ends; one thread at a time."""
        begun = time.perf_counter()
        self._since = min(begun, self._since)
        try:
            yield
        finally:
            if self._since == begun:  # not inside another such block
                self._compiled, self._since = self._compiled + time.perf_counter() - begun, math.inf


CLOCK = _Clock()


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
            with _lock, CLOCK.stopped():
                dispatcher = self._by_types[key] = self._by_types.get(key) or self._compile(arguments)
        result = dispatcher(*arguments)
        tick()
        return result

    def _compile(self, arguments: tuple[Any, ...]) -> Any:
        numba = _numba()
        signature = tuple(numba.typeof(argument) for argument in arguments)
        options = _PUBLIC | ({"_nrt": self.allocates, "no_cfunc_wrapper": True} if _extras_work() else {})
        folder = cache_folder()
        digest = code_digest(self.reached(), f"{signature} {_fields(arguments)} {_environment()}")
        Locator.function, Locator.folder, Locator.digest = self.function, folder, digest
        with _settings(_extras_work()):
            if folder is not None:
                try:
                    dispatcher = numba.njit(signature, cache=True, **options)(self.function)
                    for file in folder.glob(f"*{digest}*"):
                        os.utime(file)  # the time of last use
                    _remove_unused(folder)
                    return dispatcher
                except Exception:  # pickle and LLVM raise anything on damaged code; a full disk raises OSError
                    for file in folder.glob(f"*{digest}*"):
                        file.unlink(missing_ok=True)
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


def _fields(value: Any) -> Any:
    """Names of the fields of named tuples, which numba's type of one does not tell."""
    return (getattr(value, "_fields", ()), *map(_fields, value)) if isinstance(value, tuple) else ()


@functools.cache
def _remove_unused(folder: Path) -> None:
    for file in folder.glob("*.nb[ic]"):
        with suppress(OSError):
            if time.time() - file.stat().st_mtime > _WEEK:
                file.unlink()


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
def _settings(fast: bool) -> Iterator[None]:
    """Settings of numba while a function is compiled: its cache, and LLVM's first level, as good for plain loops.

    The collector of cyclic garbage pauses: it would search all that the compiler makes and find nothing.
    """
    config = _numba().config
    before, collects = (config.CACHE_LOCATOR_CLASSES, config.OPT), gc.isenabled()
    gc.disable()
    try:
        config.CACHE_LOCATOR_CLASSES = f"{__name__}.{Locator.__name__},{before[0] or _USUAL_LOCATORS}"
        config.OPT = type(config.OPT)(1) if fast else config.OPT
        yield
    finally:
        config.CACHE_LOCATOR_CLASSES, config.OPT = before
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
        with _settings(fast=True):
            more = _one_version(numba.njit(_nrt=False, **_PUBLIC, **_INNER)(lambda number: number + 1))
            twice = numba.njit(_nrt=False, no_cfunc_wrapper=True, **_PUBLIC)(lambda number: more(1) * number)
            return bool(twice(3) == 6)
    except Exception:
        return False
