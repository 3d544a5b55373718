-- What Apache Superset sends: virtual datasets as subselects, time grains, series limits, filters, samples, row counts.

-- name: big_number
SELECT COUNT(*) AS "count" FROM (SELECT * FROM people) AS virtual_table LIMIT 50000;
-- name: big_number_quoted
SELECT count(*) AS "COUNT(*)" FROM "main"."people" LIMIT 50000;
-- name: bar_chart
SELECT "region" AS "region", COUNT(*) AS "count" FROM "main"."people" GROUP BY "region" ORDER BY "count" DESC LIMIT 10000;
-- name: bar_with_filter
SELECT "sex" AS "sex", SUM("cost") AS "SUM(cost)" FROM "main"."people" WHERE "region" IN ('n1', 'n2') GROUP BY "sex" ORDER BY "SUM(cost)" DESC LIMIT 1000;
-- name: pie
SELECT disease AS disease, COUNT(*) AS count FROM people GROUP BY disease ORDER BY count DESC LIMIT 100;
-- name: time_grain_year
SELECT DATE_TRUNC('YEAR', "born") AS "born", COUNT(*) AS "count" FROM "main"."people" WHERE "born" >= '1975-01-01 00:00:00.000000' AND "born" < '1990-01-01 00:00:00.000000' GROUP BY DATE_TRUNC('YEAR', "born") ORDER BY "count" DESC LIMIT 10000;
-- name: time_grain_month
SELECT DATE_TRUNC('month', born) AS __timestamp, AVG(cost) AS "AVG(cost)" FROM people GROUP BY DATE_TRUNC('month', born) ORDER BY "AVG(cost)" DESC LIMIT 10000;
-- name: time_grain_quarter
SELECT DATE_TRUNC('quarter', born) AS q, sum(cost) AS revenue FROM people GROUP BY 1 LIMIT 50000;
-- name: series_limit
SELECT DATE_TRUNC('YEAR', born) AS born, region AS region, COUNT(*) AS count FROM people JOIN (SELECT region AS region__, COUNT(*) AS mme_inner__ FROM people GROUP BY region ORDER BY mme_inner__ DESC LIMIT 3) AS series_limit ON region = region__ GROUP BY DATE_TRUNC('YEAR', born), region LIMIT 10000;
-- name: rowcount
SELECT COUNT(*) AS rowcount FROM (SELECT region AS region, COUNT(*) AS count FROM people GROUP BY region LIMIT 50000) AS rowcount_qry LIMIT 50000;
-- name: rowcount_two_keys
SELECT COUNT(*) AS rowcount FROM (SELECT sex AS sex, age AS age, COUNT(*) AS count FROM people GROUP BY sex, age) AS rowcount_qry LIMIT 50000;
-- name: filter_values
SELECT region AS region FROM people GROUP BY region LIMIT 1000;
-- name: filter_values_distinct
SELECT DISTINCT sex FROM people ORDER BY sex ASC LIMIT 1000;
-- name: filter_values_ages
SELECT age AS age FROM people GROUP BY age ORDER BY age ASC LIMIT 1000;
-- name: filter_range
SELECT MIN(age) AS min, MAX(age) AS max FROM people LIMIT 1000;
-- name: time_range
SELECT MIN(born) AS min, MAX(born) AS max FROM (SELECT * FROM people) AS virtual_table LIMIT 1000;
-- name: samples
SELECT age AS age, sex AS sex, cost AS cost FROM people LIMIT 1000;
-- name: raw_table_star
SELECT * FROM people LIMIT 100;
-- name: table_metrics
SELECT region AS region, COUNT(*) AS count, SUM(cost) AS "SUM(cost)", AVG(cost) AS "AVG(cost)", MIN(cost) AS "MIN(cost)", MAX(cost) AS "MAX(cost)", COUNT(DISTINCT disease) AS "COUNT_DISTINCT(disease)" FROM people GROUP BY region ORDER BY count DESC LIMIT 1000;
-- name: percent_metric
SELECT disease, COUNT(*) AS count, COUNT(*) / SUM(COUNT(*)) OVER () AS "%count" FROM people GROUP BY disease ORDER BY count DESC LIMIT 1000;
-- name: custom_sql_metric
SELECT region, SUM(CASE WHEN disease = 'flu' THEN 1 ELSE 0 END) * 1.0 / COUNT(*) AS rate FROM people GROUP BY region LIMIT 1000;
-- name: heatmap
SELECT sex AS sex, region AS region, COUNT(*) AS count FROM people GROUP BY sex, region ORDER BY count DESC LIMIT 10000;
-- name: heatmap_numeric
SELECT age AS age, disease AS disease, COUNT(*) AS count FROM people WHERE age >= 22 AND age <= 38 GROUP BY age, disease LIMIT 10000;
-- name: pivot_table
SELECT region AS region, sex AS sex, AVG(weight) AS "AVG(weight)" FROM people GROUP BY region, sex ORDER BY "AVG(weight)" DESC LIMIT 10000;
-- name: box_plot_source
SELECT region AS region, age AS age, AVG(cost) AS "AVG(cost)" FROM people GROUP BY region, age LIMIT 10000;
-- name: bubble
SELECT region, AVG(age) AS x, AVG(cost) AS y, COUNT(*) AS size FROM people GROUP BY region LIMIT 10000;
-- name: virtual_dataset
SELECT region AS region, SUM(n) AS "SUM(n)" FROM (SELECT region, sex, count(*) AS n FROM people GROUP BY region, sex) AS virtual_table GROUP BY region LIMIT 1000;
-- name: virtual_dataset_filtered
SELECT region AS region, SUM(cost) AS s FROM (SELECT region, cost, age FROM people WHERE age > 25) AS virtual_table WHERE region = 'n2' GROUP BY region LIMIT 1000;
-- name: virtual_dataset_case
SELECT band AS band, COUNT(*) AS count FROM (SELECT CASE WHEN age < 25 THEN 'young' WHEN age < 33 THEN 'middle' ELSE 'old' END AS band FROM people) AS virtual_table GROUP BY band ORDER BY count DESC LIMIT 100;
-- name: drill_by
SELECT disease AS disease, COUNT(*) AS count FROM people WHERE region = 'n1' AND sex = 'F' GROUP BY disease ORDER BY count DESC LIMIT 100;
-- name: drill_to_detail
SELECT * FROM people WHERE region = 'n1' AND sex = 'F' LIMIT 50;
-- name: null_filter
SELECT COUNT(*) AS count FROM people WHERE disease IS NULL LIMIT 50000;
-- name: not_in_filter
SELECT COUNT(*) AS count FROM people WHERE (disease NOT IN ('flu', 'cold')) AND age >= 30 LIMIT 50000;
-- name: like_filter
SELECT COUNT(*) AS count FROM people WHERE region LIKE 'n%' AND disease ILIKE '%O%' LIMIT 50000;
-- name: having_filter
SELECT region, COUNT(*) AS count FROM people GROUP BY region HAVING COUNT(*) > 50 ORDER BY count DESC LIMIT 1000;
-- name: having_average
SELECT region, AVG(cost) AS a FROM people GROUP BY region HAVING AVG(cost) > 10 LIMIT 1000;
-- name: sunburst
SELECT region AS region, sex AS sex, disease AS disease, COUNT(*) AS count FROM people GROUP BY region, sex, disease ORDER BY count DESC LIMIT 50000;
-- name: histogram_bins
SELECT age AS age, COUNT(*) AS count FROM people WHERE age IS NOT NULL GROUP BY age ORDER BY age LIMIT 10000;
-- name: cumulative
SELECT born_year, SUM(n) OVER (ORDER BY born_year) AS total FROM (SELECT year(born) AS born_year, COUNT(*) AS n FROM people GROUP BY 1) AS t ORDER BY born_year;
-- name: time_comparison
SELECT COUNT(*) FILTER (WHERE born >= DATE '1985-01-01') AS now, COUNT(*) FILTER (WHERE born < DATE '1985-01-01') AS before FROM people;
-- name: row_limit_subselect
SELECT * FROM (SELECT region, COUNT(*) AS n FROM people GROUP BY region) AS inner_qry ORDER BY n DESC LIMIT 3;
-- name: sql_lab_limit
WITH q AS (SELECT sex, avg(cost) AS a FROM people GROUP BY sex) SELECT * FROM q LIMIT 101;
-- name: median_metric
SELECT region AS region, MEDIAN(age) AS "MEDIAN(age)" FROM people GROUP BY region LIMIT 1000;
-- name: percentile_metric
SELECT PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY cost) AS p90 FROM people LIMIT 1000;
-- name: sum_distinct
SELECT SUM(DISTINCT cost) AS s FROM people LIMIT 1000;
-- name: boolean_key
SELECT age > 30 AS older, COUNT(*) AS count FROM people GROUP BY age > 30 LIMIT 1000;
