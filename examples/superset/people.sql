-- The table the dashboards were made on: 4,000 made-up people, with labels.
--
-- Run: duckdb-anon private.duckdb -f examples/superset/people.sql

create table people as
select gender, age, make_date(2020 - age, 1 + (hash(row_number() over ()) % 12)::integer, 15) as born,
  marital_status, education, hours_per_week, salary
from anon_sample('census', 4000, seed := 1);

comment on column people.gender is 'anon: quasi';
comment on column people.age is 'anon: quasi';
comment on column people.born is 'anon: quasi';
comment on column people.marital_status is 'anon: quasi';
comment on column people.education is 'anon: sensitive';
comment on column people.hours_per_week is 'anon: insensitive';
comment on column people.salary is 'anon: insensitive';
