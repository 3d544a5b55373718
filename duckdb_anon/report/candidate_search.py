"""The trials of recommend: each call released, attacked and queried in a database of its own."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from threading import Event, Thread
from typing import Any

import duckdb
import pyarrow as pa

from duckdb_anon.engine.catalog.sensitive_coarsening import PARAMETER as EDGES
from duckdb_anon.engine.catalog.sensitive_coarsening import takes_edges
from duckdb_anon.engine.interrupts import stoppable
from duckdb_anon.engine.sql_quoting import ident, literal
from duckdb_anon.kernels.jit import CLOCK
from duckdb_anon.model import progress
from duckdb_anon.model.errors import RequirementError, listed, without_code
from duckdb_anon.model.function_specs import Method, Sweep
from duckdb_anon.model.release_comment import Description, read_arguments
from duckdb_anon.model.release_formats.duckdb_types import is_text, kind_of_type

Step = dict[str, Any]
CARRIERS = 10
EDGED = "rare sensitive texts are joined (sensitive_edges), for as they are they single persons out"
RELAXED = "one sensitive value is too frequent for a larger l: l := 1 limits no sensitive value"
_FEW_TARGETS, _SIGMAS = 200, 4
_PARTS = 3  # a method takes at most this part of the time
_FIGURES = ("identity", "attribute", "advantage", "information_loss", "query_error", "query_error_median")


@dataclass(frozen=True)
class Candidate:
    """A method that may be tried: its name, calls from weak to strong, needed roles, unit, and parameters' names."""

    name: str
    sweeps: tuple[Sweep, ...]
    needs: Sequence[str]
    counts_persons: bool
    takes_edges: bool
    parameters: Sequence[str]

    @property
    def takes_one(self) -> bool:
        """Whether its calls take one sensitive column: of those that need some, all but the ones of lists."""
        return "sensitive" in self.needs and "person" not in self.needs

    @staticmethod
    def of(method: Method) -> Candidate:
        """The candidate that a method is."""
        names = [parameter.name for parameter in method.parameters]
        return Candidate(method.name, method.sweeps, method.needs, method.unit == "person", takes_edges(method), names)


@dataclass(frozen=True)
class Sample:
    """The rows that are tried."""

    rows: int  # how many
    most_l: int | None  # the largest l that classes of them could have, of each sensitive column; None without one
    person: str | None  # the column that identifies individuals
    repeated: bool  # whether an individual has several rows
    edges: str = ""  # the argument that gives rare sensitive texts company, '' where there are none
    left_out: Sequence[str] = ()  # sensitive columns that are not released, as a method takes one


@dataclass(frozen=True)
class Trials:
    """How releases are called, attacked and queried; what planning says of a call of recommend, and its sample."""

    con: duckdb.DuckDBPyConnection
    sample: Sample
    deadline: float  # of `CLOCK`, which stands while functions are compiled
    tbl: str
    trees: Sequence[str]  # names of the hierarchies, `tree0`, `tree1` and so on here
    roles: Mapping[str, Any]  # columns of each role that the recommended call names
    workload: str
    on_sensitive: bool
    max_risk: float
    p_match: float
    targets: int
    seed: int
    seconds: float


def try_candidates(
    con: duckdb.DuckDBPyConnection, planned: Mapping[str, Any], rows: Mapping[str, pa.StructArray]
) -> list[Step]:
    """Try the calls of every candidate; the steps, one mapping a step with the columns of recommend."""
    given = {name: planned[name] for name in Trials.__dataclass_fields__ if name in planned}
    deadline = CLOCK.now() + planned["seconds"]
    _fill(con, rows, planned["labels"])
    if planned["unseen"]:  # planning did not see which quasi-identifiers have no order
        orders = {column: kind_of_type(kind) for column, kind in _types(con).items()}
        nominal = [name for name, label in planned["labels"] if label == "anon: quasi" and orders[name] == "nominal"]
        given["roles"] |= {"categorical": nominal} if nominal else {}
    secrets = [column for column, label in planned["labels"] if label.startswith("anon: sensitive")]
    candidates = [
        Candidate(**{**each, "sweeps": tuple(Sweep(**sweep) for sweep in each["sweeps"])})
        for each in planned["candidates"]
    ]
    # a method that takes one sensitive column is tried with each, the others unlabelled
    passes = [secrets, *([[column] for column in secrets] if len(secrets) > 1 else [])]
    steps: list[Step] = []
    spent: dict[str, float] = {}  # seconds of a method in all its sweeps
    for sensitive in passes:
        sample = _labelled(con, planned["labels"], secrets, sensitive)
        if not planned["visible"]:
            sample = replace(sample, edges="")  # the recommended call would not see the type of the column
        trials = Trials(con, sample, deadline, **given)
        if sensitive != secrets:
            trials = replace(trials, roles={**trials.roles, "sensitive": sensitive[0]})
        suited = [c for c in _suited(candidates, sample) if c.takes_one == (sensitive != secrets) or len(passes) == 1]
        sweeps = [(candidate, sweep) for candidate in suited for sweep in candidate.sweeps]
        if planned["per_record"]:
            bounded = [(candidate, _bounded(sweep, trials.max_risk)) for candidate, sweep in sweeps]
            sweeps = [(candidate, sweep) for candidate, sweep in bounded if sweep is not None]
        for number, (candidate, sweep) in enumerate(sweeps, start=1):
            begun, left = CLOCK.now(), trials.seconds / _PARTS - spent.get(candidate.name, 0.0)
            with progress.running(f"recommend ({number} of {len(sweeps)})"):
                steps += _swept(trials, candidate, sweep, min(deadline, begun + left))
            spent[candidate.name] = spent.get(candidate.name, 0.0) + CLOCK.now() - begun
    _mark_frontier(steps)
    return sorted(steps, key=_rank)


def _fill(con: duckdb.DuckDBPyConnection, rows: Mapping[str, pa.StructArray], labels: Sequence[Sequence[str]]) -> None:
    """Make the table `sample`, the hierarchies `tree{k}` and `queried`, which the workload reads."""
    for name, flat in rows.items():
        if name == "t0" and len(flat) == 0:
            raise RequirementError("the table is empty; there is nothing to try methods on")
        made = "sample" if name == "t0" else f"tree{name[1:]}"
        con.register("_anon_arrived", pa.Table.from_struct_array(flat))
        con.execute(f"create table {ident(made)} as from _anon_arrived")
        con.unregister("_anon_arrived")
    person = next((column for column, label in labels if label == "anon: person"), None)
    con.execute(f"create table queried as from sample qualify row_number() over (partition by {ident(person)}) = 1"
                if person else "create view queried as from sample")  # fmt: skip


def _labelled(
    con: duckdb.DuckDBPyConnection, labels: Sequence[Sequence[str]], secrets: Sequence[str], sensitive: Sequence[str]
) -> Sample:
    """Label the columns, of `secrets` those in `sensitive` alone, and describe the sample."""
    for column, label in labels:
        for table in ("sample", "queried"):
            role = label if column in sensitive or column not in secrets else ""
            con.execute(f"comment on column {table}.{ident(column)} is {literal(role)}")
    person = next((column for column, label in labels if label == "anon: person"), None)
    carriers = f"count(distinct {ident(person)})" if person else "count(*)"
    total, people = con.execute(f"select count(*), {carriers} from sample").fetchall()[0]
    counted = [f"(select {carriers} as n from sample group by {ident(column)})" for column in sensitive]
    most = [con.execute(f"select max(n) from {counts}").fetchall()[0][0] for counts in counted]
    types = _types(con)
    texts = [
        column for column, label in labels
        if column in sensitive and "hierarchy=" not in label and is_text(types[column])
    ]  # fmt: skip
    edges = f", {EDGES.name} := {CARRIERS}" if any(_has_rare(con, ident(text), carriers) for text in texts) else ""
    left_out = [column for column in secrets if column not in sensitive]
    return Sample(int(total), people // max(most) if most else None, person, people < total, edges, left_out)


def _types(con: duckdb.DuckDBPyConnection) -> dict[str, str]:
    return dict(con.execute("select column_name, column_type from (describe sample)").fetchall())


def _has_rare(con: duckdb.DuckDBPyConnection, sensitive: str, carriers: str) -> bool:
    """Whether some sensitive text has too few carriers, and all can be given as many; numbers are joined by default."""
    counts = f"select {sensitive} as v, {carriers} as n from sample group by {sensitive}"
    rare, missing, total = con.execute(
        f"select count(*) filter (n < {CARRIERS} and v is not null), count(*) filter (n < {CARRIERS} and v is null), "
        f"(select {carriers} from sample where {sensitive} is not null) from ({counts})"
    ).fetchall()[0]
    return rare > 0 and missing == 0 and total >= CARRIERS


def _suited(candidates: Sequence[Candidate], sample: Sample) -> list[Candidate]:
    """Those that need no column the sample lacks, and protect individuals where they have several rows; slow last."""
    there = {"qi": True, "person": sample.person is not None, "sensitive": sample.most_l is not None}
    able = [
        c for c in candidates
        if all(there[need] for need in c.needs) and (c.counts_persons or not sample.repeated)
    ]  # fmt: skip
    return sorted(able, key=lambda c: c.name == "incognito")  # whose time grows with the product of the levels


def _swept(trials: Trials, candidate: Candidate, sweep: Sweep, deadline: float) -> list[Step]:
    """Steps of one sweep up to the first that meets the risk or cannot be taken, or up to the limit of time."""
    steps: list[Step] = []
    calls = _calls(candidate, sweep, trials.sample)
    while calls and not (steps and steps[-1]["meets_max_risk"]):
        if CLOCK.now() >= deadline:
            return [*steps, _untried(trials, candidate, calls[0])]
        progress.say(f"{candidate.name} {calls[0]}")
        weaker = _risk(steps[-1]) if steps else None
        try:
            with _ended_at(trials.con, deadline):
                step, released = _step(trials, candidate, sweep, calls[0], weaker)
                if not released and "l" in candidate.parameters and "l := 1" not in calls[0].split(", "):
                    relaxed, released = _step(trials, candidate, sweep, _with_l_1(calls[0]), weaker)
                    if released:
                        step, calls = relaxed, list(dict.fromkeys(map(_with_l_1, calls)))
        except progress.Interrupted:
            progress.tick()  # the user's interrupt ends the call
            return [*steps, _untried(trials, candidate, calls[0])]
        steps.append(step)
        calls = calls[1:] if released else []
    return steps


def _calls(candidate: Candidate, sweep: Sweep, sample: Sample) -> list[str]:
    """Arguments of the calls of a sweep, without an l where there is no sensitive column."""
    edges = sample.edges if candidate.takes_edges else ""
    if sample.most_l is None:
        sweep = replace(sweep, arguments=sweep.arguments.replace(", l := {l}", ""))
    return [call + edges for call in sweep.calls(sample.most_l or 2)]


def _bounded(sweep: Sweep, risk: float) -> Sweep | None:
    """Calls of a sweep that bound the risk of each record by 1 / strength; None where the strength is no such bound.

    >>> _bounded(Sweep("k := {n}", (5, 10, 25)), 0.09).strengths, _bounded(Sweep("k := {n}", (5,)), 0.01).strengths
    ((25,), (100,))
    """
    if not re.search(r"\bk := \{n\}|\bdelta := 1/\{n\}", sweep.arguments):
        return None
    least = math.ceil(1 / risk - 1e-9) if risk > 0 else 0
    strong = tuple(n for n in sweep.strengths if n >= least) if least else ()
    return replace(sweep, strengths=strong or (least,)) if least else None


def _with_l_1(arguments: str) -> str:
    """Arguments of a call that asks for no diversity."""
    found = re.sub(r"\bl := [\d.]+", "l := 1", arguments)
    return found if "l := 1" in found else f"{arguments}, l := 1"


@contextmanager
def _ended_at(con: duckdb.DuckDBPyConnection, deadline: float) -> Iterator[None]:
    """Interrupt the statement that runs on `con` at a time; a kernel under way ends first."""
    over = Event()

    def watch() -> None:
        while not over.wait(max(deadline - CLOCK.now(), 0.01)):  # what is compiled meanwhile moves the end
            if CLOCK.now() >= deadline:
                con.interrupt()

    Thread(target=watch, daemon=True).start()
    try:
        yield
    finally:
        over.set()


def _untried(trials: Trials, candidate: Candidate, arguments: str) -> Step:
    """The row of a call for which no time was left."""
    empty = dict.fromkeys((*_FIGURES, "call", "meets_max_risk", "seconds"))
    is_over = CLOCK.now() >= trials.deadline
    limit = f"seconds := {trials.seconds:g} were over" if is_over else "a method takes a third of seconds at most"
    note = f"not tried: {limit} ({candidate.name} {arguments})"
    return {"method": candidate.name, **empty, "rows": trials.sample.rows, "note": note}


def _step(
    trials: Trials, candidate: Candidate, sweep: Sweep, arguments: str, weaker: float | None
) -> tuple[Step, bool]:
    """Release, attack and query once; what cannot be done leaves its reason in `note`. Tell whether it released."""
    con, sample = trials.con, trials.sample
    step: Step = {"method": candidate.name, **dict.fromkeys(_FIGURES), "rows": sample.rows}
    started = CLOCK.now()
    options = f"{arguments}, row_id := true, seed := {trials.seed}"
    _, problem = _first_row(con, f"create or replace table release as from {candidate.name}('sample', {options})")
    if not problem:  # its NULLs and texts are values, whether the sample has them or not
        made = Description("sample", candidate.name, read_arguments(options) or {}, persons=sample.person is not None)
        con.execute(f"comment on table release is {literal(made.comment())}")
    columns = ""
    if sweep.finds_columns and not problem:  # attributes that stand together in the sliced release
        structs = [kind for kind in con.table("release").types if kind.id == "struct"]
        columns = f", columns := {literal([[name for name, _ in kind.children] for kind in structs])}"
    roles = "".join(f", {name} := {literal(value)}" for name, value in trials.roles.items())
    step["call"] = f"FROM {candidate.name}({literal(trials.tbl)}, {arguments}{columns}{roles})"
    notes = [problem] if problem else [sweep.note, EDGED if sample.edges and sample.edges in arguments else ""]
    if sample.left_out and not problem:
        notes.append(f"{listed(sample.left_out)} is not released: the method takes one sensitive column")
    notes.append(RELAXED if "l := 1" in arguments.split(", ") else "")
    if not problem:
        notes.append(_attacked(trials, f"{candidate.name}({arguments}{columns})", step, weaker))
        for names, question in _questions(trials, candidate):
            answer, reason = _first_row(con, question)
            step.update(zip(names, answer, strict=False))
            notes.append(reason)
    step["seconds"] = CLOCK.now() - started
    risk = _risk(step)
    step["meets_max_risk"] = None if risk is None else risk <= trials.max_risk
    if risk is not None and risk > trials.max_risk:
        which = "identity" if risk == step["identity"] else "advantage"
        notes.insert(0, f"{which} {risk:.4g} is above max_risk := {trials.max_risk:g}")
    note = "; ".join(note for note in notes if note)
    for number, tree in enumerate(trials.trees):
        note = note.replace(literal(f"tree{number}"), literal(tree))
    step["note"] = note or None
    return step, not problem


def _first_row(con: duckdb.DuckDBPyConnection, statement: str) -> tuple[Sequence[Any], str]:
    """The first row of a statement's answer, and why there is none. Interrupted: when the user stops the call."""
    try:
        with stoppable():
            return con.execute(statement).fetchall()[0], ""
    except duckdb.Error as error:
        return (), without_code(error)


def _attacked(trials: Trials, call: str, step: Step, weaker: float | None) -> str:
    """Put the strongest attacker's success into a step; return a note on it. `weaker`: the risk of a weaker call."""

    def strongest(targets: int, attackers: str) -> tuple[Sequence[Any], str]:
        return _first_row(
            trials.con,
            "select identity, attribute, advantage from linkage_risk('sample', 'release', "
            f"p_match := {trials.p_match}, targets := {targets}, seed := {trials.seed}, call := {literal(call)}, "
            f"attackers := {attackers}) "
            "where attacker = 'strongest'",
        )

    def is_far_above(risk: float | None) -> bool:
        return risk is not None and risk - _SIGMAS * math.sqrt(max(risk * (1 - risk), 0.0) / few) > trials.max_risk

    # a quarter of the targets will do where one attacker's success is beyond chance above the largest risk
    most = min(trials.targets, trials.sample.rows)
    few = max(_FEW_TARGETS, most // 4)
    figures = ("identity", "attribute", "advantage")
    targets = most
    if few < most and (weaker is None or is_far_above(weaker)):
        first = dict(zip(figures, strongest(few, "['likelihood']")[0], strict=False))
        targets = few if is_far_above(_risk(dict.fromkeys(figures) | first)) else most
    answer, reason = strongest(targets, "['all']")
    step.update(zip(figures, answer, strict=False))
    return reason or (f"so far above max_risk that {targets} targets were enough" if targets < most else "")


def _questions(trials: Trials, candidate: Candidate) -> list[tuple[tuple[str, ...], str]]:
    """Further questions to each release, with the columns the answers go to."""
    # a release of a record per individual answers for individuals, and has no plain sensitive value for a predicate
    lists = "person" in candidate.needs
    table, sensitive = literal("queried" if lists else "sample"), literal(trials.on_sensitive and not lists)
    loss = "select iloss from information_loss('sample', 'release') where attribute = '(all)'"
    error = (
        f"select avg(abs(relative_error)), median(abs(relative_error)) from workload_error({table}, 'release', "
        f"{trials.workload}, predicate_on_sensitive := {sensitive}, seed := {trials.seed})"
    )
    return [(("information_loss",), loss), (("query_error", "query_error_median"), error)]


def _risk(step: Step) -> float | None:
    """What is compared with the largest risk: re-identification, or inference beyond that of a model."""
    if step["identity"] is None or (step["advantage"] is None and step["attribute"] is not None):
        return None
    return float(max(step["identity"], step["advantage"] or 0.0))


def _mark_frontier(steps: Sequence[Step]) -> None:
    """A step is on the frontier when no other has at most its risk and its error, and less of one."""
    points = [(_risk(s), s["query_error"]) for s in steps]
    measured = [(risk, error) for risk, error in points if risk is not None and error is not None]
    frontier = [
        (risk, error)
        for risk, error in measured
        if not any(r <= risk and e <= error and (r, e) != (risk, error) for r, e in measured)
    ]
    for step, point in zip(steps, points, strict=True):
        step["on_frontier"] = point in frontier


def _rank(step: Step) -> tuple[int, float]:
    risk, error = _risk(step), step["query_error"]
    if error is None:
        return 3, 0.0
    if risk is None:
        return 2, float(error)
    return (0, float(error)) if step["meets_max_risk"] else (1, risk)
