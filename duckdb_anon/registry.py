"""Every SQL function of the package, in the order `anon_functions()` lists them."""

from __future__ import annotations

from duckdb_anon.methods.muco import METHOD as MUCO
from duckdb_anon.methods.muco import TABLES as MUCO_TABLES
from duckdb_anon.methods.one_to_m_generalize import METHOD as ONE_TO_M
from duckdb_anon.spec import Entry

METHODS: tuple[Entry, ...] = (MUCO, ONE_TO_M)
MEASURES: tuple[Entry, ...] = (MUCO_TABLES,)
PURE_FILES: tuple[str, ...] = ()
ENTRIES = METHODS + MEASURES
