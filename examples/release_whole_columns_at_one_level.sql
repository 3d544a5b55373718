-- Release a table in which every value of a column is generalized to the same level of its hierarchy, with at most 2% of
-- the rows left out and their number in every row.
--
-- Run: duckdb-anon -f examples/release_whole_columns_at_one_level.sql

-- 1. A table and a hierarchy: one row a leaf, from the leaf to the root. CSV files made for ARX are such tables.
create table visitors as
    select 18 + (i * 31) % 60 as age, case when i % 400 = 7 then '99990' else (47000 + i % 4 * 100 + i % 3 * 10)::varchar end as zip, ['f', 'm'][1 + i % 2] as sex,
        ['flu', 'asthma', 'gout', 'angina'][1 + (i // 3) % 4] as disease
    from range(2000) as t(i);
create table zips as
    select distinct zip as leaf, zip[:4] || '*' as four_digits, zip[:3] || '**' as three_digits, '*****' as everywhere
    from visitors;
comment on column visitors.age is 'anon: quasi';
comment on column visitors.zip is 'anon: quasi hierarchy=zips';
comment on column visitors.sex is 'anon: quasi';
comment on column visitors.disease is 'anon: sensitive';

-- 2. The levels of least loss at which every class has 10 rows and an entropy of at least ln 2.
create table lifted as from incognito('visitors', k := 10, l := 2, max_suppression := 0.02);
select count(*) as released, any_value(suppressed) as suppressed from lifted;
select age, zip, sex, count(*) as rows from lifted group by all order by rows limit 5;

-- 3. The check, and how far each column was lifted.
from l_diversity('lifted', ['age', 'zip', 'sex'], 'disease');
from distortion_ratio('visitors', 'lifted');

-- 4. The strongest attacker on a copy with row numbers, and the error of one query.
create table checked as from incognito('visitors', k := 10, l := 2, max_suppression := 0.02, row_id := true, seed := 1);
select round(identity, 3) as identity, round(attribute, 3) as attribute, round(baseline, 3) as baseline
from linkage_risk('visitors', 'checked', seed := 1) where attacker = 'strongest';
select keys, original, round(estimate, 1) as estimate, round(relative_error, 3) as relative_error
from relative_error('select sex, count(*) from visitors where age < 40 group by sex', 'visitors', 'lifted');
