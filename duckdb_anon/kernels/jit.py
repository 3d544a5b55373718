"""Plain loops compiled to machine code: the only module that talks to numba.

`@compiled` marks a function whose body is loops over arrays and numbers. numba is imported, and the function compiled
for the types at hand and cached, at its first call. Compiled functions release the GIL, may call one another, and never
raise; one that takes longer than a pass over its rows takes a flag, see `kernels.thread_pool`.

Machine code is in the package where a wheel brings it, made for any processor, and else in the user's cache folder
(`NUMBA_CACHE_DIR` names another one). Files are named by a digest of all that the function calls, of types, processor
and versions: every checkout and environment shares them, and a process never reads code that another version writes
at the same time. What was not used for a week is removed.
Cost: 0.1 to 9 s to compile a function, 0.4 s to import numba.
"""

from __future__ import annotations

import functools
import gc
import hashlib
import math
import os
import sys
import threading
import time
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np

from duckdb_anon.model.progress import say, tick

SHIPPED = Path(__file__).parent / "machine_code"
_USUAL_LOCATORS = "UserProvidedCacheLocator,InTreeCacheLocator,UserWideCacheLocator,IPythonCacheLocator"
_WEEK = 7 * 24 * 3600.0
_OPTIONS = {"nogil": True, "error_model": "numpy"}
_TRIED = (0, 68)  # the newest numba in which the option without a documented name was tried
Place: Any = np.uint64
"""Type of places in arrays inside loops that run long: among signed numbers numba looks for negative ones each time."""
_lock = threading.RLock()
AnyFunction = Callable[..., Any]
Function = TypeVar("Function", bound=AnyFunction)


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

    def __init__(self, function: AnyFunction, makes_arrays: bool = False) -> None:
        """Remember what to compile."""
        functools.update_wrapper(self, function)
        self.function, self.makes_arrays = function, makes_arrays
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
        environment = _environment()  # sets what numba reads when it is imported
        numba = import_module("numba")  # its types say nothing of these settings
        signature, reached = tuple(map(numba.typeof, arguments)), self.reached()
        for each in reached - {self}:
            each.usable_inside  # noqa: B018
        options = _options(self.makes_arrays)
        types_and_versions = f"{signature} {_fields(arguments)} {environment} {options}"
        digest = code_digest((each.function for each in reached), types_and_versions)
        shipped = any(SHIPPED.glob(f"*{digest}*"))
        folder = SHIPPED if shipped else cache_folder()
        if folder is None or not any(folder.glob(f"*{digest}*")):
            say("compiling, once")
        Locator.function, Locator.folder, Locator.digest = self.function, folder, digest
        with _settings():
            if folder is not None:
                try:
                    dispatcher = numba.njit(signature, cache=True, **options)(self.function)
                    if not shipped:
                        _used(folder, digest)
                    return dispatcher
                except Exception:  # pickle and LLVM raise anything on damaged code; a full disk raises OSError
                    for file in folder.glob(f"*{digest}*"):
                        with suppress(OSError):
                            file.unlink(missing_ok=True)
            return numba.njit(signature, **options)(self.function)

    @functools.cached_property
    def usable_inside(self) -> bool:
        """Tell numba what other compiled functions call; it makes a version for each type, not for each constant."""
        overload = import_module("numba.extending").overload
        overload(self, jit_options=_options(self.makes_arrays), strict=False)(lambda *arguments: self.function)
        return True

    def reached(self) -> set[Compiled]:
        """The function and all that it calls, directly or not."""
        found, waiting = {self}, [self]
        while waiting:
            called = set(_calls(waiting.pop().function).values()) - found
            found |= called
            waiting += called
        return found


@functools.cache
def _options(makes_arrays: bool) -> dict[str, Any]:
    """Options of numba for functions that make arrays of their own, or for those that do not.

    The latter count no references: each call of a compiled function counts those of all arrays of its arguments up and
    down, by instructions for which the processor's cores wait for one another, half of the time of a partition. numba
    has no documented name for it, so versions that were not tried count them.
    """
    newer = tuple(map(int, version("numba").split(".")[:2])) > _TRIED
    return _OPTIONS if makes_arrays or newer else {**_OPTIONS, "_nrt": False}


def _calls(function: AnyFunction) -> dict[str, Compiled]:
    named = {name: function.__globals__.get(name) for name in function.__code__.co_names}
    return {name: each for name, each in named.items() if isinstance(each, Compiled)}


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


def compiled_with_arrays(function: Function) -> Function:
    """Compile a function as `compiled` does, one that makes arrays of its own."""
    return cast(Function, Compiled(function, makes_arrays=True))


def instead(kernel: Function, replacements: Mapping[Any, Any]) -> Function:
    """Return a compiled function that calls others in the place of some that it would call, directly or not.

    `kernel`: a compiled function; `replacements`: by the compiled function whose place they take; arguments and results
    of the same types.
    """
    return cast(Function, _variant(cast(Compiled, kernel), frozenset(replacements.items())))


@functools.cache
def _variant(kernel: Compiled, replacements: frozenset[tuple[Compiled, Compiled]]) -> Compiled:
    by_name, function = dict(replacements), kernel.function
    called = _calls(function)
    calls = {name: by_name.get(each) or _variant(each, replacements) for name, each in called.items()}
    if calls == called:
        return kernel
    changed = types.FunctionType(function.__code__, {**function.__globals__, **calls}, function.__name__)
    functools.update_wrapper(changed, function)
    # machine code is found by name: variants with the same name would call one another's functions
    names = sorted(f"{name}={each.function.__module__}.{each.function.__qualname__}" for name, each in calls.items())
    changed.__qualname__ = f"{function.__qualname__}_{hashlib.sha256(str(names).encode()).hexdigest()[:16]}"
    return Compiled(changed, kernel.makes_arrays)


def _type_key(value: Any) -> Any:
    """What numba's type of a value depends on."""
    if isinstance(value, np.ndarray):
        return value.dtype, value.ndim, value.flags.num
    return (type(value), *map(_type_key, value)) if isinstance(value, tuple) else type(value)


def _fields(value: Any) -> Any:
    """Names of the fields of named tuples, which numba's type of one does not tell."""
    return (getattr(value, "_fields", ()), *map(_fields, value)) if isinstance(value, tuple) else ()


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


def versions() -> str:
    """What machine code is made for besides the processor: numba, Python, platform."""
    return f"{version('numba')} {sys.implementation.cache_tag} {sys.platform}"


@functools.cache
def _environment() -> str:
    """Versions, and the processor: any one where a wheel brings code for it, and numba is not at work on another."""
    built_for = SHIPPED / "built_for"
    if "numba" not in sys.modules and built_for.is_file() and built_for.read_text(encoding="utf-8") == versions():
        os.environ.setdefault("NUMBA_CPU_NAME", "generic")
    import llvmlite.binding as llvm  # type: ignore[import-untyped]

    config = import_module("numba").config
    processor = config.CPU_NAME or (llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten())
    return f"{versions()} {processor} {config.CPU_FEATURES}"


def cache_folder() -> Path | None:
    """Return the folder of machine code, the same for every checkout and environment of a user."""
    user = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser())
    folder = Path(os.environ.get("NUMBA_CACHE_DIR") or user / "duckdb_anon")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    return folder if os.access(folder, os.W_OK | os.X_OK) else None


def _used(folder: Path, digest: str) -> None:
    for file in folder.glob(f"*{digest}*"):
        os.utime(file)  # the time of last use
    _remove_unused(folder)


@functools.cache
def _remove_unused(folder: Path) -> None:
    for file in folder.glob("*.nb[ic]"):
        with suppress(OSError):
            if time.time() - file.stat().st_mtime > _WEEK:
                file.unlink()


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


@contextmanager
def _settings() -> Iterator[None]:
    """Settings of numba while a function is compiled: its cache, and LLVM's first level, as good for plain loops.

    The collector of cyclic garbage pauses: it would search all that the compiler makes and find nothing.
    """
    config = import_module("numba").config
    before, collects = (config.CACHE_LOCATOR_CLASSES, config.OPT), gc.isenabled()
    gc.disable()
    try:
        config.CACHE_LOCATOR_CLASSES = f"{__name__}.{Locator.__name__},{before[0] or _USUAL_LOCATORS}"
        config.OPT = type(config.OPT)(1)
        yield
    finally:
        config.CACHE_LOCATOR_CLASSES, config.OPT = before
        if collects:
            gc.enable()
