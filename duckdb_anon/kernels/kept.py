"""Machine code on disk that several processes share, where nothing a process finds there can fail a call.

numba names the code of a function's n-th signature n, and tells of it before it is there: a process that looks in
between reads what another release of numba left under that name, or what another process compiled for other types
and saved at the same time. Here every piece of code has a name of its own, and is there before it is told of; what
cannot be read is compiled anew, and what cannot be written is not kept. The folder is given and not put into numba's
settings: those are the process's, where another thread would find them changed.

Cost: none.
"""

from __future__ import annotations

import functools
import inspect
import secrets
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any


def keep(dispatcher: Any, function: Callable[..., Any], folder: Path) -> None:
    """Keep the machine code of a function in a folder; of one without a file, as typed at a prompt, nothing is kept.

    Args:
        dispatcher: numba's function, not called yet.
        function: what it compiles.
        folder: a folder that is named after all that the code depends on.
    """
    if Path(inspect.getfile(function)).is_file():
        dispatcher._cache = _cache()(function, folder)


@functools.cache
def _cache() -> Any:
    """Return the class of numba's keepers of compiled functions, which helps where it can."""
    from numba.core import caching

    files: Any = caching.IndexDataCacheFile
    cache: Any = caching.FunctionCache
    contents: Any = caching.CompileResultCacheImpl
    place: Any = caching._CacheLocator

    class Folder(place):  # type: ignore[misc]
        """Where a function's code is kept."""

        def __init__(self, function: Callable[..., Any], folder: Path) -> None:
            self._line, self._path = str(function.__code__.co_firstlineno), str(folder)

        def get_cache_path(self) -> str:
            return self._path

        def get_source_stamp(self) -> str:
            return "contents"  # which name the folder; when a file was written does not matter

        def get_disambiguator(self) -> str:
            return self._line

    class Contents(contents):  # type: ignore[misc]
        """How code is written, and under which name."""

        def __init__(self, function: Callable[..., Any], folder: Path) -> None:
            self._locator = Folder(function, folder)
            name = f"{Path(inspect.getfile(function)).stem}.{function.__qualname__}"
            self._filename_base = self.get_filename_base(name, getattr(sys, "abiflags", ""))

    class Files(files):  # type: ignore[misc]
        """An index of signatures, and one file a signature."""

        def save(self, key: Any, data: Any) -> None:
            name = self._data_name(secrets.randbits(64))
            self._save_data(name, data)
            # read only now, so that few entries that others save meanwhile are lost, which are compiled again then
            index = self._load_index()
            self._save_index({**index, key: name})
            if key in index:  # what could not be read
                Path(self._data_path(index[key])).unlink(missing_ok=True)

        def _load_index(self) -> dict[Any, str]:
            try:
                return dict(super()._load_index())
            except Exception:  # a damaged pickle raises anything
                return {}

    class Cache(cache):  # type: ignore[misc]
        """A function's code on disk."""

        def __init__(self, function: Callable[..., Any], folder: Path) -> None:
            self._name, self._py_func = repr(function), function
            self._impl = Contents(function, folder)
            self._cache_path = self._impl.locator.get_cache_path()
            stamp = self._impl.locator.get_source_stamp()
            self._cache_file = Files(self._cache_path, self._impl.filename_base, stamp)
            self.enable()

        def load_overload(self, sig: Any, target_context: Any) -> Any:
            try:
                return super().load_overload(sig, target_context)
            except Exception:  # LLVM and pickle raise anything on code that is not theirs
                return None

        def save_overload(self, sig: Any, data: Any) -> None:
            try:
                super().save_overload(sig, data)
            except OSError:
                return

    return Cache
