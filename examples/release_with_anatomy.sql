-- Release exact ages and zip codes, and the diseases only as counts of small groups: good for statistics, no protection
-- against re-identification and membership disclosure.
--
-- Run: duckdb-anon -f examples/release_with_anatomy.sql

create table patients as
    select 20 + (i * 37) % 61 as age, 47900 + (i * 13) % 40 as zip,
        ['flu', 'asthma', 'gout', 'angina', 'ulcer'][1 + (i * i + i // 7) % 5] as disease
    from range(500) as t(i);
comment on column patients.age is 'anon: quasi';
comment on column patients.zip is 'anon: quasi';
comment on column patients.disease is 'anon: sensitive';

-- 1. Buckets of patients with different diseases; no disease has a share above 1/3 in a bucket.
create table patients_release as from anatomy('patients', l := 3);
from patients_release limit 3;
from l_diversity('patients_release', ['bucket'], 'disease');

-- 2. The two tables of the paper.
from anatomy_qit('patients_release') limit 3;
from anatomy_st('patients_release') limit 3;

-- 3. What an analyst gets: an estimate and the truth.
from relative_error(
    'select count(*) from patients where age < 40 and disease = ''flu''', 'patients', 'patients_release'
);

-- 4. The strongest attacker on a copy with row numbers, and the error of one query.
create table checked as from anatomy('patients', l := 3, row_id := true, seed := 1);
select round(identity, 3) as identity, round(attribute, 3) as attribute, round(baseline, 3) as baseline
from linkage_risk('patients', 'checked', seed := 1) where attacker = 'strongest';
