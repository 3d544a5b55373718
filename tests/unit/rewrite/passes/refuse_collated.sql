SELECT "p"."region" AS "region", COUNT(*) AS "n" FROM "$0" AS "p" GROUP BY "p"."region";
SELECT "p"."region" AS "region", COUNT(*) AS "n" FROM "$0" AS "p" GROUP BY "p"."region";

SELECT COUNT(*) AS n FROM "$0" AS "p" WHERE LOWER("p"."region") = 'x' OR "p"."region" LIKE 'z%';
SELECT COUNT(*) AS n FROM "$0" AS "p" WHERE LOWER("p"."region") = 'x' OR "p"."region" LIKE 'z%';

SELECT "p"."region" AS "region", COUNT(*) AS "n" FROM "$0" AS "p" GROUP BY ALL;
-- refused: GROUP BY ALL groups 'region' by its letters, but its collation takes some texts for equal, and the release keeps one of them

SELECT COUNT(DISTINCT "p"."region") AS "n" FROM "$0" AS "p";
-- refused: count(DISTINCT "p"."region") reads the letters of 'region', whose collation takes some texts for equal, and the release keeps one of them

SELECT COUNT(*) AS "n" FROM (SELECT "p"."region" AS "z" FROM "$0" AS "p" GROUP BY "p"."region") AS "q" WHERE HASH("q"."z") = 2;
-- refused: hash("q"."z") reads the letters of 'z', whose collation takes some texts for equal, and the release keeps one of them
