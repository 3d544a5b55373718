-- Label: quasi-identifiers, which could identify individuals, and the sensitive attribute
COMMENT ON COLUMN census.age            IS 'anon: quasi';
COMMENT ON COLUMN census.gender         IS 'anon: quasi';
COMMENT ON COLUMN census.education      IS 'anon: quasi';
COMMENT ON COLUMN census.hours_per_week IS 'anon: quasi';
COMMENT ON COLUMN census.salary         IS 'anon: sensitive';

-- Risk of the original: how many records are unique on the quasi-identifiers?
SELECT rows, sample_uniques, marketer AS average_risk FROM reidentification_risk('census');
--> sample_uniques: records that no other record equals on all quasi-identifiers.

-- Protect: values are exchanged at random among at least five similar records
CREATE TABLE release AS FROM muco('census', 0.2, row_id := true);
FROM release LIMIT 3;
--> Unlabelled columns are dropped, rows are shuffled. row_id is for the checks below;
--> leave it out of what you publish.

-- Risk: how often does the strongest attacker, who knows all quasi-identifiers and the method, re-identify a record?
SELECT 'original' AS published, round(identity, 4) AS identity, round(attribute, 4) AS attribute,
       round(baseline, 4) AS baseline
FROM linkage_risk('census', '(SELECT *, row_number() OVER () - 1 AS row_id FROM census)')
WHERE attacker = 'strongest' UNION ALL
SELECT 'release', round(identity, 4), round(attribute, 4), round(baseline, 4)
FROM linkage_risk('census', 'release', call := 'muco(0.2)') WHERE attacker = 'strongest';
--> identity: probability of finding the right record; attribute: probability of inferring the salary;
--> baseline: probability of inferring it for an individual who is not in the data.

-- Information loss: distance of the published values from the true ones, as a share of the range
SELECT attribute, round(iloss, 4) AS loss, round(changed, 3) AS changed
FROM information_loss('census', 'release');

-- Utility: relative error of a query on the release
SELECT keys, original, estimate, round(relative_error, 4) AS relative_error FROM relative_error(
  'SELECT education, avg(salary) FROM census WHERE age < 40 GROUP BY education', 'census', 'release')
ORDER BY original DESC LIMIT 5;
