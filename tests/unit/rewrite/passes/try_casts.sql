SELECT SUM(CAST("p"."sex" AS INT)) FROM "$0" AS "p" WHERE "p"."sex" <> 'x';
SELECT SUM(TRY_CAST("p"."sex" AS INT)) FROM "$0" AS "p" WHERE "p"."sex" <> 'x';

SELECT SUM(CAST("p"."sex" AS INT)) FROM "$0" AS "p";
SELECT SUM(CAST("p"."sex" AS INT)) FROM "$0" AS "p";

SELECT SUM(CAST("p"."age" AS BIGINT)) FROM "$0" AS "p" WHERE "p"."age" > 1;
SELECT SUM(CAST("p"."age" AS BIGINT)) FROM "$0" AS "p" WHERE "p"."age" > 1;

SELECT SUM(CAST("p"."age" AS TINYINT)) FROM "$0" AS "p" WHERE "p"."age" > 1;
SELECT SUM(TRY_CAST("p"."age" AS TINYINT)) FROM "$0" AS "p" WHERE "p"."age" > 1;
