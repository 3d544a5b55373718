SELECT sex, mean(age) AS a FROM People WHERE AGE < 30 GROUP BY ALL ORDER BY ALL;
SELECT "people"."sex" AS "sex", AVG("people"."age") AS "a" FROM "$0" AS "people" WHERE "people"."age" < 30 GROUP BY "people"."sex" ORDER BY "sex", "a";

SELECT climate, count(p) FROM (people AS p JOIN regions AS r ON p.region = r.name) GROUP BY 1;
SELECT "r"."climate" AS "climate", COUNT(*) AS "_col_1" FROM "$0" AS "p" JOIN "$1" AS "r" ON "p"."region" = "r"."name" GROUP BY "r"."climate";

WITH young AS (SELECT * FROM people WHERE age < 30) SELECT region, count(*) FROM young GROUP BY region;
SELECT "people"."region" AS "region", COUNT(*) AS "_col_1" FROM "$0" AS "people" WHERE "people"."age" < 30 GROUP BY "people"."region";

PIVOT people ON sex IN ('F', 'M') USING avg(cost) GROUP BY region;
SELECT "people"."region" AS "region", AVG("people"."cost") FILTER(WHERE "people"."sex" = 'F') AS "f", AVG("people"."cost") FILTER(WHERE "people"."sex" = 'M') AS "m" FROM "$0" AS "people" GROUP BY "people"."region";

SELECT sex, sum(count(*)) OVER w AS n FROM people GROUP BY sex WINDOW w AS (ORDER BY sex);
SELECT "people"."sex" AS "sex", SUM(COUNT(*)) OVER (ORDER BY "people"."sex") AS "n" FROM "$0" AS "people" GROUP BY "people"."sex";
