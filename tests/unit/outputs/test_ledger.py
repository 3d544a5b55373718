"""What several answers tell together: differences, trackers, and random sessions solved by linear programs."""

import itertools

import numpy as np
import pytest
from scipy.optimize import linprog

from duckdb_anon.cli import main
from duckdb_anon.model.errors import AnonError
from duckdb_anon.outputs import differencing
from duckdb_anon.outputs.answer import answer, catalog_of, read_question
from duckdb_anon.outputs.block import NoRule
from duckdb_anon.outputs.ledger import numbered
from duckdb_anon.serve.approve import approve
from tests.reference.entry_calls import refusal
from tests.unit.outputs.test_rules import asked, made

LEAST = 5


@pytest.fixture
def people(con):
    """200 individuals in 8 groups; one of them has a large amount, and another group has 2."""
    rng = np.random.default_rng(1)
    rows = [("abcd"[k % 4], "fm"[k // 4 % 2], float(x)) for k, x in enumerate(rng.lognormal(3, 0.5, 200).round(2))]
    return made(con, [*rows, ("a", "f", 90000.0), ("e", "f", 7.0), ("e", "m", 9.0)], policy=f"threshold := {LEAST}")


def hidden(con, query):
    return asked(con, query)[0][0] is None


def test_an_answer_that_differs_from_an_earlier_one_by_few_individuals_is_suppressed(people):
    assert not hidden(people, "select count(*) from t where grp in ('a', 'b')")
    assert asked(people, "select count(*) from t where grp in ('a', 'b', 'e')") == [(None, "differencing")]
    assert not hidden(people, "select count(*) from t where grp in ('a', 'b', 'c')")
    assert not hidden(people, "select count(*) from t where grp in ('a', 'b')")  # the same again


def test_a_total_and_its_parts_in_several_queries_do_not_give_the_missing_part(people):
    assert not hidden(people, "select sum(x) from t where sex = 'm' and grp in ('b', 'c')")
    assert not hidden(people, "select sum(x) from t where sex = 'm' and grp in ('a', 'd')")
    assert asked(people, "select sum(x) from t where sex = 'm'") == [(None, "differencing")]


def test_answers_that_divide_the_rows_too_finely_are_compared_one_by_one(people, monkeypatch):
    monkeypatch.setattr(differencing, "_JOINT", 0)
    assert not hidden(people, "select sum(x) from t where sex = 'm' and grp in ('b', 'c')")
    assert not hidden(people, "select count(*) from t where grp in ('a', 'b')")
    assert asked(people, "select count(*) from t where grp in ('a', 'b', 'e')") == [(None, "differencing")]
    assert not hidden(people, "select count(*) from t where grp in ('a', 'b')")


def test_the_general_tracker_is_stopped(people):
    """Denning, Denning and Schwartz 1979: q(C) = q(C or T) + q(C or not T) - q(all)."""
    tracker, few = "sex = 'f'", "grp = 'e'"
    found = [asked(people, f"select count(*) from t{where}")[0][0] for where in
             ("", f" where {few} or {tracker}", f" where {few} or not {tracker}")]  # fmt: skip
    assert None in found


def test_a_difference_that_one_individual_dominates_is_suppressed_for_sums_alone(people):
    assert not hidden(people, "select sum(x) from t where grp in ('b', 'c', 'd')")
    query = "select {} from t where grp in ('b', 'c', 'd') or (grp = 'a' and sex = 'f')"
    assert not hidden(people, query.format("count(*)"))
    assert hidden(people, query.format("sum(x)"))


@pytest.mark.parametrize(("all_of_them", "all_but_two"), [
    ("sum(x), avg(x)", "count(*)"), ("count(*)", "sum(x), avg(x)"), ("var_pop(x), var_samp(x)", "count(*)"),
    ("stddev_pop(x)", "count(*), avg(x), var_pop(x)"), ("quantile_cont(x, 0.5)", "median(x)"),
])  # fmt: skip
def test_differences_between_other_statistics_are_suppressed_too(people, all_of_them, all_but_two):
    assert asked(people, f"select {all_but_two} from t where grp in ('b', 'c')")[0][-1] is None
    assert asked(people, f"select {all_of_them} from t where grp in ('b', 'c', 'e')")[0][-1] == "differencing"


def test_a_variance_and_a_mean_of_all_others_do_not_give_the_amount_of_the_last_one(con):
    """With the number n, mean m and variance v of the others, n + 1 amounts of variance w have (x - m)^2 known."""
    rng = np.random.default_rng(3)
    amounts = rng.lognormal(3, 0.5, 60).round(2)
    rows = [("a" if k else "b", "f", float(x)) for k, x in enumerate(amounts)] + [("c", "m", 9.0)] * 20
    made(con, rows, policy=f"threshold := {LEAST}")
    n, mean, variance, _ = asked(con, "select count(*), avg(x), var_pop(x) from t where grp = 'a'")[0]
    whole = float(np.std(amounts))
    squared = (whole**2 - n / (n + 1) * variance) * (n + 1) ** 2 / n
    assert min(abs(mean + sign * squared**0.5 - amounts[0]) for sign in (-1, 1)) < 0.001  # the attack works
    assert asked(con, "select stddev_pop(x) from t where sex = 'f'") == [(None, "differencing")]


def test_a_changed_row_is_another_row_and_one_that_comes_tells_nothing(people):
    assert not hidden(people, "select sum(x) from t where sex = 'm'")
    people.execute("update t set x = x + 1 where grp = 'e' and sex = 'm'")
    assert hidden(people, "select sum(x) from t where sex = 'm'")
    people.execute("insert into t select 'a', 'm', 50 + range from range(20)")
    assert not hidden(people, "select sum(x) from t where sex = 'm'")


def test_equal_rows_are_told_from_one_another(people):
    people.execute("insert into t select 'z', 'f', 1.5 from range(30)")
    assert not hidden(people, "select count(*) from t where grp = 'z'")
    people.execute("insert into t values ('z', 'f', 1.5)")
    assert hidden(people, "select count(*) from t where grp = 'z'")


def test_rows_of_an_individual_count_as_one_in_differences(con):
    rows = [(k % 40, "ab"[k % 2], "fm"[k // 40 % 2], 10.0 + k % 7) for k in range(400)]
    con = made(con, [*rows, *((40, "c", "f", 1.0) for _ in range(30))], policy=f"threshold := {LEAST}", person=True)
    assert not hidden(con, "select count(*) from t where grp <> 'c'") or not hidden(con, "select count(*) from t")
    assert hidden(con, "select count(*) from t where grp <> 'c'") or hidden(con, "select count(*) from t")


def test_what_an_earlier_answer_shows_is_not_taken_for_hidden(people):
    assert asked(people, "select count(*) from t where grp = 'a'")[0][0] == 51
    found = asked(people, "select grp, count(*) from t where grp in ('a', 'b', 'e') group by rollup (grp)")
    shown = {row[0]: row[1] for row in found}
    assert shown["a"] in (51, None) and (shown["b"] is None or shown[None] is None)


def ask(con, query, user):
    question = read_question("safe_output", catalog_of(con), query)
    return answer(con, "safe_output", question, query, user)


def test_answers_of_all_users_are_compared_unless_the_policy_says_by_user(people):
    query = "select count(*) from t where grp in ({})"
    ask(people, query.format("'a', 'b'"), "ann")
    assert ask(people, query.format("'a', 'b', 'e'"), "bob").values()[0][1] == "differencing"
    people.execute(f"comment on table t is 'anon: outputs(threshold := {LEAST}, ledger := ''user'')'")
    assert ask(people, query.format("'a', 'b', 'e'"), "cat").values()[0][1] is None
    assert ask(people, query.format("'a', 'b', 'e'"), "ann").values()[0][1] == "differencing"


def test_nothing_is_answered_where_the_ledger_cannot_be_written(people, tmp_path):
    people.execute(f"attach '{tmp_path / 'f.duckdb'}' as f; create table f.t as from t")
    people.execute("comment on table f.t is 'anon: outputs()'; detach f")
    people.execute(f"attach '{tmp_path / 'f.duckdb'}' as f (read_only)")
    _, code, _ = refusal(people, "from safe_output('select count(*) from f.t')")
    assert code == "no-ledger"
    assert people.execute("from check_output('select count(*) from f.t')").fetchall()


def test_a_ledger_with_hashes_of_another_version_is_not_compared_with(people):
    assert not hidden(people, "select count(*) from t where grp in ('a', 'b')")
    people.execute("update anon.output_rows set probe = probe - 1")
    _, code, _ = refusal(people, "from safe_output('select count(*) from t')")
    assert code == "no-ledger"


def test_rows_are_numbered_by_content_whatever_their_order():
    known = np.array([5, 7, 7, 9], np.uint64)
    numbers, fresh = numbered(np.array([7, 4, 9, 7, 7, 5], np.uint64), known)
    assert numbers.tolist() == [1, 4, 3, 2, 5, 0] and fresh.tolist() == [4, 7]
    numbers, fresh = numbered(np.array([5, 7, 7, 9, 9], np.uint64), known)
    assert numbers.tolist() == [0, 1, 2, 3, 4] and fresh.tolist() == [9]


def test_the_ledger_shows_what_was_asked_and_decided_and_a_person_may_approve_a_refused_answer(people):
    query = "select count(*) from t where grp = 'e'"
    assert people.execute("from anon_outputs('t')").fetchall() == []
    assert hidden(people, query)
    assert [row.values for row in approve(people, 1, "Eve", "checked by hand")[0].rows] == [["2"]]
    found = people.execute("select number, query, decision, rules, approved_by, why from anon_outputs('t')").fetchall()
    assert found == [
        (1, query, "refused", "primary: threshold", None, None),
        (2, query, "approved", None, "Eve", "checked by hand"),
    ]
    # what was approved is known: it does not leave once more in a difference
    assert hidden(people, "select count(*) from t where grp in ('e', 'd')") is False
    for number, by, why in ((9, "Eve", "because"), (1, "", "because"), (1, "Eve", " ")):
        with pytest.raises(AnonError):
            approve(people, number, by, why)


def test_the_command_approves_and_the_shell_asks(people, tmp_path, capsys):
    file = tmp_path / "people.duckdb"
    people.execute(f"attach '{file}' as f; create table f.t as from t; comment on table f.t is 'anon: outputs()'")
    people.execute("detach f")
    assert main([str(file), "-c", ".safe select count(*) from t where grp = 'e';", "--csv"]) == 0
    assert "primary: threshold" in capsys.readouterr().out
    assert main(["outputs", "approve", str(file), "1", "--by", "Eve", "--why", "checked"]) == 0
    assert capsys.readouterr().out == "count_star()\n2\n"


def session(con, rng, users):
    """Answers of a session of random queries with trackers: (individuals of the cell, statistic, value)."""
    rows = con.execute("select grp, sex, x from t").fetchall()
    known = []
    for turn in range(20):
        groups = rng.choice(list("abcdef"), size=rng.integers(1, 6), replace=False)
        named = ", ".join(f"'{g}'" for g in groups)
        sex = rng.choice(["", " and sex = 'f'", " and sex = 'm'", " or sex = 'f'", " and x < 20", " or x > 60"])
        where = f"{'not ' * int(rng.integers(2))}(grp in ({named}){sex})"
        groups = rng.choice(["", "grp", "sex", "rollup (grp)", "cube (grp, sex)"])
        keys = ["grp"] * ("grp" in groups) + ["sex"] * ("sex" in groups)
        select = ", ".join([*keys, "count(*)", "sum(x)"])
        query = f"select {select} from t where {where}" + (f" group by {groups}" if groups else "")
        inside = np.array([row[0] for row in con.execute(f"select {where} from t").fetchall()])
        try:
            found = ask(con, query, users[turn % len(users)])
        except NoRule:  # one condition reads grp and x
            continue
        for values, _ in found.values():
            labels = dict(zip(keys, values, strict=False))
            cell = np.array([
                is_in and labels.get("grp") in (None, g) and labels.get("sex") in (None, s)
                for is_in, (g, s, _) in zip(inside, rows, strict=True)
            ])  # fmt: skip
            known += [(cell, kind, float(v)) for kind, v in zip(("count", "sum"), values[-2:], strict=True) if v]
    return [x for *_, x in rows], known


def derived(amounts, known):
    """What linear programs over joint atoms derive: counts below the threshold, and amounts within 10%."""
    found = []
    for kind, p in (("count", 0.0), ("sum", 0.1)):
        cells = np.array([cell for cell, k, _ in known if k == kind], dtype=bool).reshape(-1, len(amounts))
        atoms, at = np.unique(cells.T, axis=0, return_inverse=True)
        at = at.reshape(-1)
        sizes = np.bincount(at)
        truth = np.bincount(at, amounts) if kind == "sum" else sizes.astype(float)
        few = np.flatnonzero(sizes < LEAST)
        targets = [(atom,) for atom in few] + [
            pair for pair in itertools.combinations(few, 2) if kind == "count" and sizes[list(pair)].sum() < LEAST
        ]
        for target in targets:
            weights = np.zeros(len(atoms))
            weights[list(target)] = 1
            value = truth[list(target)].sum()
            ends = []
            for side in (1, -1):
                solved = linprog(side * weights, A_eq=atoms.T.astype(float), b_eq=atoms.T.astype(float) @ truth)
                ends.append(side * solved.fun if solved.status == 0 else -side * np.inf)
            if ends[0] >= value * (1 - p) - 1e-6 and ends[1] <= value * (1 + p) + 1e-6:
                found.append((kind, target, value, ends))
    return found


def sessions(con, count, users, seed):
    rng, found, answered = np.random.default_rng(seed), [], 0
    for _ in range(count):
        sizes = rng.choice([2, 3, 8, 15, 30], size=12)
        rows = [(*key, float(x)) for key, size in zip(itertools.product("abcdef", "fm"), sizes, strict=True)
                for x in rng.lognormal(3, 0.8, size).round(2)]  # fmt: skip
        con.execute("drop table if exists anon.outputs; drop table if exists anon.output_rows")
        con = made(con, rows, policy=f"threshold := {LEAST}")
        amounts, known = session(con, rng, users)
        answered += len(known)
        found += derived(amounts, known)
    return found, answered


def test_random_sessions_derive_no_small_count_and_no_amount(con):
    found, answered = sessions(con, 2, ["ann"], 3)
    assert found == [] and answered > 20


@pytest.mark.campaign
def test_sums_of_several_answers_do_not_bound_the_amount_of_few_individuals(con):
    assert sessions(con, 4, ["ann", "bob"], 503)[0] == []


PIECES = [pytest.param(piece, marks=[pytest.mark.weekly] * (piece > 0)) for piece in range(100)]


@pytest.mark.campaign
@pytest.mark.parametrize("piece", PIECES)
@pytest.mark.parametrize("users", [["ann"], ["ann", "bob"]])
def test_a_thousand_random_sessions_derive_no_small_count_and_no_amount(con, users, piece):
    found, answered = sessions(con, 10, users, 100 + piece)
    assert found == [] and answered > 250


@pytest.mark.parametrize("method", ["suppress", "cell_key"])
def test_which_queries_are_refused_does_not_depend_on_the_disease_of_one_individual(con, method):
    """Of all with a disease but one individual: an answer, or an equal one, would say that this one does not have it."""
    found = []
    for disease in (1.0, 2.0):
        rows = [("abcd"[k % 4], "fm"[k // 4 % 2], float(k % 3)) for k in range(240)]
        con.execute("drop table if exists anon.outputs; drop table if exists anon.output_rows")
        made(con, [*rows, ("z", "f", disease)], policy=f"threshold := {LEAST}, method := ''{method}''")
        queries = [
            "x = 1", "x = 1 and grp <> 'z'", "x = 1 and not (grp = 'z' and sex = 'f')", "not (x <> 1 or grp = 'z')",
            "x = 1 and grp = 'z'", "sex = 'f' and x = 1", "sex = 'f' and grp <> 'z' and x = 1",
        ]  # fmt: skip
        asks = [*(f"select count(*) from t where {each}" for each in queries),
                "select grp, count(*) from t where x = 1 group by grp", "select count(x) from t where grp <> 'z'",
                "select x, count(*) filter (grp <> 'z') from t group by x"]  # fmt: skip
        found.append([[row[-1] for row in asked(con, query)] for query in asks])
    assert found[0] == found[1]
    assert [rules for rules in found[0] if rules[:1] == [None]]  # something is answered


@pytest.mark.parametrize("query", [
    "select count(*) from t where x = 1 and not (grp = 'z' and x = 1)", "select count(*) from t where grp = 'z' or x = 1",
    "select case when grp = 'z' then x end, count(*) from t group by 1",
    "select count(*) filter (case when grp = 'z' then x = 1 else x = 2 end) from t",
])  # fmt: skip
def test_a_condition_that_reads_known_and_sensitive_columns_together_has_no_rule(people, query):
    assert refusal(people, f"from safe_output($${query}$$)")[1] == "no-rule"


def test_sensitive_columns_alone_may_stand_in_one_condition(people):
    assert not hidden(people, "select count(*) from t where sex = 'f' and not (x < 10 or x > 40)")
    assert not hidden(people, "select count(*) from t where not (x > 20 or sex = 'm')")


def test_a_fine_answer_does_not_end_the_comparison_of_coarse_ones(people, monkeypatch):
    """Whoever asks for many small groups first would be free to subtract three answers afterwards."""
    monkeypatch.setattr(differencing, "_JOINT", 30)
    asked(people, "select grp, floor(x), count(*) from t group by all")  # more than 30 groups
    assert not hidden(people, "select count(*) from t where sex = 'm' and grp in ('b', 'c')")
    assert not hidden(people, "select count(*) from t where sex = 'm' and grp in ('a', 'd')")
    assert asked(people, "select count(*) from t where sex = 'm'") == [(None, "differencing")]
