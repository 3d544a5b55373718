-- Release a table with muco, check what it promises, and publish it.
--
-- Run: duckdb-anon -f examples/release_with_muco.sql

-- 1. Your table; here 5,000 made-up people. Say what each column is. Unlabelled columns are not released.
create table people as select row_number() over () as id, * from anon_sample('census', 5000, seed := 1);
comment on column people.id is 'anon: identifier';
comment on column people.gender is 'anon: quasi';
comment on column people.age is 'anon: quasi';
comment on column people.education is 'anon: quasi';
comment on column people.marital_status is 'anon: quasi';
comment on column people.hours_per_week is 'anon: quasi';
comment on column people.salary is 'anon: sensitive';

-- 2. How exposed are they now? k = 1: an individual is unique on these five values.
from k_anonymity('people');

-- 3. A checking copy, with row numbers and a seed. It is for you; it is never published.
create table checked as from muco('people', 1/6, l := 10, row_id := true, seed := 1);

-- 4. The strongest attacker, before and after: re-identification, and the salary of an individual.
select 'original' as what, round(identity, 4) as identity, round(attribute, 4) as attribute, round(baseline, 4) as baseline
from linkage_risk('people', '(select *, row_number() over () - 1 as row_id from people)', seed := 1)
where attacker = 'strongest'
union all
select 'muco 1/6', round(identity, 4), round(attribute, 4), round(baseline, 4)
from linkage_risk('people', 'checked', call := 'muco(1/6, l := 10)', seed := 1) where attacker = 'strongest';

-- 5. What an analyst loses: change of the values, and of sums of salaries over random parts of the people.
select attribute, round(iloss, 4) as iloss, round(changed, 2) as share_changed from information_loss('people', 'checked');
select round(avg(relative_error), 4) as mean_error, round(median(relative_error), 4) as median_error
from workload_error('people', 'checked', 200, dims := 2, aggregate := 'sum(salary)', selectivity := 0.1, seed := 1);

select keys, original, round(estimate, 1) as estimate, round(relative_error, 4) as relative_error
from relative_error('select gender, avg(salary) from people where age < 40 group by gender', 'people', 'checked');

-- 6. The guarantee, checked by hand: no record has more than a sixth of any published value of its group.
select attribute, max(share) as largest_share
from (
    select attribute, max(probability) / sum(probability * records) as share
    from muco_tables('people', 1/6, l := 10)
    group by group_id, attribute, output
)
group by attribute order by attribute;

-- 7. The release: no row numbers, and no seed.
create table release as from muco('people', 1/6, l := 10);
comment on table release is 'anon: release';
from release limit 5;
