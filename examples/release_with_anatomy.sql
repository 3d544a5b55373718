-- Release exact ages and zip codes, and the diseases only as counts of small groups: good for statistics, no protection
-- against finding out who is in the table.
--
-- Run: duckdb-anon -f examples/release_with_anatomy.sql

create table patients as
    select 20 + (i * 37) % 61 as age, 47900 + (i * 13) % 40 as zip,
        ['flu', 'asthma', 'gout', 'angina', 'ulcer'][1 + (i * i + i // 7) % 5] as disease
    from range(500) as t(i);
comment on column patients.age is 'anon: quasi';
comment on column patients.zip is 'anon: quasi';
comment on column patients.disease is 'anon: sensitive';

-- 1. Buckets of patients with different diseases; nobody's disease is told with a probability above 1/3.
create table patients_release as from anatomy('patients', l := 3);
from patients_release limit 3;
from l_diversity('patients_release', ['bucket'], 'disease');

-- 2. The two tables of the paper.
from anatomy_qit('patients_release') limit 3;
from anatomy_st('patients_release') limit 3;

-- 3. What an analyst gets: an estimate beside the truth.
from relative_error(
    'select count(*) from patients where age < 40 and disease = ''flu''', 'patients', 'patients_release'
);
