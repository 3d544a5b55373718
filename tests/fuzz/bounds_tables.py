"""Random tables, and the calls that release them in every shape, for `tests.fuzz.bounds`."""

import random

SHAPES = {
    "boxes": ("mondrian('t', {k}{roles})", "mondrian('t', {k}, edges := 'tight'{roles})",
     "incognito('t', {k}{roles})", "mondrian('t', {k}, mode := 'relaxed'{roles})", "probabilistic('t', {k}{roles})"),
    "suppressed": ("incognito('t', {k}, max_suppression := 0.3{roles})",
     "incognito('t', {k}, max_suppression := 1{roles})"),
    "buckets": ("anatomy('t', 1{roles})", "anatomy('t', 2{roles})"),
    "slices": ("slicing('t', 1{roles})", "slicing('t', 2{roles})"),
    "lists": ("one_to_m_generalize('t', {k}, 1{person})", "rmr('t', {k}{person})"),
    "randomized": ("rr_distort('t', p := 0.8{roles})", "rr_distort('t', p := 1{roles})",
     "rr_distort('t', p := 0.7, scope := 'qi'{roles})", "rr_distort('t', p := 0.8, scope := 'sensitive'{roles})"),
    "unbounded": ("merging('t', 2{roles})", "muco('t', 0.5{roles})", "composition('t', {k}{roles})",
     "hybrid('t', {k}{roles})", "microaggregate('t', {k}{roles})", "rank_swap('t', 10{roles})",
     "laplace_on_groups('t', {k}, 1.0{plain})"),
}  # fmt: skip
SELDOM = ("slices", "suppressed", "unbounded")
"""Shapes of few hard bounds, or none: a tenth as often as the others."""
QUASI = ("age", "born", "weight", "sex", "region", "seen", "cost")


def table(rng: random.Random, rows: int) -> list[str]:
    """Statements that make the table `t` and its tree."""
    null = rng.choice((0.0, 0.1, 0.3))
    ill = null * rng.choice((0, 0, 1))
    ills = ["flu", "cold", "acne", "gout", "mumps", *(f"x{i}" for i in range(rng.choice((0, 0, 25))))]

    def or_null(value: str, share: float = null) -> str:
        return f"case when random() < {share} then null else {value} end"

    wide = rng.choice((6, 30, 90))
    columns = (
        f"{or_null(f'(random() * {wide})::integer - 3')} as age",
        f"{or_null(f'''date '1970-01-01' + (random() * {wide * 20})::integer''')} as born",
        f"{or_null(f'round(random() * {wide}, {rng.choice((0, 1, 3))}) - 2')}::{rng.choice(('double', 'float', 'decimal(9,3)'))}"
        " as weight",
        or_null("(['F', 'M', 'X', ''])[1 + (random() * 3)::integer]") + " as sex",
        or_null("(['n1', 'n2', 's1', 's2', 's3'])[1 + (random() * 4)::integer]") + " as region",
        or_null(f"timestamp '2020-01-01' + to_hours((random() * {wide * 9})::integer)") + " as seen",
        or_null(f"({ills})[1 + (random() ** {rng.choice((1, 1, 2))} * {len(ills) - 1})::integer]", ill)
        + " as disease",
        or_null("(random() * 100)::integer - 20") + " as cost",
        f"'p' || (i // {rng.choice((1, 1, 3))}) as who",
    )  # fmt: skip
    return [
        f"select setseed({rng.random()})",
        f"create or replace table t as select {', '.join(columns)} from range({rows}) as r(i)",
        "create or replace table tree as select * from (values ('n1', 'north', '*'), ('n2', 'north', '*'), "
        "('s1', 'south', '*'), ('s2', 'south', '*'), ('s3', 'south', '*')) v(leaf, half, everything)",
        "create or replace table ills as select * from (values ('flu', 'hot', '*'), ('cold', 'hot', '*'), "
        "('acne', 'skin', '*'), ('gout', 'old', '*'), ('mumps', 'hot', '*')) v(leaf, kind, everything) "
        "union all select 'x' || i, 'kind ' || i // 4, '*' from range(25) as r(i)",
    ]


def roles_of(rng: random.Random, template: str) -> tuple[str, str, list[str]]:
    """Role arguments of a method's call, and of a measure's; columns that are released as they are."""
    complete, of_persons = "{roles}" not in template, "{person}" in template
    quasi = list(QUASI) if complete else rng.sample(QUASI, rng.choice((1, 2, 2, 3, 4)))
    trees = {"region": "tree"} if "region" in quasi and rng.random() < 0.5 else {}
    exact = [] if complete else [name for name in QUASI if name not in quasi]
    kept_as_is = (
        exact + quasi * ("anatomy" in template or "'sensitive'" in template) + ["disease"] * ("'qi'" in template)
    )
    remaining = "" if complete else f", keep := {exact}"
    common = f", qi := {quasi}, sensitive := 'disease'"
    if of_persons:
        common, trees = f"{common}, person := 'who'", trees | {"disease": "ills"}
    common += f", hierarchies := {trees}" if trees else ""
    return common + remaining + (", changing := 'set'" if of_persons else ""), common, kept_as_is
