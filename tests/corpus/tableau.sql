-- What Tableau sends: quoted names, aliases TEMP(...), HAVING (COUNT(1) > 0), sets, level-of-detail joins.

-- name: bars
SELECT "people"."region" AS "region", COUNT(1) AS "cnt:people:ok" FROM "main"."people" "people" GROUP BY 1;
-- name: sum_by_two
SELECT "people"."region" AS "region", "people"."sex" AS "sex", SUM("people"."cost") AS "sum:cost:ok" FROM "people" "people" GROUP BY 1, 2;
-- name: having_rows
SELECT SUM("people"."cost") AS "sum:cost:ok" FROM "people" "people" HAVING (COUNT(1) > 0);
-- name: dimension_values
SELECT "people"."disease" AS "disease" FROM "people" "people" GROUP BY 1 ORDER BY 1 ASC;
-- name: quantitative_filter
SELECT MIN("people"."age") AS "TEMP(low)", MAX("people"."age") AS "TEMP(high)", COUNT(1) AS "TEMP(n)" FROM "people" "people" HAVING (COUNT(1) > 0);
-- name: date_parts
SELECT CAST(EXTRACT(YEAR FROM "people"."born") AS BIGINT) AS "yr:born:ok", SUM("people"."cost") AS "sum:cost:ok" FROM "people" "people" GROUP BY 1;
-- name: date_trunc_month
SELECT DATE_TRUNC('MONTH', CAST("people"."born" AS DATE)) AS "tmn:born:ok", COUNT(1) AS "n" FROM "people" "people" WHERE ("people"."sex" = 'F') GROUP BY 1;
-- name: categorical_filter
SELECT "people"."sex" AS "sex", AVG(CAST("people"."cost" AS DOUBLE)) AS "avg:cost:ok" FROM "people" "people" WHERE ("people"."region" IN ('n1', 's1', 's2')) GROUP BY 1;
-- name: calculated_field
SELECT (CASE WHEN ("people"."age" < 30) THEN 'under' WHEN NOT ("people"."age" < 30) THEN 'over' ELSE NULL END) AS "Calculation_1", COUNT(1) AS "n" FROM "people" "people" GROUP BY 1;
-- name: ratio_calculation
SELECT "people"."region" AS "region", (CASE WHEN SUM("people"."weight") = 0 THEN NULL ELSE CAST(SUM("people"."cost") AS DOUBLE) / SUM("people"."weight") END) AS "usr:ratio:ok" FROM "people" "people" GROUP BY 1;
-- name: count_distinct
SELECT COUNT(DISTINCT "people"."disease") AS "ctd:disease:ok" FROM "people" "people" HAVING (COUNT(1) > 0);
-- name: count_distinct_by
SELECT "people"."region" AS "region", COUNT(DISTINCT "people"."age") AS "ctd:age:ok" FROM "people" "people" GROUP BY 1;
-- name: top_n
SELECT "people"."region" AS "region", SUM("people"."cost") AS "sum:cost:ok" FROM "people" "people" INNER JOIN (SELECT "people"."region" AS "region", SUM("people"."cost") AS "$__alias__0" FROM "people" "people" GROUP BY 1 ORDER BY 2 DESC LIMIT 2) "t0" ON ("people"."region" = "t0"."region") GROUP BY 1;
-- name: fixed_lod
SELECT "t0"."region" AS "region", AVG("t0"."n") AS "avg:n:ok" FROM (SELECT "people"."region" AS "region", "people"."sex" AS "sex", COUNT(1) AS "n" FROM "people" "people" GROUP BY 1, 2) "t0" GROUP BY 1;
-- name: fixed_lod_max
SELECT MAX("t0"."n") AS "max:n:ok" FROM (SELECT "people"."region" AS "region", COUNT(1) AS "n" FROM "people" "people" GROUP BY 1) "t0" HAVING (COUNT(1) > 0);
-- name: lod_joined
SELECT "t0"."region" AS "region", SUM("people"."cost") AS "s", MIN("t0"."total") AS "t" FROM "people" "people" INNER JOIN (SELECT "people"."region" AS "region", SUM("people"."cost") AS "total" FROM "people" "people" GROUP BY 1) "t0" ON "people"."region" IS NOT DISTINCT FROM "t0"."region" GROUP BY 1;
-- name: sample_of_rows
SELECT "people"."age" AS "age", "people"."sex" AS "sex" FROM "people" "people" LIMIT 1000;
-- name: histogram_bin
SELECT CAST(FLOOR("people"."weight" / 10) AS BIGINT) AS "weight (bin)", COUNT(1) AS "n" FROM "people" "people" GROUP BY 1;
-- name: integer_bin
SELECT CAST(FLOOR("people"."cost" / 20) AS BIGINT) AS "cost (bin)", COUNT(1) AS "n" FROM "people" "people" GROUP BY 1;
-- name: stddev
SELECT "people"."region" AS "region", STDDEV_SAMP("people"."cost") AS "std:cost:ok", VAR_POP("people"."cost") AS "vrp:cost:ok" FROM "people" "people" GROUP BY 1;
-- name: median
SELECT "people"."sex" AS "sex", MEDIAN("people"."age") AS "med:age:ok" FROM "people" "people" GROUP BY 1;
-- name: percentile
SELECT "people"."sex" AS "sex", QUANTILE_CONT("people"."cost", 0.95) AS "p95:cost:ok" FROM "people" "people" GROUP BY 1;
-- name: corr
SELECT CORR("people"."age", "people"."cost") AS "usr:corr:ok" FROM "people" "people" HAVING (COUNT(1) > 0);
-- name: join_dimension
SELECT "regions"."climate" AS "climate", COUNT(1) AS "n" FROM "people" "people" INNER JOIN "regions" "regions" ON ("people"."region" = "regions"."name") GROUP BY 1;
-- name: left_join_dimension
SELECT "regions"."climate" AS "climate", SUM("people"."cost") AS "s" FROM "people" "people" LEFT JOIN "regions" "regions" ON ("people"."region" = "regions"."name") GROUP BY 1;
-- name: empty_marks
SELECT "regions"."name" AS "name", COUNT("people"."region") AS "n" FROM "regions" "regions" LEFT JOIN "people" "people" ON ("people"."region" = "regions"."name") GROUP BY 1;
-- name: attribute
SELECT (CASE WHEN MIN("people"."region") = MAX("people"."region") THEN MIN("people"."region") ELSE '*' END) AS "attr:region:nk" FROM "people" "people" WHERE ("people"."sex" = 'F') HAVING (COUNT(1) > 0);
-- name: running_total
SELECT "people"."age" AS "age", SUM(COUNT(1)) OVER (ORDER BY "people"."age" ROWS UNBOUNDED PRECEDING) AS "cum" FROM "people" "people" GROUP BY 1;
-- name: percent_of_total
SELECT "people"."disease" AS "disease", COUNT(1) AS "n", CAST(COUNT(1) AS DOUBLE) / SUM(COUNT(1)) OVER () AS "pct" FROM "people" "people" GROUP BY 1;
-- name: null_dimension
SELECT COALESCE("people"."disease", 'none') AS "d", COUNT(1) AS "n" FROM "people" "people" GROUP BY 1;
-- name: number_of_records
SELECT SUM(1) AS "sum:Number of Records:ok" FROM "people" "people" HAVING (COUNT(1) > 0);
-- name: boolean_filter
SELECT SUM("people"."cost") AS "s" FROM "people" "people" WHERE (("people"."age" >= 25) AND ("people"."age" <= 35) AND (NOT ("people"."disease" = 'flu'))) HAVING (COUNT(1) > 0);
-- name: date_range
SELECT COUNT(1) AS "n" FROM "people" "people" WHERE (("people"."born" >= DATE '1980-01-01') AND ("people"."born" <= DATE '1989-12-31'));
-- name: domain_with_count
SELECT "people"."sex" AS "sex", COUNT(1) AS "n" FROM "people" "people" GROUP BY 1 HAVING COUNT(1) >= 1 ORDER BY 1;
-- name: string_function
SELECT UPPER("people"."disease") AS "d", COUNT(1) AS "n" FROM "people" "people" GROUP BY 1;
-- name: weekday
SELECT dayofweek("people"."born") AS "wd", COUNT(1) AS "n" FROM "people" "people" GROUP BY 1;
