"""A table that lives: records, and others that arrive later."""

import pytest


@pytest.fixture
def people(con):
    """600 labelled records in `people`, as many others in `pool`."""
    for name, first, seed in (("people", 0, 1), ("pool", 1000, 2)):
        con.execute(f"""create table {name} as select {first} + row_number() over () as person_id, age, gender, education, salary
            from anon_sample('census', 600, seed := {seed})""")
    for column in ("age", "gender", "education"):
        con.execute(f"comment on column people.{column} is 'anon: quasi'")
    con.execute("comment on column people.salary is 'anon: sensitive'")
    return con
