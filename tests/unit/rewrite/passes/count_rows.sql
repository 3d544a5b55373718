SELECT sex, COUNT(p) FROM people AS p JOIN regions AS r ON p.region = r.name GROUP BY sex;
SELECT sex, COUNT(*) FROM people AS p JOIN regions AS r ON p.region = r.name GROUP BY sex;

SELECT COUNT(age) FROM people AS age;
SELECT COUNT(age) FROM people AS age;

SELECT MAX(p) FROM people AS p;
-- refused: p stands for complete rows, which the release does not show

SELECT COUNT(p.*) FROM people AS p;
-- refused: count(p.*) is not the same in every DuckDB
