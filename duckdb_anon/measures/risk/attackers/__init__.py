"""Attackers, one file each: every module of this folder that has values of type `Attacker` is found."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from duckdb_anon.measures.risk.attacks import Attacker


def _found() -> tuple[Attacker, ...]:
    modules = [import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__)]
    each = {value.name: value for module in modules for value in vars(module).values() if isinstance(value, Attacker)}
    return tuple(sorted(each.values(), key=lambda attacker: attacker.order))


ATTACKERS = _found()
"""In the order reports list them."""
