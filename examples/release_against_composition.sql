-- Two hospitals publish independently; two patients are in both. What an attacker who intersects the releases
-- learns, and what merging does about it. The example of Hasan, Jiang, Chen & Wang (2018), tables 1 to 8.
--
-- Run: duckdb-anon -f examples/release_against_composition.sql

-- 1. The two tables, and the two patients who are in both.
create table hospital_a as
    select * from (values
        ('Boby', 22, 'M', 47905, 'Gastritis'), ('Alisa', 22, 'F', 47905, 'Ovarian Cancer'),
        ('Tina', 33, 'F', 47901, 'Breast Cancer'), ('Doug', 52, 'M', 47901, 'Flu'),
        ('Kevin', 54, 'M', 47902, 'Dyspepsia'), ('Sandy', 60, 'F', 47902, 'Fever'),
        ('Molly', 60, 'F', 47308, 'Cancer'), ('Dolly', 64, 'F', 47308, 'Fever')
    ) as t(name, age, sex, zip, disease);
create table hospital_b as
    select * from (values
        ('Boby', 22, 'M', 47905, 'Gastritis'), ('Aron', 22, 'M', 47905, 'Blood Cancer'),
        ('Angela', 33, 'F', 47907, 'Breast Cancer'), ('Arnold', 58, 'M', 47903, 'Flu'),
        ('Blake', 30, 'M', 47902, 'Dyspepsia'), ('Sandy', 60, 'F', 47902, 'Fever'),
        ('Camila', 65, 'F', 47308, 'Flu'), ('Easter', 65, 'F', 47309, 'Cancer')
    ) as t(name, age, sex, zip, disease);
create table in_both as (from hospital_a intersect from hospital_b);

-- 2. Each release is 2-anonymous. Their intersection gives Boby away: 66.67% of the matches are true.
create table boxes_a as
    from mondrian('hospital_a', k := 2, cut := 'median', width := 'distinct', qi := ['zip', 'age', 'sex'], sensitive := 'disease');
create table boxes_b as
    from mondrian('hospital_b', k := 2, cut := 'median', width := 'distinct', qi := ['zip', 'age', 'sex'], sensitive := 'disease');
select 'mondrian' as method, persons, true_matches, false_matches, singled_out, round(privacy_risk, 2) as privacy_risk
from composition_risk('boxes_a', 'boxes_b', 'in_both', qi := ['zip', 'age', 'sex'], sensitive := 'disease');

-- 3. Merging: buckets of four, columns permuted inside them, no row contradicts what everybody knows. (The paper's worked tables have no fake rows.)
set variable rules = [['sex = ''M''', 'disease in (''Ovarian Cancer'', ''Breast Cancer'')']];
create table merged_a as
    from merging('hospital_a', 2, min_bucket := 4, cut := 'median', width := 'distinct', fake := 0, qi := ['zip', 'age', 'sex'],
        sensitive := 'disease', columns := [['age', 'sex'], ['zip']],
        rules := getvariable('rules'));
create table merged_b as
    from merging('hospital_b', 2, min_bucket := 4, cut := 'median', width := 'distinct', fake := 0, qi := ['zip', 'age', 'sex'],
        sensitive := 'disease', columns := [['age', 'sex'], ['zip']],
        rules := getvariable('rules'));
select bucket, age_sex, zip, disease from merged_a order by all;
select 'merging' as method, persons, true_matches, false_matches, singled_out, round(privacy_risk, 2) as privacy_risk
from composition_risk('merged_a', 'merged_b', 'in_both', qi := ['zip', 'age', 'sex'], sensitive := 'disease');

-- 4. What the analyst keeps: feverish women in hospital A (the truth is 2).
select measure, original, estimate, relative_error
from relative_error('select count(*) from hospital_a where sex = ''F'' and disease = ''Fever''',
    'hospital_a', 'merged_a');

-- 5. A table of rules works as well: gather it into a list of lists first.
create table forbidden as
    select * from (values (1, 'sex = ''M'''), (1, 'disease = ''Ovarian Cancer'''),
        (2, 'sex = ''M'''), (2, 'disease = ''Breast Cancer''')) as t(rule, condition);
set variable rules = (select list(conditions) from (select list(condition) as conditions from forbidden group by rule));
select count(*) as rows_released
from merging('hospital_a', 2, qi := ['zip', 'age', 'sex'], sensitive := 'disease',
    columns := [['age', 'sex'], ['zip']], rules := getvariable('rules'));
