SELECT CAST(COUNT(*) AS TEXT) || ' rows' AS x FROM "$0" AS "p";
SELECT CAST(CAST(ROUND(COUNT(*)) AS BIGINT) AS TEXT) || ' rows' AS x FROM "$0" AS "p";

SELECT COUNT(*) / 2 AS half, COUNT(*) // 2 AS whole, SUM("p"."age") % 10 AS last FROM "$0" AS "p";
SELECT COUNT(*) / 2 AS half, CAST(ROUND(COUNT(*)) AS BIGINT) // 2 AS whole, CAST(ROUND(SUM("p"."age")) AS INT128) % 10 AS last FROM "$0" AS "p";

SELECT "p"."age" AS a FROM "$0" AS "p" GROUP BY "p"."age" HAVING COUNT(*) = 3;
SELECT "p"."age" AS a FROM "$0" AS "p" GROUP BY "p"."age" HAVING CAST(ROUND(COUNT(*)) AS BIGINT) = 3;

SELECT CAST(SUM("p"."cost") AS TEXT) AS x FROM "$0" AS "p";
SELECT CAST(SUM("p"."cost") AS TEXT) AS x FROM "$0" AS "p";
