SELECT "q"."a" AS "a", COUNT(*) AS "n" FROM (SELECT "t"."a" AS "a" FROM "t" AS "t" WHERE "t"."b" > 1) AS "q" GROUP BY "q"."a";
SELECT "t"."a" AS "a", COUNT(*) AS "n" FROM "t" AS "t" WHERE "t"."b" > 1 GROUP BY "t"."a";

SELECT "q"."k" AS "k" FROM "u" AS "u" LEFT JOIN (SELECT "t"."a" AS "a", 1 AS "k" FROM "t" AS "t") AS "q" ON "u"."a" = "q"."a";
SELECT "q"."k" AS "k" FROM "u" AS "u" LEFT JOIN (SELECT "t"."a" AS "a", 1 AS "k" FROM "t" AS "t") AS "q" ON "u"."a" = "q"."a";

SELECT "q"."a" AS "a" FROM "u" AS "u" LEFT JOIN (SELECT "t"."a" AS "a" FROM "t" AS "t") AS "q" ON "u"."a" = "q"."a";
SELECT "t"."a" AS "a" FROM "u" AS "u" LEFT JOIN "t" AS "t" ON "u"."a" = "t"."a";
