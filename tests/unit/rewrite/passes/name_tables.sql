SELECT COUNT(*) FROM main.People AS p JOIN regions ON p.region = regions.name WHERE main.people.age < 3;
SELECT COUNT(*) FROM "$0" AS p JOIN "$1" AS "regions" ON p.region = regions.name WHERE people.age < 3;

SELECT COUNT(*) FROM people AS p(a, b);
SELECT COUNT(*) FROM (SELECT "age" AS "a", "sex" AS "b", "Region" AS "Region", "cost" AS "cost", "born" AS "born" FROM "$0" AS p) AS p;

WITH people AS (SELECT 1 AS age) SELECT age FROM people;
WITH people AS (SELECT 1 AS age) SELECT age FROM people;

SELECT a FROM regions AS r(a, b, c);
-- refused: r names 3 columns
