"""Rewritten queries are printed where sqlglot is installed in its compiled form too, whose classes take no subclass."""

from __future__ import annotations

from typing import Any

import pytest
import sqlglot

from duckdb_anon.rewrite.query import indentation


def test_without_a_layout_of_its_own_the_text_says_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    query = sqlglot.parse_one("with s as (select a::bigint as b from t where a < 3) select sum(b) from s", "duckdb")
    own = indentation.laid_out(query)

    def refused(*_: Any, **__: Any) -> None:
        raise TypeError("interpreted classes cannot inherit from compiled")

    monkeypatch.setattr(indentation._Layout, "__init__", refused)
    text = indentation.laid_out(query)
    assert text != own
    assert sqlglot.parse_one(text, "duckdb") == sqlglot.parse_one(own, "duckdb") == query
