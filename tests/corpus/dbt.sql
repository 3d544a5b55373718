-- Models, metrics and tests of dbt projects, and what analysts write by hand in DuckDB's own dialect.

-- name: staging_then_mart
WITH source AS (SELECT * FROM people), renamed AS (SELECT age, sex AS gender, region, cost FROM source), final AS (SELECT gender, region, sum(cost) AS total_cost, count(*) AS n FROM renamed WHERE age >= 21 GROUP BY 1, 2)
SELECT * FROM final;
-- name: mart_of_mart
WITH by_cell AS (SELECT region, sex, sum(cost) AS total, count(*) AS n FROM people GROUP BY 1, 2), by_region AS (SELECT region, sum(total) AS total, sum(n) AS n FROM by_cell GROUP BY 1)
SELECT region, total / n AS mean_cost FROM by_region ORDER BY 1;
-- name: metric_by_month
SELECT date_trunc('month', born) AS metric_time, count(*) AS births FROM people GROUP BY 1 ORDER BY 1;
-- name: test_not_null
SELECT count(*) AS failures FROM people WHERE age IS NULL;
-- name: test_unique
SELECT count(*) AS failures FROM (SELECT age, sex FROM people WHERE age IS NOT NULL GROUP BY age, sex HAVING count(*) > 1) dbt_internal_test;
-- name: test_accepted_values
WITH all_values AS (SELECT sex AS value_field, count(*) AS n_records FROM people GROUP BY sex)
SELECT * FROM all_values WHERE value_field NOT IN ('F', 'M');
-- name: test_relationships
SELECT count(*) AS failures FROM (SELECT region AS from_field FROM people WHERE region IS NOT NULL) child LEFT JOIN (SELECT name AS to_field FROM regions) parent ON child.from_field = parent.to_field WHERE parent.to_field IS NULL;
-- name: row_count_test
SELECT count(*) >= 1 AS ok FROM people;
-- name: dimension_spine
SELECT r.name, count(p.age) AS n FROM regions r LEFT JOIN people p ON p.region = r.name GROUP BY r.name ORDER BY r.name;
-- name: spine_with_filter
SELECT r.name, coalesce(sum(p.cost), 0) AS total FROM regions r LEFT JOIN people p ON p.region = r.name AND p.age < 30 GROUP BY r.name;
-- name: generated_axis
SELECT a.age, count(p.age) AS n FROM (SELECT unnest(range(18, 45)) AS age) a LEFT JOIN people p ON p.age = a.age GROUP BY a.age ORDER BY a.age;
-- name: qualify_top
SELECT region, sex, count(*) AS n FROM people GROUP BY region, sex QUALIFY row_number() OVER (PARTITION BY region ORDER BY count(*) DESC) = 1;
-- name: group_by_all
SELECT sex, age > 30 AS older, count(*), avg(cost) FROM people GROUP BY ALL ORDER BY ALL;
-- name: from_first
FROM people SELECT region, count(*) AS n WHERE age < 33 GROUP BY region;
-- name: count_if
SELECT region, count_if(cost > 50) AS expensive, count_if(age < 25 AND sex = 'F') AS young_women FROM people GROUP BY region;
-- name: filter_clause
SELECT count(*) FILTER (WHERE sex = 'F') AS f, count(*) FILTER (WHERE sex = 'M') AS m, avg(cost) FILTER (WHERE age > 30) AS old_cost FROM people;
-- name: pivot_in
PIVOT people ON sex IN ('F', 'M') USING count(*) GROUP BY region;
-- name: pivot_open
PIVOT people ON sex USING sum(cost) GROUP BY region;
-- name: pivot_standard
SELECT * FROM (SELECT region, sex, cost FROM people) PIVOT (sum(cost) FOR sex IN ('F', 'M'));
-- name: columns_star
SELECT min(COLUMNS(*)) FROM people;
-- name: columns_regex
SELECT sum(COLUMNS('cost|weight')) FROM people;
-- name: tablesample
SELECT count(*) FROM people TABLESAMPLE 10%;
-- name: using_sample
SELECT avg(cost) FROM people USING SAMPLE 50 ROWS;
-- name: summarize_like
SELECT count(*) AS n, count(age) AS ages, min(age) AS lo, max(age) AS hi, avg(age) AS mean, stddev(age) AS sd, approx_count_distinct(age) AS uniques FROM people;
-- name: median_window
SELECT median(age) OVER () FROM people;
-- name: window_rows
SELECT age, row_number() OVER (ORDER BY cost DESC) AS rn FROM people;
-- name: lag_rows
SELECT region, cost - lag(cost) OVER (PARTITION BY region ORDER BY born) AS change FROM people;
-- name: string_agg
SELECT region, string_agg(disease, ', ') AS diseases FROM people GROUP BY region;
-- name: list_agg
SELECT list(age) AS ages FROM people WHERE region = 'n1';
-- name: first_value
SELECT region, first(disease) AS one FROM people GROUP BY region;
-- name: arg_max
SELECT region, arg_max(disease, cost) AS costly FROM people GROUP BY region;
-- name: mode
SELECT region, mode(disease) AS commonest FROM people GROUP BY region;
-- name: mode_of_age
SELECT mode(age) AS commonest FROM people WHERE sex = 'F';
-- name: bool_aggregates
SELECT bool_or(age > 39) AS any_old, bool_and(cost >= 0) AS all_paid FROM people;
-- name: entropy
SELECT entropy(disease) AS e FROM people;
-- name: kurtosis
SELECT kurtosis(cost) AS k, skewness(cost) AS s FROM people;
-- name: approx_quantile
SELECT approx_quantile(age, 0.5) AS m FROM people;
-- name: quantile_disc
SELECT quantile_disc(age, 0.5) AS m FROM people WHERE disease = 'flu';
-- name: mad
SELECT mad(age) AS m FROM people;
-- name: product
SELECT product(1 + cost / 1000.0) AS p FROM people;
-- name: regr_family
SELECT regr_slope(cost, age) AS slope, regr_intercept(cost, age) AS intercept, regr_r2(cost, age) AS r2, regr_count(cost, age) AS n FROM people;
-- name: covariance_by
SELECT region, covar_samp(age, cost) AS c FROM people GROUP BY region;
-- name: in_subquery_groups
SELECT count(*) AS n FROM people WHERE region IN (SELECT region FROM people GROUP BY region HAVING count(*) > 100);
-- name: in_dimension
SELECT sex, count(*) AS n FROM people WHERE region IN (SELECT name FROM regions WHERE climate = 'hot') GROUP BY sex;
-- name: exists_dimension
SELECT count(*) AS n FROM people p WHERE NOT EXISTS (SELECT 1 FROM regions r WHERE r.name = p.region AND r.climate = 'cold');
-- name: exists_original
SELECT count(*) AS n FROM regions r WHERE EXISTS (SELECT 1 FROM people p WHERE p.region = r.name AND p.age > 38);
-- name: scalar_share
SELECT region, count(*) * 1.0 / (SELECT count(*) FROM people) AS share FROM people GROUP BY region;
-- name: correlated_scalar
SELECT r.name, (SELECT count(*) FROM people p WHERE p.region = r.name) AS n FROM regions r ORDER BY 1;
-- name: lateral
SELECT r.name, t.n FROM regions r, LATERAL (SELECT count(*) AS n FROM people p WHERE p.region = r.name) t;
-- name: union_distinct
SELECT region FROM people WHERE sex = 'F' UNION SELECT region FROM people WHERE sex = 'M';
-- name: values_axis
SELECT v.lo, count(*) AS n FROM people p JOIN (VALUES (20, 24), (25, 29), (30, 34), (35, 40)) v(lo, hi) ON p.age BETWEEN v.lo AND v.hi GROUP BY v.lo ORDER BY 1;
-- name: cross_columns
SELECT count(*) AS n FROM people WHERE age * 2 > cost;
-- name: arithmetic_key
SELECT (age + 5) // 10 AS band, sum(cost) AS total FROM people GROUP BY 1;
-- name: two_key_functions
SELECT year(born) // 10 * 10 AS decade, upper(sex) AS s, count(*) AS n FROM people GROUP BY 1, 2;
-- name: date_arithmetic
SELECT avg(date_diff('day', born, DATE '2000-01-01')) AS mean_days FROM people;
-- name: coalesce_sum
SELECT sum(coalesce(cost, 0) + coalesce(age, 0)) AS total FROM people;
-- name: nullif_average
SELECT avg(nullif(cost, 0)) AS mean_paid FROM people;
-- name: sum_of_squares
SELECT sum(cost * cost) AS ss, sum(age * age) AS sa FROM people;
-- name: log_sum
SELECT sum(ln(1 + cost)) AS l FROM people WHERE cost IS NOT NULL;
-- name: having_only
SELECT sum(cost) AS total FROM people HAVING count(*) > 10;
-- name: order_by_expression
SELECT region, sum(cost) AS total FROM people GROUP BY region ORDER BY sum(cost) / count(*) DESC LIMIT 2;
-- name: number_of_big_groups
SELECT count(*) AS n FROM (SELECT region FROM people GROUP BY region HAVING count(*) >= 100) t;
-- name: largest_group
SELECT max(n) AS n FROM (SELECT sex, disease, count(*) AS n FROM people GROUP BY 1, 2) t;
-- name: smallest_group
SELECT min(n) AS n FROM (SELECT region, count(*) AS n FROM people GROUP BY 1) t;
-- name: distinct_pairs
SELECT count(*) AS n FROM (SELECT DISTINCT sex, region FROM people) t;
-- name: distinct_ages
SELECT count(DISTINCT age) AS n FROM people WHERE region = 'n1';
-- name: distinct_with_others
SELECT sex, count(*) AS n, count(DISTINCT region) AS regions, avg(cost) AS mean FROM people GROUP BY sex;
-- name: distinct_expression
SELECT count(DISTINCT age // 10) AS decades FROM people;
-- name: recursive_numbers
WITH RECURSIVE n(i) AS (SELECT 20 UNION ALL SELECT i + 5 FROM n WHERE i < 35) SELECT n.i, count(*) AS c FROM n JOIN people p ON p.age = n.i GROUP BY n.i ORDER BY 1;
-- name: delete_statement
DELETE FROM people;
-- name: unknown_column
SELECT count(*) FROM people WHERE salary > 10;
