-- Release a k-anonymous table: every combination of published age, sex and zip code is shared by at
-- least five patients.
--
-- Run: duckdb-anon -f examples/release_with_k_anonymity.sql

-- 1. A table, and what its columns are. A column without a label is not released.
create table patients as
    select 'patient ' || i as name, 20 + (i * 37) % 61 as age, ['f', 'm'][1 + i % 2] as sex,
        47900 + (i * 13) % 40 as zip, ['flu', 'asthma', 'gout', 'angina', 'ulcer'][1 + (i * i + i // 7) % 5] as disease,
        100 + (i * 7919) % 900 as cost
    from range(500) as t(i);
comment on column patients.name is 'anon: identifier';
comment on column patients.age is 'anon: quasi';
comment on column patients.sex is 'anon: quasi';
comment on column patients.zip is 'anon: quasi';
comment on column patients.disease is 'anon: sensitive';
comment on column patients.cost is 'anon: insensitive';

-- 2. The risk as it stands: most patients are the only one of their age, sex and zip code.
from k_anonymity('patients');
from reidentification_risk('patients');

-- 3. The release. Groups are cut where that saves most; cut := 'median' takes Mondrian's medians.
create table patients_release as from mondrian('patients', k := 5);
comment on table patients_release is 'anon: release';
from patients_release limit 5;

-- 4. Risk and information loss of the release.
from k_anonymity('patients_release', ['age', 'sex', 'zip']);
from reidentification_risk('patients_release', ['age', 'sex', 'zip']);
from class_statistics('patients_release', ['age', 'sex', 'zip']);
from information_loss('patients', 'patients_release');

-- 5. The strongest attacker on a copy with row numbers, and the error of one query.
create table checked as from mondrian('patients', k := 5, row_id := true, seed := 1);
select round(identity, 3) as identity, round(attribute, 3) as attribute, round(baseline, 3) as baseline
from linkage_risk('patients', 'checked', seed := 1) where attacker = 'strongest';
select keys, original, round(estimate, 1) as estimate, round(relative_error, 3) as relative_error
from relative_error('select sex, avg(cost) from patients where age < 50 group by sex', 'patients', 'patients_release');
