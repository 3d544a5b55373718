UNPIVOT t ON a, b INTO NAME k VALUE v;
SELECT * FROM (SELECT * EXCLUDE (a, b), UNNEST(['a', 'b']) AS "k", UNNEST([a, b]) AS "v" FROM t) AS _unpivoted WHERE NOT "v" IS NULL;

UNPIVOT t ON a, b;
SELECT * FROM (SELECT * EXCLUDE (a, b), UNNEST(['a', 'b']) AS "name", UNNEST([a, b]) AS "value" FROM t) AS _unpivoted WHERE NOT "value" IS NULL;

SELECT k, SUM(v) FROM t UNPIVOT(v FOR k IN (a, b)) AS u GROUP BY k;
SELECT k, SUM(v) FROM (SELECT * FROM (SELECT * EXCLUDE (a, b), UNNEST(['a', 'b']) AS "k", UNNEST([a, b]) AS "v" FROM t) AS _unpivoted WHERE NOT "v" IS NULL) AS u GROUP BY k;

SELECT * FROM t UNPIVOT INCLUDE NULLS (v FOR k IN (a, b));
SELECT * FROM (SELECT * EXCLUDE (a, b), UNNEST(['a', 'b']) AS "k", UNNEST([a, b]) AS "v" FROM t) AS pivoted;
