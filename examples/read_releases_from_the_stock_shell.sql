-- Analysts need DuckDB's own shell and nothing of this package.
--
-- The data holder, once (the file people.duckdb has the labelled table people):
--   duckdb-anon release people.duckdb people_release "mondrian('people', 10, l := 3)"
--   duckdb-anon publish people.duckdb releases.duckdb
--   duckdb-anon serve releases.duckdb --token-file token.txt
--
-- The analyst, with DuckDB 1.5 and its Quack extension (INSTALL quack), here with the token 'TOKEN':

LOAD quack;
ATTACH 'quack:localhost:9494' AS r (TYPE quack, TOKEN 'TOKEN');

-- A release is a table like any other.
SELECT salary > 50000 AS well_paid, count(*) FROM r.people_release GROUP BY ALL;

-- A query over the original, which is not there, becomes a query over the release: rewrite_query returns its text.
CREATE MACRO ask(q) AS TABLE FROM r.query(q);
FROM ask($$SELECT rewrite_query('SELECT gender, avg(salary) FROM people WHERE age < 40 GROUP BY gender',
                                'people', 'people_release') AS query$$);

-- Anything else is refused: "Authorization failed".
FROM ask('FROM duckdb_settings()');
