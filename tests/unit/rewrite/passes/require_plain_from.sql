SELECT COUNT(*) FROM "$0" AS "p", RANGE(age) AS "r"("i");
SELECT COUNT(*) FROM "$0" AS "p", RANGE(0, "p".age) AS "r"("i");

SELECT COUNT(*) FROM "$1" AS "r" JOIN ("$0" AS "p" JOIN "t" ON TRUE) ON TRUE;
-- refused: p stands in a JOIN that is part of another item of FROM, which cannot be answered

SELECT COUNT(*) FROM "$0" AS "p" POSITIONAL JOIN "$1" AS "r";
-- refused: POSITIONAL JOIN cannot be answered
