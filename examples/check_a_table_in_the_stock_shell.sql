-- Check k-anonymity, l-diversity and t-closeness of a table with the DuckDB shell alone: no package, no Python.
--
-- Run in the folder of the checkout: duckdb < examples/check_a_table_in_the_stock_shell.sql
.read sql/risk.sql

create table people as
    select 20 + i % 10 as age, ['f', 'm'][1 + i % 2] as sex, ['flu', 'asthma', 'gout'][1 + i // 3 % 3] as disease
    from range(90) as t(i);
from k_anonymity('people', ['age', 'sex']);
from l_diversity('people', ['age', 'sex'], 'disease');
from t_closeness('people', ['age', 'sex'], 'disease');
from reidentification_risk('people', ['age', 'sex'], threshold := 0.1);
from equivalence_classes('people', ['age', 'sex']) order by class_size limit 3;
from uniques('people', ['age', 'sex', 'disease']);
.read sql/utility.sql
create table half as from people where age < 25;
from k_map('half', 'people', ['age', 'sex']);
from k_marginal('people', 'half', ['age', 'sex', 'disease'], k := 2);
