"""The statement guard: what an analyst may run, and attempts to get past it."""

import subprocess
import sys
from pathlib import Path

import pytest

from duckdb_anon.serve.guard import Guard, Refused

ALLOWED = [
    "from visits",
    "select sex, count(*), avg(cost) from visits where age between 20 and 30 group by sex order by 2 desc limit 5",
    "with old as (select * from visits where age > 60) select v.sex, quantile_cont(o.cost, 0.5) "
     "from visits v join old o using (age) group by all having count(*) > 1",
    'select "age", sum(cost) over (partition by sex order by age) from main."visits"',
    "select unnest(ward) as w, count(*) from visits group by w",
    "select list_transform([1, 2], lambda x: x + 1), case when age > 3 then 'a' else 'b' end, age::varchar from visits",
    "from visits pivot (sum(cost) for sex in ('f', 'm'))",
    "select * from (values (1), (2)) t(x) union all select age from visits",
    "select (select max(age) from visits), age in (select age from visits) from VISITS",
    "select date_trunc('month', day) as m, regexp_replace(sex, 'f', 'w'), cost % 2 from visits -- a note",
    "select rewrite_query('select sex, sum(cost) from patients group by sex', 'patients', 'visits')",
    "from anatomy_st('visits')", "from anon_functions()",
    "from impute('visits', 10, original := 'patients', seed := 1, columns := ['age'])", "from estimate('select count(*) from patients', 'visits')",
]  # fmt: skip

CATALOG = [
    "SELECT schema_name, sql, 'table'\nFROM duckdb_tables()\nUNION ALL\nSELECT schema_name, view_name, 'view'\n"
     "FROM duckdb_views()\n\t",
    "from information_schema.tables", "from pg_catalog.pg_class", "from pragma_table_info('visits')", "show tables",
    "show all tables", "describe visits", "describe select sex, count(*) from visits group by sex",
]  # fmt: skip

REFUSED = [
    "", "not sql at all", "select 1; drop table visits", "from patients_secret", "from published.main.visits",
    "from memory.information_schema.tables", "from pragma_table_info('(from other)')",
    "select * from duckdb_tables(), visits", "select (select count(*) from visits), * from (show tables)",
    "from impute('notes', 10)", "from impute('visits', 10, original := '(select 1)')",
    "from impute('visits', 10, original := 'notes')", "from impute('visits', 10, person := 'cost')", "from impute('visits')",
    "from estimate('from duckdb_tables()', 'visits')", "from estimate('select 1', 'visits', original := 'visits')",
    'from "duckdb_settings"()', "from query_table(['visits', 'patients'])", "from visits; drop view visits",
    "from \"read_csv\"('/etc/passwd')", "explain analyze from read_csv('/etc/passwd')", "from duckdb_databases",
    "copy (select 1) to 'out.csv'", "create temp macro m(x) as x", "update visits set age = 1", "execute p", "select ?",
    "load httpfs", "use memory", "begin", "export database 'x'",
    "with visits as (from read_csv('/etc/passwd')) from visits",
    "with duckdb_tables as (select 1 as x) select * from duckdb_tables", 'with "x.csv" as (select 1) from "x.csv"',
    "with recursive r as (select 1 as x union all select x + 1 from r) from r", "select * from query('select ' || '1')",
    "select _anon_run({call: 'x'})", "from sql_auto_complete('s')", "from range(10)",
    "select rewrite_query('select * from read_csv(''x'')', 'patients', 'visits')",
    "select rewrite_query('select 1; select 2', 'patients', 'visits')",
    "select rewrite_query('select 1', '(select * from read_csv(''x''))', 'visits')",
    "select rewrite_query(sex, 'patients', 'visits') from visits",
    "from anatomy_st('(from read_csv(''/etc/passwd''))')", "from anatomy_st('other')",
    "from anatomy_st(release := '(from other)')", "from anatomy_st(sensitive := 'visits', release := '(from other)')",
    "select rewrite_query(release := 'visits', original := 'visits', query := 'from read_csv(''x'')')",
    "select rewrite_query(bounds := 'visits', 'select 1', 'patients', 'visits')", "values (getenv('HOME'))",
]  # fmt: skip


SHORT_OF_MEMORY = """
import resource, sys
from pathlib import Path
from duckdb_anon.serve.guard import Guard
guard = Guard(["visits"])
guard.check("from visits")
lines = Path("/proc/self/status").read_text().splitlines()
held = next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmData"))
resource.setrlimit(resource.RLIMIT_DATA, (held + (int(sys.argv[1]) << 20), resource.RLIM_INFINITY))
try:
    guard.check(f"select count(*) from visits where cost in ({', '.join(map(str, range(1_000_000)))})")
except MemoryError:
    print("MemoryError")
resource.setrlimit(resource.RLIMIT_DATA, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
print(guard.check("from visits").reads)
"""


@pytest.fixture(scope="module")
def guard() -> Guard:
    """A guard over two published tables."""
    return Guard(["visits", "patients"])


@pytest.mark.parametrize("statement", ALLOWED)
def test_reading_published_tables_is_allowed(guard: Guard, statement: str) -> None:
    assert not guard.check(statement).reads_catalog


@pytest.mark.parametrize("statement", REFUSED)
def test_everything_else_is_refused(guard: Guard, statement: str) -> None:
    with pytest.raises(Refused):
        guard.check(statement)


@pytest.mark.parametrize("statement", CATALOG)
def test_statements_over_the_catalog_are_told_from_those_over_rows(guard: Guard, statement: str) -> None:
    assert guard.check(statement).reads_catalog


def test_deeply_nested_text_is_refused_and_harms_nothing(guard: Guard) -> None:
    for text in ("select " + "abs(" * 20000 + "1" + ")" * 20000, "select " + "(select " * 3000 + "1" + ")" * 3000):
        with pytest.raises((Refused, RecursionError)):
            guard.check(text)
    guard.check("from visits")


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="what a process holds is read from /proc")
@pytest.mark.parametrize("megabytes", [20, 200, 1000])
def test_statement_that_memory_does_not_suffice_to_read_is_not_called_refused(megabytes: int) -> None:
    # DuckDB draws a progress bar where a statement takes longer than two seconds
    done = subprocess.run([sys.executable, "-c", SHORT_OF_MEMORY, str(megabytes)], capture_output=True, text=True)
    assert done.stdout.split()[-2:] == ["MemoryError", "frozenset({'visits'})"], done.stderr
