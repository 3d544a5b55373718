-- Two attacks on a table in which a patient has several rows, and what (k,l)-diversity does about them.
-- The example of Gong, Luo, Yang, Ni & Li (2017), tables 1 and 2.
--
-- Run: duckdb-anon -f examples/one_to_m_attacks.sql

-- 1. What the hospital has: six patients, ten diagnoses, and a hierarchy for each generalized column.
create table patients as
    select * from (values
        ('Bob', 18, 'M', 12000, 'a1'), ('Bob', 18, 'M', 12000, 'a2'), ('Bob', 18, 'M', 12000, 'b2'),
        ('David', 14, 'M', 13000, 'b1'), ('Tom', 21, 'F', 21000, 'b2'), ('Simon', 16, 'M', 14000, 'c2'),
        ('Daisy', 27, 'F', 22000, 'a2'), ('Daisy', 27, 'F', 22000, 'b2'),
        ('Alice', 28, 'F', 21000, 'c1'), ('Alice', 28, 'F', 21000, 'c2')
    ) as t(name, age, gender, zip, disease);
create table diseases as
    select * from (values
        ('a1', 'A', '*'), ('a2', 'A', '*'), ('b1', 'B', '*'), ('b2', 'B', '*'), ('c1', 'C', '*'), ('c2', 'C', '*')
    ) as t(disease, class, everything);
create table ages as
    select age,
        (age - 1) // 5 * 5 + 1 as five_from, (age - 1) // 5 * 5 + 5 as five_to,
        (age - 1) // 10 * 10 + 1 as ten_from, (age - 1) // 10 * 10 + 10 as ten_to
    from range(1, 101) as t(age);

-- 2. What a release made for one row a patient looks like (their table 1b): every row has a twin with the same
--    age, gender and zip, and a number in place of the name, so that diagnoses can be put together.
create table naive as
    select * from (values
        (1, 18, 18, 'M', 12000, 12000, 'a1'), (1, 18, 18, 'M', 12000, 12000, 'a2'),
        (1, 11, 20, 'M', 10001, 15000, 'b2'), (2, 11, 20, 'M', 10001, 15000, 'b1'),
        (3, 11, 30, '*', 10001, 25000, 'b2'), (4, 11, 30, '*', 10001, 25000, 'c2'),
        (5, 27, 27, 'F', 22000, 22000, 'a2'), (5, 27, 27, 'F', 22000, 22000, 'b2'),
        (6, 28, 28, 'F', 21000, 21000, 'c1'), (6, 28, 28, 'F', 21000, 21000, 'c2')
    ) as t(number, age_from, age_to, gender, zip_from, zip_to, disease);
select 'every row has a twin' as naive_release, min(rows) as k
from (select count(*) as rows from naive group by age_from, age_to, gender, zip_from, zip_to);

-- 3. Attack by inconsistency. A neighbour knows Bob: 18, male, 12000. In his narrowest rows he is alone, and all
--    rows of his number are his.
select 'naive' as release, count(distinct number) as candidates, list(distinct disease order by disease) as learnt
from naive
where number in (
    select number from naive where 18 = age_from and 18 = age_to and gender = 'M' and zip_from = 12000
);

--    Bob shares the box [11, 20] with number 2. Were both in one half of it, the release would show that half: so
--    number 2, who is David, is at most 15.
select 'naive' as release, other.number, ten.ten_from as at_least, min(half.five_from) - 1 as at_most
from naive as bob
join naive as other on other.number <> bob.number and other.age_from = bob.age_from and other.age_to = bob.age_to
    and other.gender = bob.gender and other.zip_from = bob.zip_from
join ages as ten on ten.ten_from = other.age_from and ten.ten_to = other.age_to
join ages as half on half.age = 18
where bob.number = 1
group by all;

-- 4. Attack by fingerprint. The attacker knows only that Bob was treated for a1 and b2: a single number has both.
with known as (
    select number from naive group by number having list_has_all(list(disease), ['a1', 'b2'])
)
select 'naive' as release, count(distinct number) as candidates, list(distinct disease order by disease) as learnt
from naive where number in (from known);

-- 5. Our release: one row a patient, each list of nodes shared by 2, three lists in every class.
create table released as
    from one_to_m_generalize('patients', 2, 3,
        qi := ['age', 'gender', 'zip'], sensitive := 'disease', person := 'name', hierarchies := {'disease': 'diseases'});
from released order by all;
select k, frequency_l, qi_risk, fingerprint_risk
from kl_diversity('released', ['age', 'gender', 'zip'], sensitive := 'disease');

-- 6. The same attacks again. By age, gender and zip Bob is one of three, whose lists all differ. No box
--    depends on another row of the same individual, so there is nothing to intersect.
select 'ours' as release, count(*) as candidates, list(disease order by disease) as one_of
from released
where 18 between age.lower and age.upper and list_contains(gender, 'M') and 12000 between zip.lower and zip.upper;

--    By a1 and b2 he is one of two: a list covers a value when it holds the value or a node above it.
select 'ours' as release, count(*) as candidates, list(disease order by disease) as one_of
from released
where (
    select bool_and(list_has_any(released.disease, [d.disease, d.class, d.everything]))
    from diseases as d where d.disease in ('a1', 'b2')
);

-- 7. Whichever two values of a patient are known, and however many quasi-identifiers: candidates never go below k.
--    The strongest attacker, on a copy with row numbers.
from fragment_risk('patients', 'released', m := 3,
    sensitive := 'disease', person := 'name', hierarchies := {'disease': 'diseases'});
create table checked as
    from one_to_m_generalize('patients', 2, 3, row_id := true, seed := 1,
        qi := ['age', 'gender', 'zip'], sensitive := 'disease', person := 'name', hierarchies := {'disease': 'diseases'});
select round(identity, 3) as identity, round(attribute, 3) as attribute, round(baseline, 3) as baseline
from linkage_risk('patients', 'checked', qi := ['age', 'gender', 'zip'], sensitive := 'disease', person := 'name',
    hierarchies := {'disease': 'diseases'}, seed := 1)
where attacker = 'strongest';

-- 8. And the analysis the release is for still runs: which diagnoses occur together?
with visits as (
    from one_to_m_generalize('patients', 2, 3, explode := true,
        qi := ['age', 'gender', 'zip'], sensitive := 'disease', person := 'name', hierarchies := {'disease': 'diseases'})
)
select one.disease, other.disease as together_with, count(*) as patients
from visits as one join visits as other on one.name = other.name and one.disease < other.disease
group by all order by all;
