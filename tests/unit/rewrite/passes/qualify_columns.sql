-- after: name_tables
SELECT age AS a, COUNT(*) FROM people GROUP BY a HAVING COUNT(*) > 1 ORDER BY 2;
SELECT "people"."age" AS "a", COUNT(*) AS "_col_1" FROM "$0" AS "people" GROUP BY "people"."age" HAVING COUNT(*) > 1 ORDER BY "_col_1";

SELECT sex, climate FROM people, regions WHERE region = name;
SELECT "people"."sex" AS "sex", "regions"."climate" AS "climate" FROM "$0" AS "people", "$1" AS "regions" WHERE "people"."region" = "regions"."name";

SELECT COUNT(*) FROM people WHERE agee < 3;
-- refused: the query could not be bound
