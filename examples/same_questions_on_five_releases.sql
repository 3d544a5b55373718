-- An analyst's ten questions, asked of the original and of five releases of it.
-- Run it with `duckdb-anon < examples/same_questions_on_five_releases.sql`, or line by line in any connection
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

-- 1. How many women below 40 have the flu?
SET VARIABLE question = $$
  SELECT count(*) FROM patients WHERE sex = 'F' AND age < 40 AND disease = 'flu'$$;
FROM side_by_side;

-- 2. What did they cost?
SET VARIABLE question = $$
  SELECT sum(cost) FROM patients WHERE sex = 'F' AND age < 40 AND disease = 'flu'$$;
FROM side_by_side;

-- 3. Cases by disease in the north.
SET VARIABLE question = $$
  SELECT disease, count(*) AS cases FROM patients WHERE region = 'north' GROUP BY disease$$;
FROM side_by_side;

-- 4. Mean age and mean cost by sex.
SET VARIABLE question = $$
  SELECT sex, avg(age) AS mean_age, avg(cost) AS mean_cost FROM patients GROUP BY sex$$;
FROM side_by_side;

-- 5. Cases by decade of age, for two diseases.
SET VARIABLE question = $$
  SELECT age // 10 * 10 AS decade, count(*) FILTER (WHERE disease IN ('diabetes', 'migraine')) AS cases
  FROM patients GROUP BY ALL$$;
FROM side_by_side;

-- 6. Either old, or from the south: OR over different columns.
SET VARIABLE question = $$
  SELECT count(*) FROM patients WHERE age >= 70 OR region = 'south'$$;
FROM side_by_side;

-- 7. A share, from a CASE inside an aggregate.
SET VARIABLE question = $$
  SELECT region, avg(CASE WHEN disease IN ('asthma', 'pneumonia') THEN 1 ELSE 0 END) AS lungs
  FROM patients GROUP BY region$$;
FROM side_by_side;

-- 8. Sub-totals.
SET VARIABLE question = $$
  SELECT sex, region, count(*) AS n FROM patients WHERE age > 60 GROUP BY ROLLUP (sex, region)$$;
FROM side_by_side;

-- 9. A CTE and an ORDER BY ... LIMIT: the three most expensive diseases of the old.
SET VARIABLE question = $$
  WITH old AS (SELECT * FROM patients WHERE age >= 65)
  SELECT disease, sum(cost) AS total FROM old GROUP BY disease ORDER BY total DESC LIMIT 3$$;
FROM side_by_side;

-- 10. Larger groups only.
SET VARIABLE question = $$
  SELECT region, disease, count(*) AS n FROM patients WHERE age BETWEEN 30 AND 50 AND sex <> 'M'
  GROUP BY region, disease HAVING count(*) > 30$$;
FROM side_by_side;

-- Hard bounds where the release has them: the true answer lies between low and high.
FROM relative_error($$SELECT count(*), sum(cost), avg(age) FROM patients WHERE age < 40 AND sex = 'F'$$, 'patients', 'by_mondrian');

-- What the release is actually asked: SQL that runs in any DuckDB shell, without this package.
SELECT rewrite_query($$SELECT count(*) FROM patients WHERE age < 40 AND sex = 'F'$$, 'patients', 'by_mondrian');

-- Not ten questions but a thousand, at once.
FROM compare('patients', ['by_muco', 'by_mondrian', 'by_anatomy', 'by_slicing'], dims := 3, seed := 1);
