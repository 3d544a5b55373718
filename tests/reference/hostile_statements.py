"""Statements that read something else than the table people: other tables, files, settings, and other kinds of statements."""

from itertools import product

OTHERS = [
    "boxes", "main.boxes", '"boxes"', "published.main.boxes", "memory.main.boxes", "memory.main.people", "main._anon_drawn",
    "read_csv('/etc/passwd')", "read_text('/etc/passwd')", "read_blob('/*')", "glob('/*')", "'/etc/passwd'",
    "'people.parquet'", "sniff_csv('/etc/passwd')", "duckdb_settings()", "duckdb_secrets()", "duckdb_functions()",
    "duckdb_variables()", "duckdb_memory()", "duckdb_extensions()", "pg_catalog.pg_settings", "sqlite_master",
    "query('from boxes')", "query_table('boxes')", "impute('boxes')", "estimate('from people', 'boxes')",
    "describe_release('boxes')", "muco('boxes', 0.2)", "pragma_database_size()", "quack_active_connections()",
    "json_execute_serialized_sql('{}')", "duckdb_logs()", "people at (version => 1)",
]  # fmt: skip
AROUND = [
    "from {}", "select count(*) from people, {}", "select (select count(*) from {})", "with q as (from {}) from q",
    "with people as (from {}) select count(*) from people", "describe from {}", "select count(*) from people, lateral (from {})",
    "select sex, count(*) from people where exists (from {}) group by sex", "from people join {} on true",
    "select count(*) from people union all select count(*) from {}", "from (from {}) pivot (count(*) for sex in ('F'))",
]  # fmt: skip
CALLS = [
    "getenv('HOME')", "current_setting('temp_directory')", "getvariable('x')", "current_query()", "nextval('s')",
    "_anon_plan({function: 'muco'})", "_anon_impute({call: 'x'})",
    "_anon_instance()", "rewrite_query('select 1', 'people', 'boxes')", "system.main.sum(1)", "in_search_path('a', 'b')",
]  # fmt: skip
CALLING = [
    "select {}", "select count({}) from people", "select sex, max({}) from people group by sex", "from people where {}",
]  # fmt: skip
KINDS = [
    "set threads = 1", "attach 'x' as o", "copy people to 'x.csv'", "create table t as from people", "drop table people",
    "insert into people values (1)", "delete from people", "summarize people", "explain select count(*) from people",
    "select 1; select 2", "prepare p as from people", "call pragma_version()", "pragma database_list", "install httpfs",
    "from people tablesample reservoir(3 rows), boxes", "",
    "select * from (with boxes as (select 1 as x) from boxes) as a, boxes",
    "with boxes as (select 1 as x) from boxes",
]  # fmt: skip
HOSTILE = [
    *(around.format(other) for around, other in product(AROUND, OTHERS)),
    *(calling.format(call) for calling, call in product(CALLING, CALLS)),
    *KINDS,
]
