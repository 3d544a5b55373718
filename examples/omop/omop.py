"""Made tables of the OMOP common data model 5.4, and their release: `python omop.py` in this folder.

It writes omop.duckdb (person, visit_occurrence, condition_occurrence, measurement, drug_exposure, note; no row
describes a person) and releases it by plan.toml as `duckdb-anon run plan.toml` does. `duckdb-anon plan omop.duckdb`
writes that plan, whose [statements] are the holder's.
"""

from __future__ import annotations

import sys
from pathlib import Path

import duckdb

from duckdb_anon.cli import main

_TABLES = """
create macro drawn(i, salt, many) as (hash(i, salt) % many)::integer;
create table person as select i as person_id, [8507, 8532][1 + drawn(i, 'sex', 2)] as gender_concept_id,
    1930 + (drawn(i, 'year', 40) + drawn(i, 'more', 40))::integer as year_of_birth,
    1 + drawn(i, 'month', 12) as month_of_birth, 1 + drawn(i, 'day', 28) as day_of_birth,
    null::timestamp as birth_datetime,
    [8527, 8527, 8527, 8515, 8516][1 + drawn(i, 'race', 5)] as race_concept_id,
    [38003564, 38003564, 38003563][1 + drawn(i, 'ethnicity', 3)] as ethnicity_concept_id,
    1 + drawn(i, 'place', 30) as location_id, 1 + drawn(i, 'doctor', 50) as provider_id,
    1 + drawn(i, 'site', 4) as care_site_id, 'MRN' || (500000 + i) as person_source_value,
    ['M', 'F'][1 + drawn(i, 'sex', 2)] as gender_source_value, 0 as gender_source_concept_id,
    null::varchar as race_source_value, 0 as race_source_concept_id, null::varchar as ethnicity_source_value,
    0 as ethnicity_source_concept_id
from range(1, {people} + 1) t(i);
create table visit_occurrence as select row_number() over () as visit_occurrence_id, person_id,
    [9202, 9202, 9201, 9203][1 + drawn(person_id * 100 + n, 'kind', 4)] as visit_concept_id,
    date '2023-01-01' + drawn(person_id * 100 + n, 'start', 365) as visit_start_date,
    visit_start_date::timestamp as visit_start_datetime,
    visit_start_date + drawn(person_id * 100 + n, 'stay', 6) as visit_end_date,
    visit_end_date::timestamp as visit_end_datetime, 32817 as visit_type_concept_id, provider_id, care_site_id,
    'enc-' || (person_id * 100 + n) as visit_source_value, 0 as visit_source_concept_id, 0 as admitted_from_concept_id,
    null::varchar as admitted_from_source_value, 0 as discharged_to_concept_id,
    null::varchar as discharged_to_source_value, null::bigint as preceding_visit_occurrence_id
from person, range(4) r(n) where n <= drawn(person_id, 'visits', 4);
create table condition_occurrence as select row_number() over () as condition_occurrence_id, person_id,
    [201826, 316866, 4329847, 255573, 312327, 440383, 4182210, 80180][1 + drawn(visit_occurrence_id, 'code', 8)]
        as condition_concept_id,
    visit_start_date as condition_start_date, visit_start_datetime as condition_start_datetime,
    null::date as condition_end_date, null::timestamp as condition_end_datetime, 32817 as condition_type_concept_id,
    32902 as condition_status_concept_id, null::varchar as stop_reason, provider_id, visit_occurrence_id,
    null::bigint as visit_detail_id, 'ICD' || drawn(visit_occurrence_id, 'code', 8) as condition_source_value,
    0 as condition_source_concept_id, null::varchar as condition_status_source_value
from visit_occurrence where drawn(visit_occurrence_id, 'has condition', 10) < 8;
create table measurement as select row_number() over () as measurement_id, person_id,
    [3004249, 3012888, 3016723][1 + drawn(visit_occurrence_id, 'test', 3)] as measurement_concept_id,
    visit_start_date as measurement_date, visit_start_datetime as measurement_datetime,
    null::varchar as measurement_time, 32817 as measurement_type_concept_id, 4172703 as operator_concept_id,
    60.0 + drawn(visit_occurrence_id, 'value', 80) as value_as_number, null::integer as value_as_concept_id,
    8876 as unit_concept_id, null::double as range_low, null::double as range_high, provider_id, visit_occurrence_id,
    null::bigint as visit_detail_id, 'lab' as measurement_source_value, 0 as measurement_source_concept_id,
    'mmHg' as unit_source_value, 0 as unit_source_concept_id, null::varchar as value_source_value,
    null::bigint as measurement_event_id, null::integer as meas_event_field_concept_id
from visit_occurrence where drawn(visit_occurrence_id, 'has test', 10) < 6;
create table drug_exposure as select row_number() over () as drug_exposure_id, person_id,
    [1503297, 1308216, 1545958, 1112807][1 + drawn(visit_occurrence_id, 'drug', 4)] as drug_concept_id,
    visit_start_date as drug_exposure_start_date, visit_start_datetime as drug_exposure_start_datetime,
    visit_end_date as drug_exposure_end_date, visit_end_datetime as drug_exposure_end_datetime,
    null::date as verbatim_end_date, 32817 as drug_type_concept_id, null::varchar as stop_reason, 0 as refills,
    [30.0, 60.0, 90.0][1 + drawn(visit_occurrence_id, 'quantity', 3)] as quantity, 30 as days_supply,
    'once a day' as sig, 4132161 as route_concept_id, null::varchar as lot_number, provider_id, visit_occurrence_id,
    null::bigint as visit_detail_id, 'ATC' as drug_source_value, 0 as drug_source_concept_id,
    null::varchar as route_source_value, null::varchar as dose_unit_source_value
from visit_occurrence where drawn(visit_occurrence_id, 'has drug', 10) < 5;
create table note as select row_number() over () as note_id, person_id, visit_start_date as note_date,
    'seen by Dr. ' || provider_id as note_text, visit_occurrence_id
from visit_occurrence;
"""


def make(file: Path, people: int) -> None:
    """Write the tables."""
    file.unlink(missing_ok=True)
    with duckdb.connect(str(file)) as con:
        con.execute(_TABLES.format(people=people))
        con.execute("drop macro drawn")


if __name__ == "__main__":
    here = Path(__file__).resolve().parent
    make(here / "omop.duckdb", int(sys.argv[1]) if len(sys.argv) > 1 else 5_000)
    sys.exit(main(["run", "--force", str(here / "plan.toml")]))
