"""A table with columns of every kind, for methods that exchange or average values."""

import pytest


@pytest.fixture
def patients(con):
    """Dates with NULLs, decimals, numbers with infinities, an enum, a hierarchy, and a column that passes through."""
    con.execute("""
        create table patients as
        select case when i % 13 = 0 then null else date '1990-01-01' + (i * 7 % 41)::integer end as born,
            (i * 11 % 23)::decimal(9, 2) + 0.25 as pay, case when i = 7 then 'inf'::double else i % 19 / 4 end as age,
            (['x', 'y', 'z'])[1 + i * 5 % 3]::enum('z', 'y', 'x', 'never') as kind,
            'w' || i * 3 % 8 as ward, 'd' || i % 7 as disease, 'case ' || i as note, i as place
        from range(300) t(i);
        create table wards as
        select 'w' || i as ward, case when i < 3 then 'east' else 'west' end as wing, 'all' as top from range(8) t(i);
    """)
    return con
