-- Reports in the style of TPC-H and TPC-DS, turned to patients: pricing summaries, shares, top lists, cohorts.

-- name: pricing_summary
SELECT sex, region, sum(cost) AS sum_cost, sum(cost * (1 - 0.1)) AS sum_disc, avg(cost) AS avg_cost, avg(weight) AS avg_weight, count(*) AS count_order
FROM people WHERE born <= DATE '1998-12-01' - INTERVAL '90' DAY GROUP BY sex, region ORDER BY sex, region;
-- name: minimum_cost
SELECT min(cost) AS least FROM people WHERE region = 'n1' AND age > 25;
-- name: shipping_priority
SELECT region, born, sum(cost) AS revenue FROM people WHERE born < DATE '1985-03-15' GROUP BY region, born ORDER BY revenue DESC, born LIMIT 10;
-- name: order_priority_exists
SELECT sex, count(*) AS order_count FROM people p WHERE born >= DATE '1980-01-01' AND EXISTS (SELECT * FROM regions r WHERE r.name = p.region AND r.climate = 'cold') GROUP BY sex ORDER BY sex;
-- name: local_volume
SELECT r.climate, sum(p.cost) AS revenue FROM people p JOIN regions r ON p.region = r.name WHERE p.age BETWEEN 20 AND 35 GROUP BY r.climate ORDER BY revenue DESC;
-- name: forecast_revenue
SELECT sum(cost * weight) AS revenue FROM people WHERE born >= DATE '1980-01-01' AND born < DATE '1990-01-01' AND weight BETWEEN 45 AND 75 AND age < 34;
-- name: volume_by_year
SELECT region, extract(year FROM born) AS birth_year, sum(cost) AS volume FROM people WHERE disease IN ('flu', 'cold') GROUP BY region, extract(year FROM born) ORDER BY 1, 2;
-- name: market_share
SELECT age // 10 AS decade, sum(CASE WHEN region = 'n1' THEN cost ELSE 0 END) / sum(cost) AS share FROM people WHERE sex = 'F' GROUP BY age // 10 ORDER BY 1;
-- name: profit_by_nation
SELECT region, year(born) AS y, sum(cost * 2 - weight) AS profit FROM people WHERE disease LIKE '%o%' GROUP BY ALL ORDER BY region, y DESC;
-- name: returned_items
SELECT region, sum(cost) AS revenue, count(*) AS n FROM people WHERE disease = 'flu' GROUP BY region ORDER BY revenue DESC LIMIT 20;
-- name: important_stock
SELECT region, sum(cost) AS value FROM people GROUP BY region HAVING sum(cost) > (SELECT sum(cost) * 0.2 FROM people) ORDER BY value DESC;
-- name: shipping_modes
SELECT region, sum(CASE WHEN disease = 'flu' OR disease = 'cold' THEN 1 ELSE 0 END) AS high_line, sum(CASE WHEN disease <> 'flu' AND disease <> 'cold' THEN 1 ELSE 0 END) AS low_line FROM people WHERE age < 35 GROUP BY region ORDER BY region;
-- name: customer_distribution
SELECT c_count, count(*) AS custdist FROM (SELECT region, count(*) AS c_count FROM people WHERE disease NOT LIKE '%special%' GROUP BY region) AS c_orders GROUP BY c_count ORDER BY custdist DESC, c_count DESC;
-- name: promotion_effect
SELECT 100.00 * sum(CASE WHEN disease LIKE 'f%' THEN cost * 0.9 ELSE 0 END) / sum(cost * 0.9) AS promo_revenue FROM people WHERE born >= DATE '1980-09-01';
-- name: top_supplier
WITH revenue AS (SELECT region, sum(cost) AS total FROM people WHERE born >= DATE '1980-01-01' GROUP BY region)
SELECT region, total FROM revenue WHERE total = (SELECT max(total) FROM revenue) ORDER BY region;
-- name: parts_supplier_distinct
SELECT region, sex, count(DISTINCT disease) AS supplier_cnt FROM people WHERE disease <> 'gout' AND age IN (21, 25, 29, 33, 37) GROUP BY region, sex ORDER BY supplier_cnt DESC, region;
-- name: small_quantity
SELECT sum(cost) / 7.0 AS avg_yearly FROM people WHERE region = 's1' AND age < (SELECT 0.2 * avg(age) + 20 FROM people);
-- name: large_volume
SELECT region, sum(cost) AS q FROM people GROUP BY region HAVING sum(cost) > 1000 ORDER BY q DESC;
-- name: discounted_revenue
SELECT sum(cost * (1 - 0.05)) AS revenue FROM people WHERE (sex = 'F' AND age BETWEEN 20 AND 25 AND disease IN ('flu', 'cold')) OR (sex = 'M' AND age BETWEEN 26 AND 35 AND disease IN ('acne', 'gout'));
-- name: potential_promotion
SELECT name, climate FROM regions WHERE name IN (SELECT region FROM people WHERE disease = 'flu' AND age > 30) ORDER BY name;
-- name: waiting_suppliers
SELECT region, count(*) AS numwait FROM people p WHERE p.disease = 'gout' AND NOT EXISTS (SELECT * FROM regions r WHERE r.name = p.region) GROUP BY region ORDER BY numwait DESC, region LIMIT 100;
-- name: global_sales
SELECT substring(region, 1, 1) AS code, count(*) AS numcust, sum(cost) AS totacct FROM people WHERE cost > (SELECT avg(cost) FROM people WHERE cost > 0) GROUP BY substring(region, 1, 1) ORDER BY code;
-- name: store_sales_rollup
SELECT region, sex, sum(cost) AS total FROM people GROUP BY ROLLUP (region, sex) ORDER BY region NULLS LAST, sex NULLS LAST;
-- name: cube_by_class
SELECT sex, disease, count(*) AS n, grouping(sex) + grouping(disease) AS lochierarchy FROM people GROUP BY CUBE (sex, disease);
-- name: grouping_sets_report
SELECT region, sex, count(*) AS n FROM people GROUP BY GROUPING SETS ((region), (sex), ()) ORDER BY 1, 2;
-- name: year_over_year
WITH yearly AS (SELECT year(born) AS y, sum(cost) AS total FROM people GROUP BY 1)
SELECT cur.y, cur.total, prev.total AS previous FROM yearly cur JOIN yearly prev ON cur.y = prev.y + 1 ORDER BY 1;
-- name: rank_within
SELECT * FROM (SELECT region, sex, sum(cost) AS total, rank() OVER (PARTITION BY region ORDER BY sum(cost) DESC) AS rk FROM people GROUP BY region, sex) t WHERE rk <= 2 ORDER BY region, rk;
-- name: deviation_from_mean
SELECT region, total, avg(total) OVER () AS mean_total FROM (SELECT region, sum(cost) AS total FROM people GROUP BY region) t ORDER BY region;
-- name: ratio_to_class
SELECT sex, region, sum(cost) AS itemrevenue, sum(cost) * 100 / sum(sum(cost)) OVER (PARTITION BY sex) AS revenueratio FROM people GROUP BY sex, region ORDER BY sex, region;
-- name: three_channels
SELECT 'young' AS channel, sum(cost) AS total FROM people WHERE age < 27 UNION ALL SELECT 'middle', sum(cost) FROM people WHERE age BETWEEN 27 AND 33 UNION ALL SELECT 'old', sum(cost) FROM people WHERE age > 33;
-- name: bucket_averages
SELECT CASE WHEN (SELECT count(*) FROM people WHERE age BETWEEN 20 AND 25) > 100 THEN (SELECT avg(cost) FROM people WHERE age BETWEEN 20 AND 25) ELSE (SELECT avg(weight) FROM people WHERE age BETWEEN 20 AND 25) END AS bucket1;
-- name: cte_on_cte
WITH per_cell AS (SELECT region, sex, count(*) AS n FROM people GROUP BY region, sex), per_region AS (SELECT region, sum(n) AS n FROM per_cell GROUP BY region)
SELECT sum(n) AS everyone FROM per_region;
-- name: cte_max_of_cte
WITH per_cell AS (SELECT region, sex, count(*) AS n FROM people GROUP BY region, sex), per_region AS (SELECT region, max(n) AS top FROM per_cell GROUP BY region)
SELECT region, top FROM per_region ORDER BY region;
-- name: above_region_average
WITH ctr AS (SELECT region, sex, sum(cost) AS total FROM people WHERE age > 22 GROUP BY region, sex)
SELECT region, sex, total FROM ctr c WHERE total > (SELECT avg(total) * 1.2 FROM ctr d WHERE d.region = c.region) ORDER BY 1, 2;
-- name: intersect_customers
SELECT count(*) AS n FROM (SELECT DISTINCT region, sex FROM people WHERE age < 25 INTERSECT SELECT DISTINCT region, sex FROM people WHERE age > 35) hot;
-- name: stddev_report
SELECT region, count(cost) AS n, avg(cost) AS mean, stddev_samp(cost) AS deviation, stddev_samp(cost) / avg(cost) AS cov FROM people GROUP BY region ORDER BY region;
-- name: histogram_of_ages
SELECT floor(age / 5) * 5 AS bin, count(*) AS n FROM people WHERE age IS NOT NULL GROUP BY 1 ORDER BY 1;
-- name: days_bands
SELECT sum(CASE WHEN age <= 25 THEN 1 ELSE 0 END) AS d30, sum(CASE WHEN age > 25 AND age <= 30 THEN 1 ELSE 0 END) AS d60, sum(CASE WHEN age > 30 THEN 1 ELSE 0 END) AS d90 FROM people WHERE region IN ('n1', 'n2');
-- name: manager_window
SELECT * FROM (SELECT region, month(born) AS m, sum(cost) AS total, avg(sum(cost)) OVER (PARTITION BY region) AS monthly FROM people GROUP BY region, month(born)) t WHERE monthly > 0 ORDER BY region, m;
-- name: nested_average
SELECT avg(n) AS average_size, max(n) AS largest, min(n) AS smallest FROM (SELECT region, sex, count(*) AS n FROM people GROUP BY region, sex) t;
-- name: number_of_groups
SELECT count(*) AS groups FROM (SELECT region, sex, age FROM people GROUP BY region, sex, age) t;
-- name: uniques
SELECT count(*) AS uniques FROM (SELECT age, sex, region, count(*) AS n FROM people GROUP BY age, sex, region HAVING count(*) = 1) t;
-- name: self_join_pairs
SELECT count(*) FROM people a JOIN people b ON a.region = b.region AND a.age < b.age;
-- name: profit_corr
SELECT corr(age, cost) AS r, covar_pop(age, cost) AS c, regr_slope(cost, age) AS slope FROM people;
-- name: median_by_region
SELECT region, median(cost) AS med FROM people GROUP BY region ORDER BY region;
-- name: quartiles
SELECT quantile_cont(age, 0.25) AS q1, quantile_cont(age, 0.5) AS q2, quantile_cont(age, 0.75) AS q3 FROM people WHERE sex = 'M';
-- name: any_of_all
SELECT count(*) AS n FROM people WHERE cost > ALL (SELECT 50) AND age < 40;
-- name: except_groups
SELECT region FROM people WHERE age < 30 EXCEPT SELECT region FROM people WHERE age >= 30;
