-- What Metabase sends: quoted schema names, "source" subselects, binning, CASE segments, joins of questions.

-- name: count
SELECT COUNT(*) AS "count" FROM "main"."people";
-- name: count_by
SELECT "main"."people"."region" AS "region", COUNT(*) AS "count" FROM "main"."people" GROUP BY "main"."people"."region" ORDER BY "main"."people"."region" ASC;
-- name: sum_filtered
SELECT SUM("main"."people"."cost") AS "sum" FROM "main"."people" WHERE "main"."people"."sex" = 'F';
-- name: month_breakout
SELECT CAST(DATE_TRUNC('month', "main"."people"."born") AS DATE) AS "born", COUNT(*) AS "count" FROM "main"."people" GROUP BY CAST(DATE_TRUNC('month', "main"."people"."born") AS DATE) ORDER BY CAST(DATE_TRUNC('month', "main"."people"."born") AS DATE) ASC;
-- name: binned
SELECT FLOOR(("main"."people"."age" / 10.0)) * 10.0 AS "age", COUNT(*) AS "count" FROM "main"."people" GROUP BY FLOOR(("main"."people"."age" / 10.0)) * 10.0 ORDER BY FLOOR(("main"."people"."age" / 10.0)) * 10.0 ASC;
-- name: binned_from_zero
SELECT (FLOOR((("main"."people"."cost" - 0.0) / 12.5)) * 12.5) + 0.0 AS "cost", COUNT(*) AS "count" FROM "main"."people" GROUP BY (FLOOR((("main"."people"."cost" - 0.0) / 12.5)) * 12.5) + 0.0;
-- name: distinct_values
SELECT COUNT(DISTINCT "main"."people"."region") AS "count" FROM "main"."people";
-- name: field_values
SELECT "main"."people"."sex" AS "sex" FROM "main"."people" GROUP BY "main"."people"."sex" ORDER BY "main"."people"."sex" ASC LIMIT 1000;
-- name: fingerprint
SELECT "main"."people"."age" AS "age", "main"."people"."sex" AS "sex" FROM "main"."people" LIMIT 10000;
-- name: source_question
SELECT "source"."region" AS "region", SUM("source"."count") AS "sum" FROM (SELECT "main"."people"."region" AS "region", "main"."people"."sex" AS "sex", COUNT(*) AS "count" FROM "main"."people" GROUP BY "main"."people"."region", "main"."people"."sex") AS "source" GROUP BY "source"."region";
-- name: source_filtered_by_count
SELECT "source"."region" AS "region", "source"."count" AS "count" FROM (SELECT "main"."people"."region" AS "region", COUNT(*) AS "count" FROM "main"."people" GROUP BY "main"."people"."region") AS "source" WHERE "source"."count" > 60;
-- name: source_average
SELECT AVG("source"."count") AS "avg" FROM (SELECT "main"."people"."region" AS "region", COUNT(*) AS "count" FROM "main"."people" GROUP BY "main"."people"."region") AS "source";
-- name: segment
SELECT SUM(CASE WHEN "main"."people"."age" >= 30 THEN 1 ELSE 0.0 END) AS "older", SUM(CASE WHEN "main"."people"."age" < 30 THEN "main"."people"."cost" ELSE 0.0 END) AS "young_cost" FROM "main"."people";
-- name: share
SELECT CAST(SUM(CASE WHEN "main"."people"."disease" = 'flu' THEN 1 ELSE 0.0 END) AS DOUBLE) / NULLIF(COUNT(*), 0) AS "share" FROM "main"."people";
-- name: joined
SELECT "Regions"."climate" AS "climate", AVG("main"."people"."cost") AS "avg" FROM "main"."people" LEFT JOIN "main"."regions" AS "Regions" ON "main"."people"."region" = "Regions"."name" GROUP BY "Regions"."climate" ORDER BY "Regions"."climate" ASC;
-- name: between
SELECT COUNT(*) AS "count" FROM "main"."people" WHERE "main"."people"."age" BETWEEN 25 AND 34;
-- name: date_filter
SELECT COUNT(*) AS "count" FROM "main"."people" WHERE "main"."people"."born" >= DATE '1980-01-01' AND "main"."people"."born" < DATE '1985-01-01';
-- name: case_insensitive
SELECT COUNT(*) AS "count" FROM "main"."people" WHERE LOWER("main"."people"."disease") LIKE '%c%';
-- name: not_equal_or_null
SELECT COUNT(*) AS "count" FROM "main"."people" WHERE ("main"."people"."disease" <> 'flu' OR "main"."people"."disease" IS NULL);
-- name: top_list
SELECT "main"."people"."disease" AS "disease", COUNT(*) AS "count" FROM "main"."people" GROUP BY "main"."people"."disease" ORDER BY "count" DESC, "main"."people"."disease" ASC LIMIT 3;
-- name: expression
SELECT "source"."ratio" AS "ratio", COUNT(*) AS "count" FROM (SELECT CASE WHEN "main"."people"."cost" > 50 THEN 'high' ELSE 'low' END AS "ratio" FROM "main"."people") AS "source" GROUP BY "source"."ratio";
-- name: standard_deviation
SELECT STDDEV_POP("main"."people"."cost") AS "stddev" FROM "main"."people";
-- name: variance
SELECT VAR_POP("main"."people"."age") AS "var" FROM "main"."people";
-- name: percentile
SELECT PERCENTILE_CONT(0.75) WITHIN GROUP (ORDER BY "main"."people"."age") AS "percentile" FROM "main"."people";
-- name: minmax
SELECT "main"."people"."region" AS "region", MIN("main"."people"."cost") AS "min", MAX("main"."people"."cost") AS "max" FROM "main"."people" GROUP BY "main"."people"."region";
-- name: cumulative_sum
SELECT "source"."age" AS "age", SUM("source"."count") OVER (ORDER BY "source"."age" ASC ROWS UNBOUNDED PRECEDING) AS "sum" FROM (SELECT "main"."people"."age" AS "age", COUNT(*) AS "count" FROM "main"."people" GROUP BY "main"."people"."age") AS "source" ORDER BY "source"."age" ASC;
-- name: xray_by_three
SELECT "main"."people"."sex" AS "sex", "main"."people"."region" AS "region", "main"."people"."disease" AS "disease", COUNT(*) AS "count", AVG("main"."people"."cost") AS "avg" FROM "main"."people" GROUP BY "main"."people"."sex", "main"."people"."region", "main"."people"."disease";
-- name: is_empty
SELECT COUNT(*) AS "count" FROM "main"."people" WHERE ("main"."people"."disease" IS NULL OR "main"."people"."disease" = '');
-- name: starts_with
SELECT SUM("main"."people"."cost") AS "sum" FROM "main"."people" WHERE "main"."people"."region" LIKE 's%';
-- name: year_of
SELECT EXTRACT(year FROM "main"."people"."born") AS "year", AVG("main"."people"."weight") AS "avg" FROM "main"."people" GROUP BY EXTRACT(year FROM "main"."people"."born");
-- name: weighted
SELECT SUM("main"."people"."cost" * "main"."people"."weight") / SUM("main"."people"."weight") AS "weighted" FROM "main"."people";
-- name: pivot_rows
SELECT "main"."people"."region" AS "region", SUM(CASE WHEN "main"."people"."sex" = 'F' THEN 1 ELSE 0 END) AS "F", SUM(CASE WHEN "main"."people"."sex" = 'M' THEN 1 ELSE 0 END) AS "M" FROM "main"."people" GROUP BY "main"."people"."region";
-- name: number_of_people_by_count
SELECT "source"."count" AS "count", COUNT(*) AS "n" FROM (SELECT "main"."people"."age" AS "age", COUNT(*) AS "count" FROM "main"."people" GROUP BY "main"."people"."age") AS "source" GROUP BY "source"."count";
-- name: offset_page
SELECT "main"."people"."age" AS "age", COUNT(*) AS "count" FROM "main"."people" GROUP BY "main"."people"."age" ORDER BY "main"."people"."age" ASC LIMIT 5 OFFSET 5;
