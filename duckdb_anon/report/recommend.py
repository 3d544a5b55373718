"""recommend: which method and parameters to take for a table, tried on the table itself.

Calls of the methods (of those that protect individuals, where some have several rows), tried from weak to strong until
one meets `max_risk` or none stronger can be had, release a random sample of the table. Each release
meets the attackers of linkage_risk, who know its call, and answers the same random queries (workload_error, with a
predicate on the sensitive column). The risk compared with `max_risk` is the strongest attacker's: the greater of the
mean `identity` and the `advantage`, by which sensitive values are named better than by a model that has not seen the
target. `per_record` bounds the risk of each record, too: calls whose k or delta allows a larger one are left out. Where
one attacker's success with a quarter of the targets is four standard errors above `max_risk`, a quarter is all that is
tried. What cannot be measured on a release is NULL, and `note` says why. Measures nothing of its own
and promises nothing: a mean risk over a sample is an estimate, the guarantee is the method's. The rows come with the
call, so temporary tables work; the trials run in a database of their own, in memory, and nothing is written to the
caller's. Cost: steps times (the method twice + linkage_risk + workload) on `rows` rows.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from duckdb_anon.engine.catalog.column_roles import ROLE_PARAMETERS
from duckdb_anon.engine.sql_quoting import ident, literal
from duckdb_anon.measures.queries.workload_error import workload_error
from duckdb_anon.measures.risk.linkage_risk import P_MATCH, TARGETS
from duckdb_anon.model.errors import ParameterError, listed, nearest
from duckdb_anon.model.function_specs import ColumnInfo, Method, Parameter, Params, Roles, Task, fields
from duckdb_anon.model.parameters import MOST_SEED
from duckdb_anon.report.candidate_search import Candidate, try_candidates

_ON_REQUEST = ("rank_swap", "merging")
"""Methods that bound no risk by themselves: tried where they are named."""
RETURNS = fields(
    "method VARCHAR, call VARCHAR, identity DOUBLE, attribute DOUBLE, advantage DOUBLE, information_loss DOUBLE, "
    "query_error DOUBLE, query_error_median DOUBLE, meets_max_risk BOOLEAN, on_frontier BOOLEAN, rows BIGINT, "
    "seconds DOUBLE, note VARCHAR"
)


def plan(context: Any, params: Params) -> tuple[Mapping[str, Any], dict[str, str]]:
    """Say what the trials need: methods, a sample, hierarchies, roles and options."""
    relation = context.relation("tbl")
    roles = context.roles(relation, needs=("qi",))
    seed = params["seed"] if params["seed"] is not None else secrets.randbelow(2**31)
    columns = (*roles.qi, *roles.sensitive, *((roles.person,) if roles.person else ()))
    row = ", ".join(f"{ident(info.name)}: {ident(info.name)}" for info in columns)
    numbered = f"(select *, row_number() over () - 1 as _anon_rn from {relation.sql})"
    # by a hash of the row's number, or its person's, so that a seed finds the same rows again and persons stay whole
    drawn = ident(roles.person.name) if roles.person else "_anon_rn"
    sampled = f"(select * from {numbered} order by hash({drawn}, {seed}), _anon_rn limit {params['rows']})"
    trees = dict.fromkeys(info.hierarchy for info in columns if info.hierarchy)
    named = {info.hierarchy: info for info in columns if info.hierarchy}
    lists = {"t0": f"(select list({{{row}}}) from {sampled})"}
    lists |= {f"h{k}": context.tree_sql(named[tree]) for k, tree in enumerate(trees)}
    options, on_sensitive = _workload(params["workload"], len(roles.qi))
    on_sensitive = on_sensitive and bool(roles.sensitive)
    given = {p.name: p.check("recommend", context.arguments.get(p.name)) for p in ROLE_PARAMETERS}
    planned = {
        "tbl": relation.given,
        "trees": list(trees),
        # to be repeated in the recommended calls
        "roles": {name: value for name, value in given.items() if value is not None},
        "unseen": not relation.visible and context.arguments.get("categorical") is None,
        "visible": relation.visible,
        "candidates": [asdict(Candidate.of(method)) for method in _chosen(context.methods, params["methods"])],
        "labels": [[info.name, _label(info, roles, list(trees))] for info in columns],
        "workload": options,
        "on_sensitive": on_sensitive,
        **{name: params[name] for name in ("max_risk", "per_record", "p_match", "targets", "seconds")},
        "seed": seed,
    }
    return planned, lists


def _label(info: ColumnInfo, roles: Roles, trees: list[str | None]) -> str:
    """The comment that gives a column of the sample its role and kind."""
    if info == roles.person:
        return "anon: person"
    role = "quasi" if info in roles.qi else "sensitive"
    if info.hierarchy:
        return f"anon: {role} hierarchy=tree{trees.index(info.hierarchy)}"
    return f"anon: {role}{' categorical' if info.kind == 'nominal' else ''}"


def _chosen(methods: Mapping[str, Method], given: Sequence[str] | None) -> list[Method]:
    """The methods to try, checked; all that have sweeps where none is named."""
    able = {name: method for name, method in methods.items() if method.sweeps}
    if given is not None and not given:
        raise ParameterError("methods := [] names none; leave it out for all that suit the table")
    unknown = [name for name in given or () if name not in able]
    if unknown:
        raise ParameterError(f"methods has '{unknown[0]}'{nearest(unknown[0], able)}; it tries {listed(able)}")
    return [method for name, method in able.items() if (name not in _ON_REQUEST if given is None else name in given)]


def _workload(given: Mapping[str, Any] | None, qi: int) -> tuple[str, bool]:
    """Arguments of workload_error as SQL text, and whether the sensitive column has a predicate too."""
    known = {p.name: p for p in workload_error.parameters if p.name not in workload_error.tables}
    options: dict[str, Any] = {"n": 300, "dims": min(4, qi), "predicate_on_sensitive": True}
    for name, value in (given or {}).items():
        if name not in known:
            raise ParameterError(
                f"workload has no '{name}'{nearest(name, known)}; it takes what workload_error takes: {listed(known)}"
            )
        options[name] = known[name].check("recommend", value)
    on_sensitive = bool(options.pop("predicate_on_sensitive"))
    given_options = [f"{name} := {literal(value)}" for name, value in options.items() if value is not None]
    return ", ".join(given_options), on_sensitive


MEASURE = Task(
    name="recommend",
    summary="tries methods and parameters on a sample: risk, query error and the SQL call of each, best first",
    paper="see linkage_risk, information_loss and workload_error",
    example="FROM recommend('people', max_risk := 0.02, methods := ['muco', 'anatomy'], rows := 2000)",
    section="Choosing",
    smallest="methods := ['mondrian'], rows := 20",
    parameters=(
        Parameter("max_risk", "maximum risk by the strongest attacker, in [0, 1]", "number", 0.05, low=0, high=1),
        Parameter(
            "per_record",
            "true: max_risk bounds the risk of each record by the call's k or delta too, not the mean alone; methods "
            "without such a bound are not tried",
            "boolean",
            False,
        ),
        Parameter("workload", "options of workload_error, {'dims': 2, 'aggregate': 'sum(salary)'}", "mapping"),
        Parameter(
            "methods",
            "names of the methods to try (default: all that suit the table, except rank_swap and merging)",
            "names",
        ),
        Parameter("rows", "records of the random sample that is tried", "integer", 20_000, low=1, high=1_000_000),
        P_MATCH,
        replace(TARGETS, default=1000),
        Parameter(
            "seconds",
            "time limit, without compiling: calls that are not tried by then say so in `note`; a method takes a third",
            "number",
            60.0,
            above=0,
        ),
        *ROLE_PARAMETERS,
        Parameter("seed", "whole number from 0 that makes the trials repeatable", "integer", low=0, high=MOST_SEED),
    ),
    returns=RETURNS,
    plan=plan,
    work=try_candidates,
    database="own",
)
