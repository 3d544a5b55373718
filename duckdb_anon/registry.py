"""The registry: every entry of the package, found in the modules that declare them.

A module of `methods/`, of `measures/` and its folders, of `report/`, of `outputs/`, or one of `_ABOVE` declares its
entries as module-level values; nothing else lists them. They are ordered by section, then by name, which is the order
of `anon_functions()`.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType

from duckdb_anon import measures, methods, outputs, report
from duckdb_anon.model.function_specs import SECTIONS, Entry, Method

_ABOVE = ("duckdb_anon.sequence.anon_release", "duckdb_anon.database.anon_release_database")
"""Modules by name: what they call stands on the registry."""


def _modules(package: ModuleType, *, nested: bool = False) -> Iterator[ModuleType]:
    for module in iter_modules(package.__path__, f"{package.__name__}."):
        if not module.ispkg:
            yield import_module(module.name)
        elif nested:
            yield from _modules(import_module(module.name), nested=True)


def discovered() -> tuple[Entry, ...]:
    """Every entry, in the order of `anon_functions()`.

    Raises:
        TypeError: two entries have one name.
    """
    found: dict[str, Entry] = {}
    above = map(import_module, _ABOVE)
    for module in (*_modules(methods), *_modules(measures, nested=True), *_modules(report), *_modules(outputs), *above):
        for value in vars(module).values():
            if isinstance(value, Entry) and found.setdefault(value.name, value) is not value:
                raise TypeError(f"{module.__name__}: another module declares the function {value.name}")
    return tuple(sorted(found.values(), key=lambda entry: (SECTIONS.index(entry.section), entry.name)))


ENTRIES = discovered()
METHODS = tuple(entry for entry in ENTRIES if isinstance(entry, Method))
