SELECT age, sex, COUNT(*) FROM people GROUP BY ROLLUP (1, 2);
SELECT age, sex, COUNT(*) FROM people GROUP BY ROLLUP (age, sex);

SELECT age + 1 AS a, COUNT(*) FROM people GROUP BY CUBE (a);
SELECT age + 1 AS a, COUNT(*) FROM people GROUP BY CUBE (age + 1);

SELECT 7, COUNT(*) FROM people GROUP BY ROLLUP (age);
SELECT COALESCE(7), COUNT(*) FROM people GROUP BY ROLLUP (age);

SELECT COUNT(*) FROM people GROUP BY ROLLUP (7);
-- refused: GROUP BY position 7 is not in the select list
