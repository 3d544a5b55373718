SELECT "p"."sex" AS "sex", 1 AS "one", COUNT(*) AS "n" FROM "$0" AS "p" GROUP BY ALL HAVING "p"."age" > 3;
SELECT "p"."sex" AS "sex", 1 AS "one", COUNT(*) AS "n" FROM "$0" AS "p" GROUP BY "p"."sex", "p"."age" HAVING "p"."age" > 3;

SELECT LEFT("p"."sex", 1) AS "k", COUNT(*) AS "n" FROM "$0" AS "p" GROUP BY ALL HAVING LEFT("p"."sex", 1) = 'F';
SELECT LEFT("p"."sex", 1) AS "k", COUNT(*) AS "n" FROM "$0" AS "p" GROUP BY LEFT("p"."sex", 1) HAVING LEFT("p"."sex", 1) = 'F';

SELECT 1 AS "one", COUNT(*) AS "n" FROM "$0" AS "p" GROUP BY ALL;
SELECT 1 AS "one", COUNT(*) AS "n" FROM "$0" AS "p";
