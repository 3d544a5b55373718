"""What a text calls, by DuckDB's own parser: one table function and nothing around it, or something else."""

from __future__ import annotations

import json

import duckdb

from duckdb_anon.model.identifier_case import fold


def function_called(con: duckdb.DuckDBPyConnection, call: str) -> str | None:
    """Name of the one table function that `FROM call` calls, None where it does anything else.

    Args:
        con: an open connection; nothing is run on it but the parser.
        call: text after FROM, "muco('people', 0.2)".

    >>> con = duckdb.connect()
    >>> function_called(con, "Muco('people', 0.2)"), function_called(con, "muco('people', 0.2) LIMIT 3")
    ('muco', None)
    """
    try:
        if len(duckdb.extract_statements(f"from {call}")) != 1:
            return None
        text = con.execute("select json_serialize_sql(?::varchar)", [f"from {call}\n"]).fetchall()[0][0]
    except duckdb.Error:
        return None
    answer = json.loads(text)
    node = answer["statements"][0]["node"] if not answer.get("error") else {}
    source = node.get("from_table", {})
    function = source.get("function", {})
    plain = [item.get("class") for item in node.get("select_list", [])] == ["STAR"]
    around = (
        node.get("where_clause") or node.get("modifiers") or node.get("sample") or node.get("cte_map", {}).get("map")
    )
    if source.get("type") != "TABLE_FUNCTION" or not plain or around:
        return None
    return fold(str(function.get("function_name", "")))
