"""Attackers, one file each: every module of this folder that has values of type `Attacker` is found."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from duckdb_anon.measures.risk.attacks import Attacker

_modules = [import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__)]
_found = {value.name: value for module in _modules for value in vars(module).values() if isinstance(value, Attacker)}
ATTACKERS = tuple(sorted(_found.values(), key=lambda attacker: attacker.order))
"""In the order reports list them."""
