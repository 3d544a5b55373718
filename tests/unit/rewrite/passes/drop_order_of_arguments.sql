SELECT SUM(age ORDER BY sex), STRING_AGG(sex, ',' ORDER BY age) FROM people;
SELECT SUM(age), LISTAGG(sex, ',' ORDER BY age) FROM people;
