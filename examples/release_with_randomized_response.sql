-- Release a table by randomized response, and get answers back from the release.
-- Run it where the package's functions are loaded: duckdb-anon < examples/release_with_randomized_response.sql

-- 1. The table, and what its columns are to an attacker.
create table patients as
select
    20 + 10 * (hash(i) % 6)::integer as age,
    case when hash(i, 1) % 2 = 0 then 'f' else 'm' end as sex,
    (['flu', 'flu', 'asthma', 'gout', 'hiv'])[1 + (hash(i, 2) % 5)::integer] as disease,
    100 + (hash(i, 3) % 900)::integer as cost
from range(5000) t(i);

comment on column patients.age is 'anon: quasi';
comment on column patients.sex is 'anon: quasi';
comment on column patients.disease is 'anon: sensitive';
comment on column patients.cost is 'anon: insensitive';

-- 2. How much must be randomized so that no disease is inferred with probability above 1/4?
--    p is the probability that a released value is the true one.
from rr_parameters('patients', l := 4);

--    The risk before (p = 1) and after. sampling_risk is what a guesser reaches whatever p is.
from rr_risk('patients', p := 1.0);
from rr_risk('patients', l := 4);

-- 3. Draw once, and publish the table: every column keeps its type, `rr` says how it was randomized
--    (in one row of as many as the domains have values, and so in any part that is large enough to estimate from).
create table patients_release as from rr_distort('patients', l := 4);
comment on table patients_release is 'anon: release';
select * exclude (rr) from patients_release limit 5;
select any_value(rr) from patients_release;

-- 4. Ask the original's questions of the release: estimate, 95% interval, and how far off it is.
from relative_error(
    'select disease, count(*), avg(cost) from patients where age < 50 group by disease',
    'patients', 'patients_release'
);

--    The strongest attacker on a copy with row numbers.
create table checked as from rr_distort('patients', l := 4, row_id := true, seed := 1);
select round(identity, 3) as identity, round(attribute, 3) as attribute, round(baseline, 3) as baseline
from linkage_risk('patients', 'checked', seed := 1) where attacker = 'strongest';

-- 5. All cells of some columns with standard errors, raw and as a proper distribution.
from rr_reconstruct('patients_release', ['sex', 'disease']) order by sex, disease;

-- 6. Probabilities of your own choice: per column, with ages in three bins.
select * exclude (rr)
from rr_distort('patients', p := {'age': 0.8, 'sex': 0.9}, bins := {'age': [35, 55]})
limit 5;

-- 7. One value at a time, for a form or a pipeline. These macros also run in the stock shell:
--    .read sql/randomized_response.sql
create table answers as
select randomized_response(disease = 'hiv', [true, false], 0.75) as has_hiv from patients;

select randomized_response_count(count(*) filter (where has_hiv), count(*), 1, 2, 0.75) as estimated from answers;
