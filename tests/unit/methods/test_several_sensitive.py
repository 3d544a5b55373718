"""Several sensitive columns: every one of them is protected in every class."""

import duckdb
import numpy as np
import pytest

from duckdb_anon.methods.muco_lp import groups_of
from duckdb_anon.model.coded_table import CodedTable
from tests.reference.merging import attribute

QI = "['age', 'sex']"


@pytest.fixture
def patients(con):
    """400 rows whose two sensitive columns change together nowhere and alone everywhere."""
    con.execute("""
        create table patients as
        select i * 7 % 61 as age, ['f', 'm'][1 + i // 3 % 2] as sex, i * i % 7 as disease, i // 5 % 9 as income
        from range(400) t(i);
        comment on column patients.age is 'anon: quasi';
        comment on column patients.sex is 'anon: quasi';
        comment on column patients.disease is 'anon: sensitive';
        comment on column patients.income is 'anon: sensitive';
    """)
    return con


@pytest.mark.parametrize(
    "call",
    [
        "mondrian('patients', k := 4, l := 2.5)",
        "mondrian('patients', l := 3, diversity := 'distinct', cut := 'median')",
        "incognito('patients', l := 2.5, diversity := 'frequency')",
        "incognito('patients', l := 2.5, diversity := 'frequency', max_suppression := 0.1)",
    ],
)
def test_every_class_is_diverse_in_each_column(patients, call):
    patients.execute(f"create table release as from {call}")
    kind = "distinct" if "distinct" in call else "frequency"
    for column in ("disease", "income"):
        least = {"distinct": f"count(distinct {column})", "frequency": f"count(*) / max(n_{column})"}[kind]
        found = patients.execute(f"""
            select min(l) from (
                select {least} as l
                from (select *, count(*) over (partition by age, sex, {column}) as n_{column} from release)
                group by age, sex)
        """).fetchone()
        assert found[0] >= (3 if kind == "distinct" else 2.5)
        measured = dict(patients.execute(f"from l_diversity('release', {QI}, '{column}')").fetchall())
        assert measured[kind] == pytest.approx(found[0])


def test_each_column_is_close_to_the_table(patients):
    patients.execute("create table release as from mondrian('patients', t := 0.3)")
    classes = patients.execute("select classes from class_statistics('release', ['age', 'sex'])").fetchone()
    assert classes[0] > 1
    for column in ("disease", "income"):
        assert patients.execute(f"select t from t_closeness('release', {QI}, '{column}')").fetchone()[0] <= 0.3 + 1e-9


def test_what_a_table_can_meet_names_the_column(patients):
    with pytest.raises(duckdb.Error, match=r"'disease': l = 6 was requested; the largest l this table can meet is 3.5"):
        patients.execute("from mondrian('patients', l := 6)")
    with pytest.raises(duckdb.Error, match=r"so l := 3.5.* and delta := 1/3 are the strictest"):
        patients.execute("from muco('patients', 0.2, tables := 'linear')")


def test_groups_of_muco_are_diverse_in_each_column(patients):
    columns = patients.execute("from patients").fetchnumpy()
    of = {name: attribute(name, list(values)) for name, values in columns.items()}
    table = CodedTable(400, (of["age"], of["sex"]), (of["disease"], of["income"]))
    group = groups_of(table, {"l": 3.0})
    assert group.max() > 5
    for column in ("disease", "income"):
        for number in range(int(group.max()) + 1):
            values = columns[column][group == number]
            assert np.unique(values, return_counts=True)[1].max() * 3 <= len(values)
    released = patients.execute("from muco('patients', 1/3, tables := 'linear')").fetchnumpy()
    for column in ("disease", "income"):
        assert sorted(released[column]) == sorted(columns[column])
