"""Threads of a server open and close connections of their own to one database, all at the same time."""

from __future__ import annotations

import threading
from pathlib import Path

import duckdb_anon

QUERY = "select sex, count(*) from people where age < 20 group by sex"


def test_a_call_is_planned_while_other_connections_close(tmp_path: Path) -> None:
    file = str(tmp_path / "people.duckdb")
    kept = duckdb_anon.connect(file)
    kept.execute("create table people as select i % 50 as age, i % 2 as sex, i % 5 as s from range(300) t(i)")
    kept.execute("comment on column people.age is 'anon: quasi'; comment on column people.sex is 'anon: quasi'")
    kept.execute("comment on column people.s is 'anon: sensitive'")
    duckdb_anon.release(kept, "boxes", "mondrian('people', 5)")
    (expected,) = kept.execute("select rewrite_query(?, 'people', 'boxes')", [QUERY]).fetchall()
    kept.close()
    found: list[object] = []

    def serve() -> None:
        for _ in range(4):
            con = duckdb_anon.connect(file)
            try:
                found.extend(con.execute("select rewrite_query(?, 'people', 'boxes')", [QUERY]).fetchall())
            except Exception as error:
                found.append(error)
            finally:
                con.close()

    threads = [threading.Thread(target=serve) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 16
