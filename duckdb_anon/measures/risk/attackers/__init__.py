"""Attackers, in the order reports list them; a new one is one function and one line here."""

from __future__ import annotations

from duckdb_anon.measures.risk.attackers.definetti import DEFINETTI, TOLD
from duckdb_anon.measures.risk.attackers.record_linkage import EXACT, LIKELIHOOD, LIKELIHOOD_EXCLUDING, NEAREST
from duckdb_anon.measures.risk.attacks import Attacker

ATTACKERS: tuple[Attacker, ...] = (EXACT, NEAREST, LIKELIHOOD, LIKELIHOOD_EXCLUDING, DEFINETTI, TOLD)
