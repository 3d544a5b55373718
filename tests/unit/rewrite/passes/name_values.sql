SELECT (SELECT MAX(name) FROM regions), COUNT(*) FROM people ORDER BY 1;
SELECT (SELECT MAX(name) FROM regions) AS "_col_0", COUNT(*) FROM people ORDER BY 1;
