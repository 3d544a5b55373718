"""Plain loops compiled to machine code: the one home of what numba is asked to do.

`@compiled` marks a function whose body is loops over arrays and numbers. Nothing happens at import: numba is
imported, and the function compiled, at its first call, so `import duckdb_anon` and the command line start as
quickly as without it. Compiled functions release the GIL, may call one another, and never raise: one that may take
longer than a pass over its rows takes the flag of `model.progress` as `stop` (or `flag`, see `kernels.thread_pool`) and
returns early where it is set; what it returns then is never seen, since the call raises.

What was compiled is kept: beside the package where that folder can be written to, in the user's cache folder
otherwise (`$XDG_CACHE_HOME/duckdb_anon` or `~/.cache/duckdb_anon`; `NUMBA_CACHE_DIR`, where set, decides), and
nowhere if neither can be. numba compares the file of a compiled function with what it has kept, but not the files
of the functions that one calls; so the folder is named after the contents of all of these and numba's release, and a
change compiles anew whatever it reaches, and nothing else.

Cost: the first call of a function compiles it (0.1 to 2 s, kept), the first one in a process imports numba (0.4 s).
"""

from __future__ import annotations

import functools
import gc
import hashlib
import os
import shutil
import threading
import time
import types
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar, cast

from duckdb_anon.kernels.kept import keep
from duckdb_anon.kernels.linking import linked_library, number_apart, options_by_identity
from duckdb_anon.model.progress import tick

Function = TypeVar("Function", bound=Callable[..., Any])
_KERNELS = Path(__file__).parent
_WEEK = 7 * 24 * 3600.0
_lock = threading.RLock()


class Compiled:
    """A function that is compiled when it is first called, from Python or by another compiled function.

    The two are compiled apart: what other compiled functions call needs no way in for Python's objects, which for
    tuples of arrays would be most of the work.
    """

    def __init__(self, function: Callable[..., Any], allocates: bool = True) -> None:
        """Remember what to compile."""
        functools.update_wrapper(self, function)
        self.function = function
        self.allocates = allocates
        self._outer: Any = None
        self._inner: Any = None

    def __call__(self, *arguments: Any) -> Any:
        """Call the compiled function, unless the call it is made for is to stop or was stopped meanwhile."""
        tick()
        result = (self._outer or self.outer())(*arguments)
        tick()
        return result

    def outer(self) -> Any:
        """Return numba's function for Python to call."""
        with _lock:
            if self._outer is None:
                self._outer = _dispatcher(self.function, self.allocates, inner=False)
        return self._outer

    def inner(self) -> Any:
        """Return numba's function for compiled functions to call."""
        with _lock:
            if self._inner is None:
                self._inner = _dispatcher(self.function, self.allocates, inner=True)
        return self._inner


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


def compiled_in_place(function: Function) -> Function:
    """Compile a function that makes no array and returns none, which takes half the time to compile.

    Args:
        function: as for `compiled`; the arrays it works in are all given.
    """
    return cast(Function, Compiled(function, allocates=False))


def instead(kernel: Function, others: Mapping[Any, Any]) -> Function:
    """Return a compiled function that calls other ones in the place of some it would call, directly or not.

    What a call does not need is not compiled: a kernel that checks any requirement takes twice as long to compile as
    one that checks sizes alone.

    Args:
        kernel: a compiled function.
        others: by the compiled function whose place they take; arguments and results of the same types.

    >>> @compiled
    ... def step(x):
    ...     return x + 1
    >>> @compiled
    ... def twice(x):
    ...     return step(step(x))
    >>> @compiled
    ... def leap(x):
    ...     return x + 10
    >>> instead(twice, {step: leap})(0), twice(0)
    (20, 2)
    """
    return cast(Function, _variant(cast(Compiled, kernel), frozenset(others.items())))


@functools.cache
def _variant(kernel: Compiled, others: frozenset[tuple[Compiled, Compiled]]) -> Compiled:
    known, function = dict(others), kernel.function
    called = {name: function.__globals__.get(name) for name in function.__code__.co_names}
    own = {
        name: known[value] if value in known else _variant(value, others)
        for name, value in called.items()
        if isinstance(value, Compiled)
    }
    if all(own[name] is called[name] for name in own):
        return kernel
    changed = types.FunctionType(function.__code__, {**function.__globals__, **own}, function.__name__)
    functools.update_wrapper(changed, function)
    # machine code is found by this name: of two variants with the same, one that a process reads from what another
    # process kept would call the functions of the one that is there already
    calls = " ".join(
        f"{name}={one.function.__module__}.{one.function.__qualname__}" for name, one in sorted(own.items())
    )
    changed.__qualname__ = f"{function.__qualname__}_{hashlib.sha256(calls.encode()).hexdigest()[:16]}"
    return Compiled(changed, kernel.allocates)


def cache_folder(function: Callable[..., Any], inner: bool = False) -> Path | None:
    """Return the folder a function's code is kept in, None where no folder can be written to.

    Args:
        function: what is compiled.
        inner: for compiled functions to call.
    """
    given = os.environ.get("NUMBA_CACHE_DIR")
    user = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()) / "duckdb_anon"
    for parent in (Path(given),) if given else (_KERNELS / "__pycache__", user):
        folder = parent / f"compiled-{_contents(function)}{'-inner' if inner else ''}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            os.utime(folder)  # in use: `_forget_old` goes by it
        except OSError:
            continue
        if os.access(folder, os.W_OK | os.X_OK):
            _forget_old(parent, folder)
            return folder
    return None


def _contents(function: Callable[..., Any]) -> str:
    """Name the functions a function can reach by calls, the contents of their files, and what compiles them."""
    files: set[str] = set()
    met, waiting = {function}, [function]
    while waiting:
        caller = waiting.pop()
        files.add(caller.__code__.co_filename)
        for name in caller.__code__.co_names:
            called = caller.__globals__.get(name)
            if isinstance(called, Compiled) and called.function not in met:
                met.add(called.function)
                waiting.append(called.function)
    # variants of a function are in one file and call different ones
    digest = hashlib.sha256(" ".join(sorted(each.__qualname__ for each in met)).encode())
    digest.update(_numba().__version__.encode())
    for file in sorted(files):
        path = Path(file)
        digest.update(path.name.encode())
        digest.update(path.read_bytes() if path.is_file() else b"")
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

    number_apart()

    @typeof_impl.register(Compiled)
    def of_compiled(value: Compiled, context: Any) -> Any:
        return value.inner()._numba_type_

    return numba


def _dispatcher(function: Callable[..., Any], allocates: bool, inner: bool) -> Any:
    numba = _numba()
    # without arrays to make there are no references to count, and half of the code is gone
    options = {"nogil": True, "error_model": "numpy", "_nrt": allocates}
    if inner:
        options |= {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return _general(_quickly(_kept(numba, function, options, cache_folder(function, inner)), inner))


def _quickly(dispatcher: Any, inner: bool) -> Any:
    """Compile with LLVM's first level of optimising, which loops such as these run as fast with; see `linking` too.

    The collector of cyclic garbage pauses meanwhile: it would go through all that numba makes and find nothing.
    """
    from numba.core.codegen import JITCodeLibrary
    from numba.core.compiler_lock import global_compiler_lock

    config: Any = _numba().core.config
    compile_one, codegen = dispatcher.compile, dispatcher.targetctx.codegen()
    library = linked_library() if inner else JITCodeLibrary

    def compile(signature: Any) -> Any:
        with global_compiler_lock:
            level, config.OPT = config.OPT, config._OptLevel(1)
            before, codegen._library_class = codegen._library_class, library
            collects = gc.isenabled()
            gc.disable()
            try:
                with options_by_identity():
                    return compile_one(signature)
            finally:
                config.OPT, codegen._library_class = level, before
                if collects:
                    gc.enable()

    dispatcher.compile = compile
    return dispatcher


def _kept(numba: Any, function: Callable[..., Any], options: dict[str, Any], folder: Path | None) -> Any:
    dispatcher = numba.njit(**options)(function)
    if folder is not None:
        keep(dispatcher, function, folder)
    return dispatcher


def _general(dispatcher: Any) -> Any:
    """Compile one version for all numbers: numba would make another one for each constant a caller gives."""
    from numba.core.types import unliteral

    template = dispatcher.get_call_template

    def get_call_template(args: Any, kws: Any) -> Any:
        return template([unliteral(arg) for arg in args], kws)  # type: ignore[no-untyped-call]

    dispatcher.get_call_template = get_call_template
    return dispatcher
