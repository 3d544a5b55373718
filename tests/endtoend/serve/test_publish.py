"""publish: what a file for analysts holds, and what is never put into one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

import duckdb_anon
from duckdb_anon.model.errors import AnonError
from duckdb_anon.serve.publish import publish


def test_published_file_holds_releases_and_the_originals_columns_only(folder: Path) -> None:
    con = duckdb.connect(str(folder / "releases.duckdb"), read_only=True)
    tables = dict(con.execute("select table_name, estimated_size from duckdb_tables()").fetchall())
    assert tables == {"boxes": 2000, "covered": 2000}
    with pytest.raises(duckdb.Error, match=r"patients is not in this file.*estimate"):
        con.execute("select count(*) from patients").fetchall()
    described = {name: kind for name, kind, *_ in con.execute("describe patients").fetchall()}
    assert described == {"age": "BIGINT", "sex": "VARCHAR", "cost": "BIGINT", "disease": "VARCHAR", "ward": "VARCHAR"}
    con.close()
    assert b"top secret" not in (folder / "releases.duckdb").read_bytes()
    assert b"name 1999" not in (folder / "releases.duckdb").read_bytes()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("create view v as from muco('patients', 0.5); comment on view v is 'anon: release'", "is a view"),
        (
            "create table r as from muco('patients', 0.5, row_id := true); comment on table r is 'anon: release'",
            "row_id",
        ),
        ("drop table covered; drop table boxes", "no table is declared a release"),
        (
            "create schema s; create table s.boxes as select 1 as a; comment on table s.boxes is 'anon: release'",
            "two releases",
        ),
    ],
)
def test_what_must_not_be_published_is_refused_and_nothing_is_written(
    tmp_path: Path, tables: Callable[[duckdb.DuckDBPyConnection], None], change: str, message: str
) -> None:
    con = duckdb_anon.connect(str(tmp_path / "o.duckdb"))
    tables(con)
    con.execute(change)
    con.close()
    with pytest.raises(AnonError, match=message):
        publish(str(tmp_path / "o.duckdb"), str(tmp_path / "r.duckdb"))
    assert [path.name for path in tmp_path.iterdir()] == ["o.duckdb"]


def test_existing_file_is_replaced_only_when_asked(folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "kept.duckdb"
    target.write_text("something else")
    with pytest.raises(AnonError, match="--replace"):
        publish(str(folder / "original.duckdb"), str(target))
    assert target.read_text() == "something else"
    assert publish(str(folder / "original.duckdb"), str(target), replace=True, independent=True).releases == {
        "boxes": 2000,
        "covered": 2000,
    }


def test_original_that_does_not_exist_is_named(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(AnonError, match="did you mean 'patients'"):
        publish(str(folder / "original.duckdb"), str(tmp_path / "r.duckdb"), ["patient"])
