-- Ten questions of an analyst, answered by the original and by five releases of it.
-- Run it with `duckdb-anon -f examples/same_questions_on_five_releases.sql`, or line by line in any connection
-- that has the package loaded. Nothing but the table below is needed.

CREATE OR REPLACE TABLE patients AS
WITH drawn AS (
  SELECT i, (hash(i, 1) % 1000)::INTEGER AS a, (hash(i, 2) % 1000)::INTEGER AS b, (hash(i, 3) % 1000)::INTEGER AS c,
    (hash(i, 4) % 1000)::INTEGER AS d
  FROM range(6000) AS t(i)
)
SELECT
  (18 + (a * a // 14000) + b % 9)::INTEGER AS age,
  CASE WHEN c % 100 < 52 THEN 'F' ELSE 'M' END AS sex,
  (['north', 'east', 'south', 'west'])[1 + (b // 7) % 4] AS region,
  DATE '2024-01-01' + (d % 366) AS admitted,
  (['asthma', 'cold', 'diabetes', 'flu', 'fracture', 'gastritis', 'migraine', 'pneumonia'])
    [1 + ((a // 125) * 3 + c // 100 + d // 200) % 8] AS disease,
  (200 + (a * 7 + d * 3) % 900 + CASE WHEN a > 700 THEN 600 ELSE 0 END)::INTEGER AS cost
FROM drawn;

COMMENT ON COLUMN patients.age IS 'anon: quasi';
COMMENT ON COLUMN patients.sex IS 'anon: quasi';
COMMENT ON COLUMN patients.region IS 'anon: quasi';
COMMENT ON COLUMN patients.admitted IS 'anon: quasi';
COMMENT ON COLUMN patients.disease IS 'anon: sensitive';
COMMENT ON COLUMN patients.cost IS 'anon: insensitive';

-- Five releases, five shapes: rows, boxes, buckets, permuted columns, randomized values.
CREATE OR REPLACE TABLE by_muco AS FROM muco('patients', 0.2, seed := 1);
CREATE OR REPLACE TABLE by_mondrian AS FROM mondrian('patients', k := 5, l := 2, cut := 'loss', seed := 1);
CREATE OR REPLACE TABLE by_anatomy AS FROM anatomy('patients', 4, seed := 1);
CREATE OR REPLACE TABLE by_slicing AS FROM slicing('patients', 2, columns := [['age', 'sex'], ['region', 'admitted']], seed := 1);
CREATE OR REPLACE TABLE by_response AS FROM rr_distort('patients', p := 0.8, qi := ['sex', 'region'], keep := ['age', 'cost'], seed := 1);

-- The analyst writes one query; each release answers it in its own way.
SET VARIABLE question = 'SELECT count(*) FROM patients';

CREATE OR REPLACE TEMP VIEW answers AS
  SELECT 'muco' AS release, * FROM relative_error(getvariable('question'), 'patients', 'by_muco')
  UNION ALL SELECT 'mondrian', * FROM relative_error(getvariable('question'), 'patients', 'by_mondrian')
  UNION ALL SELECT 'anatomy', * FROM relative_error(getvariable('question'), 'patients', 'by_anatomy')
  UNION ALL SELECT 'slicing', * FROM relative_error(getvariable('question'), 'patients', 'by_slicing')
  UNION ALL SELECT 'response', * FROM relative_error(getvariable('question'), 'patients', 'by_response');

CREATE OR REPLACE TEMP VIEW side_by_side AS
  SELECT keys, measure, round(any_value(original), 2) AS original,
    round(any_value(estimate) FILTER (WHERE release = 'muco'), 2) AS muco,
    round(any_value(estimate) FILTER (WHERE release = 'mondrian'), 2) AS mondrian,
    round(any_value(estimate) FILTER (WHERE release = 'anatomy'), 2) AS anatomy,
    round(any_value(estimate) FILTER (WHERE release = 'slicing'), 2) AS slicing,
    round(any_value(estimate) FILTER (WHERE release = 'response'), 2) AS response
  FROM answers GROUP BY keys, measure ORDER BY keys::VARCHAR, measure;

SELECT 'How many women below 40 have the flu?' AS "question 1";
SET VARIABLE question = $$
  SELECT count(*) FROM patients WHERE sex = 'F' AND age < 40 AND disease = 'flu'$$;
FROM side_by_side;

SELECT 'What did they cost?' AS "question 2";
SET VARIABLE question = $$
  SELECT sum(cost) FROM patients WHERE sex = 'F' AND age < 40 AND disease = 'flu'$$;
FROM side_by_side;

SELECT 'Cases by disease in the north' AS "question 3";
SET VARIABLE question = $$
  SELECT disease, count(*) AS cases FROM patients WHERE region = 'north' GROUP BY disease$$;
FROM side_by_side;

SELECT 'Mean age and mean cost by sex' AS "question 4";
SET VARIABLE question = $$
  SELECT sex, avg(age) AS mean_age, avg(cost) AS mean_cost FROM patients GROUP BY sex$$;
FROM side_by_side;

SELECT 'Cases by decade of age, for two diseases' AS "question 5";
SET VARIABLE question = $$
  SELECT age // 10 * 10 AS decade, count(*) FILTER (WHERE disease IN ('diabetes', 'migraine')) AS cases
  FROM patients GROUP BY ALL$$;
FROM side_by_side;

SELECT 'Either old, or from the south: OR over different columns' AS "question 6";
SET VARIABLE question = $$
  SELECT count(*) FROM patients WHERE age >= 70 OR region = 'south'$$;
FROM side_by_side;

SELECT 'A share, from a CASE inside an aggregate' AS "question 7";
SET VARIABLE question = $$
  SELECT region, avg(CASE WHEN disease IN ('asthma', 'pneumonia') THEN 1 ELSE 0 END) AS lungs
  FROM patients GROUP BY region$$;
FROM side_by_side;

SELECT 'Sub-totals' AS "question 8";
SET VARIABLE question = $$
  SELECT sex, region, count(*) AS n FROM patients WHERE age > 60 GROUP BY ROLLUP (sex, region)$$;
FROM side_by_side;

SELECT 'A CTE and an ORDER BY ... LIMIT: the three most expensive diseases of the old' AS "question 9";
SET VARIABLE question = $$
  WITH old AS (SELECT * FROM patients WHERE age >= 65)
  SELECT disease, sum(cost) AS total FROM old GROUP BY disease ORDER BY total DESC LIMIT 3$$;
FROM side_by_side;

SELECT 'Larger groups only' AS "question 10";
SET VARIABLE question = $$
  SELECT region, disease, count(*) AS n FROM patients WHERE age BETWEEN 30 AND 50 AND sex <> 'M'
  GROUP BY region, disease HAVING count(*) > 30$$;
FROM side_by_side;

-- How sure is that? Boxes and buckets of counts give hard bounds (confidence 1): the truth is between low and high.
-- Randomized values, and permuted columns without hard bounds, give 95% intervals (the latter take the columns of a
-- bucket as independent); rows (muco) tell neither.
SELECT 'How sure are the estimates?' AS "question 1 again";
SET VARIABLE question = $$
  SELECT count(*) FROM patients WHERE sex = 'F' AND age < 40 AND disease = 'flu'$$;
SELECT release, original, round(estimate, 1) AS estimate, round(low, 1) AS low, round(high, 1) AS high, confidence
FROM answers;

-- The query that runs on the release: SQL for any DuckDB shell, without this package.
SELECT unnest(string_split(rewrite_query(
  $$SELECT count(*) FROM patients WHERE sex = 'F' AND disease = 'flu'$$, 'patients', 'by_anatomy', spread := 'uniform'), chr(10)))
  AS "query on by_anatomy";

-- A thousand questions at once, with the risk of each release.
CREATE OR REPLACE TEMP TABLE compared AS
  FROM compare('patients', ['by_muco', 'by_mondrian', 'by_anatomy', 'by_slicing'], dims := 3, seed := 1);
SELECT release, shape, k, round(l, 2) AS l, round(ncp, 3) AS ncp, round(mean_error, 4) AS mean_error,
  round(median_error, 4) AS median_error
FROM compared;
