SELECT 3 AS "least", COUNT(*) AS "n" FROM "$0" HAVING COUNT(*) > "least";
SELECT 3 AS "least", COUNT(*) AS "n" FROM "$0" HAVING COUNT(*) > (3);
