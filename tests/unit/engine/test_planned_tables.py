"""A call is planned with what is committed, and refused where it runs in a transaction that sees something else."""

import threading

import duckdb
import pytest

import duckdb_anon

ROWS = "select 20 + range * 7 % 40 as age, range % 9 as dis, 'note ' || range % 50 as note, range % 2 as sex"
LABELS = {"age": "quasi", "dis": "sensitive", "note": "insensitive"}
CALLS = {
    "method": "mondrian('{t}', 5)",
    "measure": "k_anonymity('{t}')",
    "report": "population_uniqueness('{t}', 0.1)",
    "two tables": "linkage_risk('{t}', 'r', seed := 1)",
    "estimate": "estimate('select count(*) from {t} where age < 30', 'r', original := '{t}')",
    "task": "anon_release('x', $$mondrian('{t}', 5)$$, independent := true)",
}


@pytest.fixture
def table(con):
    con.execute(f"create table t as {ROWS} from range(400); create view v as from t")
    for name in "tv":
        for column, role in LABELS.items():
            con.execute(f"comment on column {name}.{column} is 'anon: {role}'")
    con.execute("create table r as from mondrian('t', 5)")
    return con


CHANGES = {
    "a label": "comment on column t.note is 'anon: identifier'",
    "a new label": "comment on column t.sex is 'anon: quasi'",
    "a name": "alter table t rename note to nota",
    "a name that is read": "alter table t rename age to years",
    "names that change places": "alter table t rename note to n2; alter table t rename sex to note",
    "a type": "alter table t alter age type varchar",
    "a column less": "alter table t drop note",
    "another table": f"drop view v; drop table t; create table t as {ROWS} from range(9); create view v as from t",
}


@pytest.mark.parametrize(
    ("call", "change"), [*(("method", change) for change in CHANGES), *((call, "a label") for call in CALLS)]
)
def test_a_call_in_a_transaction_that_changed_its_table_says_commit_first(table, call, change):
    table.execute(f"begin; {CHANGES[change]}")
    with pytest.raises(duckdb.Error, match=r"t\..*\[commit-first\]"):
        table.execute(f"from {CALLS[call].format(t='t')}").fetchall()
    table.execute("rollback")
    assert table.execute(f"from {CALLS[call].format(t='t')}").fetchall()


@pytest.mark.parametrize("change", ["a label", "another table"])
@pytest.mark.parametrize("source", ["v", "(select age, dis, note from v)"])
def test_what_a_view_or_query_reads_is_compared_too(table, source, change):
    table.execute(f"begin; {CHANGES[change]}")
    with pytest.raises(duckdb.Error, match="commit-first"):
        table.execute(f"from mondrian('{source}', 5, qi := ['age'], sensitive := 'dis', keep := ['note'])").fetchall()


@pytest.mark.parametrize("call", ["method", "measure", "two tables"])
@pytest.mark.parametrize("name", ["t", "v"])
def test_what_hides_a_table_is_refused_by_name(table, name, call):
    text = CALLS[call].format(t=name)
    hiding = f"{ROWS} from range(50)"
    with pytest.raises(duckdb.Error, match=rf"CTE hides .*{name}.*\[commit-first\]"):
        table.execute(f"with {name} as ({hiding}) from {text}").fetchall()
    for made in (f"create temp table {name} as {hiding}", f"create temp view {name} as {hiding}"):
        table.execute(made)
        with pytest.raises(duckdb.Error, match=rf"temp\.main\.{name} .*\[commit-first\]"):
            table.execute(f"from {text}").fetchall()
        table.execute(f"drop {made.split()[2]} {name}")
    table.register(name, table.execute(hiding).df())
    with pytest.raises(duckdb.Error, match="commit-first"):
        table.execute(f"from {text}").fetchall()


def test_a_cte_that_a_query_reads_is_refused(table):
    with pytest.raises(duckdb.Error, match="commit-first"):
        table.execute(
            f"with t as ({ROWS} from range(50)) from mondrian('(select * from t)', 5, qi := ['age'], sensitive := 'dis')"
        ).fetchall()


@pytest.mark.parametrize("outer", ["select count(*) from ({})", "select 1 from ({}) where age is not null limit 1"])
@pytest.mark.parametrize("through", ["", "a view", "a prepared statement"])
def test_no_way_to_run_a_call_leaves_the_check_out(table, outer, through):
    statement = outer.format("from mondrian('t', 5)")
    if through == "a view":
        table.execute(f"create temp view planned as {statement}")
        statement = "from planned"
    if through == "a prepared statement":
        table.execute(f"prepare planned as {statement}")
        statement = "execute planned"
    for prefix in ("", "create table made as ", "explain analyze "):
        if not (prefix.startswith("create") and through == "a prepared statement"):
            table.execute(f"begin; {CHANGES['a label']}")
            with pytest.raises(duckdb.Error, match="commit-first"):
                table.execute(prefix + statement).fetchall()
            table.execute("rollback")


@pytest.mark.parametrize(
    ("source", "change"),
    [
        ("t", "delete from t where age < 30"),
        ("v", "update t set dis = 1"),
        ("(select * from v)", "insert into t from t"),
    ],
)
def test_what_writes_on_a_connection_of_its_own_refuses_rows_that_are_not_committed(table, source, change):
    roles = "qi := ['age'], sensitive := 'dis'"
    call = f"from anon_release('x', $$mondrian('{source}', 5, {roles})$$)"
    table.execute(f"begin; {change}")
    with pytest.raises(duckdb.Error, match="commit-first"):
        table.execute(call).fetchall()
    table.execute("rollback")
    with pytest.raises(duckdb.Error, match="x does not exist"):
        table.execute("from x")
    assert table.execute(call).fetchall()


def test_a_release_from_a_transaction_that_changed_nothing_of_its_table_outlives_it(table):
    table.execute("begin; create table other as select 1 as x")
    table.execute("from anon_release('x', $$mondrian('t', 5, qi := ['age'], sensitive := 'dis')$$)")
    table.execute("rollback")
    counts = [table.execute(f"select count(*) from {name}").fetchall() for name in ("t", "x")]
    assert counts[0] == counts[1]


def test_a_database_is_not_released_in_a_transaction_that_deleted_individuals(con):
    con.execute("create table p as select range as pid, 20 + range * 7 % 40 as age from range(200)")
    con.execute("comment on column p.age is 'anon: quasi'")
    call = "from anon_release_database(['p'], individuals := 'p', key := 'pid', k := 2, independent := true)"
    con.execute("begin; delete from p where pid > 100")
    with pytest.raises(duckdb.Error, match="commit-first"):
        con.execute(call)
    con.execute("rollback")
    assert con.execute(call).fetchall()


def test_changes_of_other_tables_and_new_tables_do_not_matter(table):
    table.execute("begin; create table other as select 1 as x; comment on column r.age is 'anon: quasi'")
    table.execute("create table one as from mondrian('t', 5); create table two as from mondrian('v', 5); commit")
    assert table.execute("select count(*) from one").fetchall() == table.execute("select count(*) from two").fetchall()


@pytest.mark.parametrize("label", ["identifier", "person"])
def test_labels_of_a_table_that_the_planner_does_not_see_hold_where_the_call_runs(con, label):
    con.execute(f"create temp table u as {ROWS} from range(400)")
    call = "from mondrian('u', 5, qi := ['age'], sensitive := 'dis', keep := ['note'])"
    assert con.execute(call).fetchall()
    con.execute(f"comment on column u.note is 'anon: {label}'")
    with pytest.raises(duckdb.Error, match=rf"note is labelled {label}.*\[commit-first\]"):
        con.execute(call).fetchall()
    assert con.execute("from mondrian('u', 5, qi := ['age'], sensitive := 'dis', person := 'note')").fetchall()


def _race(database: str, rounds: int) -> list[str]:
    """One connection relabels, renames and deletes, another one releases; what of the withheld came out."""
    con = duckdb_anon.connect(database)
    con.execute(f"create table t as select *, 'secret ' || range as secret from ({ROWS}, range from range(60))")
    for column, role in {**LABELS, "note": "insensitive", "secret": "identifier"}.items():
        con.execute(f"comment on column t.{column} is 'anon: {role}'")
    found: list[str] = []
    over = threading.Event()

    def change() -> None:
        other = con.cursor()
        withhold = "begin; comment on column t.note is 'anon: identifier'; update t set note = 'withheld'; commit"
        give = "begin; update t set note = 'n'; comment on column t.note is 'anon: insensitive'; commit"
        swap = (
            "begin; alter table t rename note to x; alter table t rename secret to note; "
            "alter table t rename x to secret; "
            "comment on column t.note is 'anon: identifier'; comment on column t.secret is 'anon: insensitive'; commit"
        )
        back = (
            "begin; alter table t rename note to x; alter table t rename secret to note; "
            "alter table t rename x to secret; "
            "comment on column t.secret is 'anon: identifier'; comment on column t.note is 'anon: insensitive'; commit"
        )
        while not over.is_set():
            for statement in (withhold, give, swap, back):
                try:
                    other.execute(statement)
                except duckdb.Error:
                    other.execute("rollback")

    changing = threading.Thread(target=change)
    changing.start()
    try:
        for _ in range(rounds):
            try:
                rows = con.execute("from mondrian('t', 5)").fetchall()
            except duckdb.Error as error:
                if "commit-first" not in str(error):
                    found.append(str(error))
                continue
            found += [str(row) for row in rows if "withheld" in str(row) or "secret " in str(row)][:1]
    finally:
        over.set()
        changing.join()
    return found


def test_nothing_withheld_comes_out_while_another_connection_relabels(tmp_path):
    assert _race(str(tmp_path / "r.db"), 60) == []


@pytest.mark.campaign
@pytest.mark.weekly
def test_nothing_withheld_comes_out_in_two_thousand_releases(tmp_path):
    assert _race(str(tmp_path / "r.db"), 2000) == []
