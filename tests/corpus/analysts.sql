-- What analysts ask: windows, cohorts, year over year, percentiles of groups, top ten of each group.

-- name: running_total
SELECT region, sum(count(*)) OVER (ORDER BY region) AS running FROM people GROUP BY region ORDER BY region;
-- name: share_of_total
SELECT region, count(*) * 1.0 / sum(count(*)) OVER () AS share FROM people GROUP BY region;
-- name: share_within_sex
SELECT sex, region, count(*) * 1.0 / sum(count(*)) OVER (PARTITION BY sex) AS share FROM people GROUP BY sex, region;
-- name: rank_regions
SELECT region, rank() OVER (ORDER BY avg(cost) DESC) AS place FROM people GROUP BY region;
-- name: dense_rank_ages
SELECT age, count(*) AS n, dense_rank() OVER (ORDER BY count(*) DESC) AS place FROM people GROUP BY age;
-- name: row_number_regions
SELECT region, sum(cost) AS total, row_number() OVER (ORDER BY sum(cost) DESC) AS place FROM people GROUP BY region;
-- name: moving_average
SELECT age, avg(avg(cost)) OVER (ORDER BY age ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS smoothed FROM people WHERE age IS NOT NULL GROUP BY age;
-- name: difference_to_before
SELECT age, avg(cost) - lag(avg(cost)) OVER (ORDER BY age) AS step FROM people WHERE age IS NOT NULL GROUP BY age;
-- name: difference_to_next
SELECT age, count(*) - lead(count(*)) OVER (ORDER BY age) AS step FROM people WHERE age IS NOT NULL GROUP BY age;
-- name: first_value_of_sex
SELECT sex, region, avg(cost) - first_value(avg(cost)) OVER (PARTITION BY sex ORDER BY region) AS apart FROM people GROUP BY sex, region;
-- name: above_mean_of_region
SELECT count(*) AS n FROM (SELECT cost, avg(cost) OVER (PARTITION BY region) AS mean FROM people) AS p WHERE cost > mean;
-- name: quartile_means
SELECT quartile, avg(cost) AS mean FROM (SELECT cost, ntile(4) OVER (ORDER BY cost) AS quartile FROM people WHERE cost IS NOT NULL) AS p GROUP BY quartile;
-- name: percent_rank_half
SELECT count(*) AS n FROM (SELECT percent_rank() OVER (ORDER BY cost) AS place FROM people WHERE cost IS NOT NULL) AS p WHERE place <= 0.5;
-- name: cumulative_share
SELECT disease, sum(count(*)) OVER (ORDER BY count(*) DESC, disease) * 1.0 / sum(count(*)) OVER () AS share FROM people GROUP BY disease;
-- name: largest_of_each_sex
SELECT sex, max(n) AS most FROM (SELECT sex, region, count(*) AS n FROM people GROUP BY sex, region) AS p GROUP BY sex;
-- name: cohort_sizes
SELECT year(born) // 5 * 5 AS cohort, count(*) AS n FROM people GROUP BY 1;
-- name: cohort_costs
SELECT year(born) // 5 * 5 AS cohort, avg(cost) AS mean FROM people GROUP BY 1 ORDER BY 1;
-- name: cohort_by_sex
SELECT year(born) // 5 * 5 AS cohort, sex, count(*) AS n FROM people GROUP BY ALL;
-- name: cohort_shares
SELECT year(born) // 5 * 5 AS cohort, avg(CASE WHEN disease = 'flu' THEN 1 ELSE 0 END) AS flu FROM people GROUP BY 1;
-- name: cohort_against_all
SELECT year(born) // 5 * 5 AS cohort, avg(cost) - (SELECT avg(cost) FROM people) AS apart FROM people GROUP BY 1;
-- name: cohort_largest_disease
WITH sizes AS (SELECT year(born) // 5 * 5 AS cohort, disease, count(*) AS n FROM people GROUP BY ALL) SELECT cohort, max(n) AS most FROM sizes GROUP BY cohort;
-- name: cohort_regions
SELECT year(born) // 5 * 5 AS cohort, count(DISTINCT region) AS regions FROM people GROUP BY 1;
-- name: cohort_ages
SELECT age // 5 * 5 AS cohort, count(DISTINCT disease) AS diseases, median(cost) AS middle FROM people WHERE age IS NOT NULL GROUP BY 1;
-- name: cohort_of_half_decades
WITH cohorts AS (SELECT *, age // 10 AS decade FROM people WHERE age IS NOT NULL) SELECT decade, region, avg(cost) AS mean FROM cohorts GROUP BY ALL;
-- name: cohort_above_median
SELECT sex, count(*) AS n FROM people WHERE cost > (SELECT median(cost) FROM people) GROUP BY sex;
-- name: cohort_rate_of_change
WITH c AS (SELECT year(born) // 5 * 5 AS cohort, avg(cost) AS mean FROM people GROUP BY 1) SELECT cohort, mean / lag(mean) OVER (ORDER BY cohort) - 1 AS rate FROM c;
-- name: cohort_weights
SELECT year(born) // 5 * 5 AS cohort, stddev(weight) AS spread, avg(weight) AS mean FROM people GROUP BY 1;
-- name: year_over_year
WITH y AS (SELECT year(born) AS year, count(*) AS n FROM people GROUP BY 1) SELECT year, n - lag(n) OVER (ORDER BY year) AS more FROM y;
-- name: year_over_year_rate
WITH y AS (SELECT year(born) AS year, sum(cost) AS total FROM people GROUP BY 1) SELECT year, total / lag(total) OVER (ORDER BY year) - 1 AS rate FROM y;
-- name: year_over_year_joined
WITH y AS (SELECT year(born) AS year, avg(cost) AS mean FROM people GROUP BY 1) SELECT now.year AS year, now.mean - before.mean AS apart FROM y AS now JOIN y AS before ON now.year = before.year + 1;
-- name: year_over_year_by_sex
WITH y AS (SELECT sex, year(born) AS year, count(*) AS n FROM people GROUP BY ALL) SELECT sex, year, n - lag(n) OVER (PARTITION BY sex ORDER BY year) AS more FROM y;
-- name: quarters_cumulative
SELECT date_trunc('quarter', born) AS quarter, sum(count(*)) OVER (ORDER BY date_trunc('quarter', born)) AS running FROM people GROUP BY 1;
-- name: best_year
SELECT max(n) AS most FROM (SELECT year(born) AS year, count(*) AS n FROM people GROUP BY 1) AS y;
-- name: years_above_mean
WITH y AS (SELECT year(born) AS year, count(*) AS n FROM people GROUP BY 1) SELECT count(*) AS years FROM y WHERE n > (SELECT avg(n) FROM y);
-- name: mean_of_years
SELECT avg(n) AS mean, stddev(n) AS spread FROM (SELECT year(born) AS year, count(*) AS n FROM people GROUP BY 1) AS y;
-- name: year_to_date
SELECT month(born) AS month, sum(sum(cost)) OVER (ORDER BY month(born)) AS running FROM people GROUP BY 1;
-- name: months_against_mean
SELECT month(born) AS month, count(*) - avg(count(*)) OVER () AS apart FROM people GROUP BY 1;
-- name: half_years
SELECT year(born) AS year, count(*) FILTER (WHERE month(born) <= 6) - count(*) FILTER (WHERE month(born) > 6) AS apart FROM people GROUP BY 1;
-- name: percentiles_of_region
SELECT region, quantile_cont(cost, 0.25) AS low, quantile_cont(cost, 0.75) AS high FROM people GROUP BY region;
-- name: median_of_sex_and_region
SELECT sex, region, median(cost) AS middle FROM people GROUP BY sex, region;
-- name: ninetieth_of_age
SELECT age // 10 AS decade, quantile_disc(cost, 0.9) AS high FROM people WHERE age IS NOT NULL GROUP BY 1;
-- name: median_of_births
SELECT sex, median(age) AS middle FROM people GROUP BY sex;
-- name: interquartile
SELECT disease, quantile_cont(cost, 0.75) - quantile_cont(cost, 0.25) AS apart FROM people GROUP BY disease;
-- name: percentile_of_group_means
SELECT quantile_cont(mean, 0.5) AS middle FROM (SELECT region, sex, avg(cost) AS mean FROM people GROUP BY ALL) AS p;
-- name: median_against_mean
SELECT region, avg(cost) - median(cost) AS skew FROM people GROUP BY region;
-- name: median_of_heavy
SELECT region, median(cost) AS middle FROM people WHERE weight > (SELECT avg(weight) FROM people) GROUP BY region;
-- name: mode_of_region
SELECT region, mode(age) AS usual FROM people GROUP BY region;
-- name: percentile_after_filter
SELECT quantile_cont(cost, 0.5) AS middle FROM people WHERE age BETWEEN 25 AND 35 AND region IN ('n1', 's1');
-- name: median_weight_of_disease
SELECT disease, median(weight) AS middle FROM people GROUP BY disease;
-- name: trimmed_mean
SELECT avg(cost) AS mean FROM people WHERE cost BETWEEN (SELECT quantile_cont(cost, 0.1) FROM people) AND (SELECT quantile_cont(cost, 0.9) FROM people);
-- name: top_ten_of_each_sex
SELECT sex, age, n FROM (SELECT sex, age, count(*) AS n, row_number() OVER (PARTITION BY sex ORDER BY count(*) DESC, age) AS place FROM people GROUP BY sex, age) AS p WHERE place <= 10;
-- name: top_three_of_each_region
SELECT region, disease, total FROM (SELECT region, disease, sum(cost) AS total, rank() OVER (PARTITION BY region ORDER BY sum(cost) DESC) AS place FROM people GROUP BY region, disease) AS p WHERE place <= 3;
-- name: top_by_qualify
SELECT region, age, count(*) AS n FROM people GROUP BY region, age QUALIFY row_number() OVER (PARTITION BY region ORDER BY count(*) DESC, age) <= 10;
-- name: largest_cost_of_each_region
SELECT region, max(cost) AS most, min(cost) AS least FROM people GROUP BY region;
-- name: mean_of_top_ten
SELECT region, avg(cost) AS mean FROM (SELECT region, cost, row_number() OVER (PARTITION BY region ORDER BY cost DESC) AS place FROM people WHERE cost IS NOT NULL) AS p WHERE place <= 10 GROUP BY region;
-- name: share_of_top_tenth
SELECT sum(cost) FILTER (WHERE part = 1) * 1.0 / sum(cost) AS share FROM (SELECT cost, ntile(10) OVER (ORDER BY cost DESC) AS part FROM people WHERE cost IS NOT NULL) AS p;
-- name: regions_of_top_ages
SELECT region, count(*) AS n FROM people WHERE age IN (SELECT age FROM people GROUP BY age ORDER BY count(*) DESC LIMIT 5) GROUP BY region;
-- name: others_after_top_two
WITH ranked AS (SELECT region, count(*) AS n, row_number() OVER (ORDER BY count(*) DESC, region) AS place FROM people GROUP BY region) SELECT CASE WHEN place <= 2 THEN region ELSE 'others' END AS who, sum(n) AS n FROM ranked GROUP BY 1;
-- name: above_own_group
SELECT count(*) AS n FROM people AS o WHERE cost > (SELECT avg(i.cost) FROM people AS i WHERE i.region = o.region);
-- name: pairs_of_equal_age
SELECT count(*) AS pairs FROM people AS a JOIN people AS b ON a.age = b.age AND a.region = 'n1' AND b.region = 's1';
