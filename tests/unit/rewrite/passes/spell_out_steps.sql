WITH s AS (SELECT age FROM people WHERE age < 3) SELECT COUNT(*) FROM s AS x JOIN s AS y ON x.age = y.age;
SELECT COUNT(*) FROM (SELECT age FROM people WHERE age < 3) AS "x" JOIN (SELECT age FROM people WHERE age < 3) AS "y" ON x.age = y.age;

WITH s AS (SELECT DISTINCT age FROM people) SELECT COUNT(*) FROM s;
WITH s AS (SELECT DISTINCT age FROM people) SELECT COUNT(*) FROM s;

WITH s AS (SELECT age FROM people), u AS (SELECT COUNT(*) AS n FROM s) SELECT n FROM u;
WITH u AS (SELECT COUNT(*) AS n FROM (SELECT age FROM people) AS "s") SELECT n FROM u;
