SELECT COUNT(*) FROM people WHERE age IN (VALUES (1), (2));
SELECT COUNT(*) FROM people WHERE age IN (SELECT "column0" FROM (VALUES (1), (2)) AS "listed"("column0"));

SELECT COUNT(*) FROM people WHERE (age, sex) IN (VALUES (1, 'F'));
SELECT COUNT(*) FROM people WHERE (age, sex) IN (SELECT "column0", "column1" FROM (VALUES (1, 'F')) AS "listed"("column0", "column1"));
