SELECT COUNT(*) FROM "$0" AS "p" WHERE EXISTS(SELECT 1 FROM "$0" AS "p" WHERE "p"."age" > 3);
SELECT COUNT(*) FROM "$0" AS "p_" WHERE EXISTS(SELECT 1 FROM "$0" AS "p" WHERE "p"."age" > 3);

SELECT COUNT(*) FROM "$0" AS "age" WHERE "age"."cost" > 1;
SELECT COUNT(*) FROM "$0" AS "age_" WHERE "age_"."cost" > 1;
