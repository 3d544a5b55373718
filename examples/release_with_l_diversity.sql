-- Release a table that does not give the disease away either: k patients share a class, and the class says little
-- about which disease each of them has.
--
-- Run: duckdb-anon -f examples/release_with_l_diversity.sql

create table patients as
    select 20 + (i * 37) % 61 as age, ['f', 'm'][1 + i % 2] as sex,
        ['flu', 'asthma', 'gout', 'angina', 'ulcer'][1 + (i * i + i // 7) % 5] as disease, (i * 911) % 50 * 1000 as income
    from range(500) as t(i);
comment on column patients.age is 'anon: quasi';
comment on column patients.sex is 'anon: quasi';
comment on column patients.disease is 'anon: sensitive';

-- 1. No disease has a share above 1/3 in a class (frequency diversity, the default), and a class has 6 rows or more.
create table frequent as from mondrian('patients', k := 6, l := 3);
from l_diversity('frequent', ['age', 'sex'], 'disease');

-- 2. Other meanings of l: distinct values, entropy, recursive (c, l).
create table by_entropy as from mondrian('patients', l := 3, diversity := 'entropy');
create table recursive_ as from mondrian('patients', l := 3, c := 2, diversity := 'recursive');
select 'entropy' as release, * from l_diversity('by_entropy', ['age', 'sex'], 'disease')
union all select 'recursive', * from l_diversity('recursive_', ['age', 'sex'], 'disease', l := 3);

-- 3. t-closeness: the incomes of a class are spread much as those of all patients.
create table close as from mondrian('patients', k := 5, t := 0.15, sensitive := 'income');
from t_closeness('close', ['age', 'sex'], 'income');
from t_closeness('close', ['age', 'sex'], 'income', distance := 'equal');

-- 4. The strongest attacker on a copy with row numbers, and the error of one query.
create table checked as from mondrian('patients', k := 6, l := 3, row_id := true, seed := 1);
select round(identity, 3) as identity, round(attribute, 3) as attribute, round(baseline, 3) as baseline
from linkage_risk('patients', 'checked', seed := 1) where attacker = 'strongest';
select keys, original, round(estimate, 1) as estimate, round(relative_error, 3) as relative_error
from relative_error('select disease, count(*) from patients where age < 50 group by disease', 'patients', 'frequent');
