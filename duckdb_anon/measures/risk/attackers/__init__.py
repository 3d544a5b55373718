"""Attackers, in the order reports list them; a new one is one file and one line here."""

from __future__ import annotations

from duckdb_anon.measures.risk.attackers.class_membership import TOLD
from duckdb_anon.measures.risk.attackers.definetti import DEFINETTI
from duckdb_anon.measures.risk.attackers.exact import EXACT
from duckdb_anon.measures.risk.attackers.likelihood import LIKELIHOOD
from duckdb_anon.measures.risk.attackers.likelihood_excluding import LIKELIHOOD_EXCLUDING
from duckdb_anon.measures.risk.attackers.nearest import NEAREST
from duckdb_anon.measures.risk.attacks import Attacker

ATTACKERS: tuple[Attacker, ...] = (EXACT, NEAREST, LIKELIHOOD, LIKELIHOOD_EXCLUDING, DEFINETTI, TOLD)
