"""The dialect duckdb+anon through SQLAlchemy, pandas and a JupySQL notebook."""

import pandas as pd
import pytest

sa = pytest.importorskip("sqlalchemy", reason="the bi extra is not installed")
pytest.importorskip("duckdb_engine", reason="the bi extra is not installed")

PEOPLE = """
create table people as select i % 50 as age, i % 3 as sex, 'd' || (i % 7) as disease, i % 900 as cost
from range(1000) t(i)
"""
LABELS = (
    "comment on column people.age is 'anon: quasi'", "comment on column people.sex is 'anon: quasi'",
    "comment on column people.disease is 'anon: sensitive'", "comment on column people.cost is 'anon: insensitive'",
)  # fmt: skip


@pytest.fixture
def engine(tmp_path):
    """An engine over a file with the labelled table people."""
    made = sa.create_engine(f"duckdb+anon:///{tmp_path / 'p.duckdb'}")
    with made.begin() as connection:
        for statement in (PEOPLE, *LABELS):
            connection.execute(sa.text(statement))
    yield made
    made.dispose()


def test_url_finds_the_dialect_and_every_pooled_connection_has_the_functions(engine):
    assert (engine.dialect.name, engine.dialect.driver) == ("duckdb", "anon")
    with engine.connect() as first, engine.connect() as second:
        for connection in (first, second):
            assert connection.execute(sa.text("select count(*) > 10 from anon_functions()")).scalar() is True


def test_wrong_parameter_name_is_answered_with_the_nearest(engine):
    with engine.connect() as connection, pytest.raises(sa.exc.DBAPIError, match="did you mean 'delta'"):
        connection.execute(sa.text("from muco('people', delte := 0.2)"))


def test_release_is_made_and_measured_in_sql(engine):
    with engine.begin() as connection:
        connection.execute(sa.text("create table release as from muco('people', 0.2, row_id := true)"))
    with engine.connect() as connection:
        assert connection.execute(sa.text("select count(*) from release")).scalar() == 1000
        query = "select sum(cost) from people where age < 25"
        call = sa.text("from relative_error(:query, 'people', 'release')")
        answer = connection.execute(call, {"query": query}).mappings().one()
        assert answer["original"] == connection.execute(sa.text(query)).scalar()
        assert abs(answer["relative_error"]) < 0.2


def test_pandas_reads_functions_and_writes_tables(engine):
    with engine.begin() as connection:
        frame = pd.read_sql(sa.text("select age, disease from muco('people', 0.5)"), connection)
        frame.to_sql("kept", connection, index=False)
    assert len(frame) == 1000
    with engine.connect() as connection:
        assert connection.execute(sa.text("select k >= 1 from k_anonymity('kept', ['age'])")).scalar() is True


def test_tables_and_columns_are_reflected(engine):
    inspector = sa.inspect(engine)
    assert inspector.get_table_names() == ["people"]
    columns = {column["name"]: column for column in inspector.get_columns("people")}
    assert list(columns) == ["age", "sex", "disease", "cost"]
    assert isinstance(columns["age"]["type"], sa.BigInteger) and isinstance(columns["disease"]["type"], sa.String)
    assert columns["age"]["comment"] == "anon: quasi"
    table = sa.Table("people", sa.MetaData(), autoload_with=engine)
    with engine.connect() as connection:
        assert connection.execute(sa.select(sa.func.count()).where(table.c.age < 25)).scalar() == 500


def test_comments_and_options_of_tables_are_reflected(engine):
    with engine.begin() as connection:
        connection.execute(sa.text("comment on table people is 'made up'; create view young as from people"))
    inspector = sa.inspect(engine)
    assert inspector.get_table_comment("people") == {"text": "made up"}
    assert inspector.get_table_comment("young") == {"text": None}
    assert inspector.get_table_options("people") == {}
    assert sa.Table("people", sa.MetaData(), autoload_with=engine).comment == "made up"
    for asked in (inspector.get_table_comment, inspector.get_table_options):
        with pytest.raises(sa.exc.NoSuchTableError, match="nowhere"):
            asked("nowhere")


def test_primary_keys_and_tables_of_other_schemas_are_reflected(engine):
    with engine.begin() as connection:
        connection.execute(sa.text("create schema kept; create table kept.keyed (a int, b int, primary key (b, a))"))
    inspector = sa.inspect(engine)
    assert inspector.get_pk_constraint("keyed", schema="kept")["constrained_columns"] == ["b", "a"]
    assert inspector.get_pk_constraint("people")["constrained_columns"] == []
    assert [column["name"] for column in inspector.get_columns("keyed", schema="kept")] == ["a", "b"]


def test_read_only_database_works(engine):
    path = engine.url.database
    engine.dispose()
    reader = sa.create_engine(f"duckdb+anon:///{path}", connect_args={"read_only": True})
    with reader.connect() as connection:
        assert connection.execute(sa.text("select count(*) from muco('people', 0.5)")).scalar() == 1000
    reader.dispose()
