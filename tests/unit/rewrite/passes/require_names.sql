SELECT "t"."a" AS "a", COUNT(*) AS "n" FROM "t" GROUP BY "t"."a" HAVING "n" > 1;
SELECT "t"."a" AS "a", COUNT(*) AS "n" FROM "t" GROUP BY "t"."a" HAVING "n" > 1;

SELECT COUNT(*) AS "count" FROM "t" HAVING "coun" > 1;
-- refused: there is no column 'coun' (did you mean 'count'?)
