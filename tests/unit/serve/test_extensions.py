"""Where serve finds Quack, and what it says where there is none or a newer DuckDB wrote the file."""

from pathlib import Path

import duckdb
import pytest

import duckdb_anon
from duckdb_anon.model.errors import AnonError, without_values
from duckdb_anon.serve.server import EXTENSIONS, load_quack


@pytest.mark.parametrize("folder", ["", f"v{duckdb.__version__}/some_platform"])
def test_a_folder_of_extensions_is_read_before_all_others(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Flat, or laid out as DuckDB's own folder."""
    monkeypatch.setenv(EXTENSIONS, str(tmp_path))
    place = tmp_path / folder
    place.mkdir(parents=True, exist_ok=True)
    (place / "httpfs.duckdb_extension").write_text("no extension")
    with duckdb.connect() as con, pytest.raises(AnonError) as raised:
        load_quack(con)
    assert raised.value.code == "extension-missing"
    for named in (str(place / "httpfs.duckdb_extension"), EXTENSIONS, "quack.duckdb_extension", "INSTALL httpfs"):
        assert named in str(raised.value)


def test_a_file_of_a_newer_duckdb_is_named_with_what_converts_it(tmp_path: Path) -> None:
    file = tmp_path / "newer.duckdb"
    duckdb.connect(str(file)).close()
    content = bytearray(file.read_bytes())
    assert content[8:12] == b"DUCK"
    content[12:20] = (7777).to_bytes(8, "little")  # the storage version
    file.write_bytes(content)
    with pytest.raises(duckdb.Error, match="computed checksum") as corrupt:  # DuckDB says what the first bytes must be
        duckdb.connect(str(file))
    checksum = int(str(corrupt.value).split("computed checksum ")[1].split()[0])
    file.write_bytes(checksum.to_bytes(8, "little") + content[8:])
    with pytest.raises(AnonError) as raised:
        duckdb_anon.connect(str(file))
    with duckdb.connect() as con, pytest.raises(duckdb.Error) as attached:
        con.execute(f"attach '{file}' as newer")
    assert raised.value.code == "newer-file" and str(file) in str(raised.value)
    for message in (str(raised.value), without_values(attached.value)):
        assert "7777" in message and "COPY FROM DATABASE" in message and "STORAGE_VERSION" in message


def test_labels_survive_the_conversion(tmp_path: Path) -> None:
    with duckdb_anon.connect(str(tmp_path / "old.duckdb")) as con:
        con.execute("create table t as select 1 as age; comment on column t.age is 'anon: quasi'")
    with duckdb.connect() as con:
        con.execute(
            f"attach '{tmp_path}/old.duckdb' as old (read_only); attach '{tmp_path}/new.duckdb' as new "
            "(storage_version 'v1.5.0'); copy from database old to new"
        )
        assert con.execute(
            "select comment from duckdb_columns() where database_name = 'new' and column_name = 'age'"
        ).fetchall() == [("anon: quasi",)]
