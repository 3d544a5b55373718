"""What a release says of the original's rows: exact columns, factors, and what a row weighs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from duckdb_anon.model.errors import RewriteError, listed, nearest
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.release_formats import Content, Contents
from duckdb_anon.model.release_formats.duckdb_types import (
    box_type,
    comparable,
    is_enum,
    is_text,
    kind_of_type,
    list_type,
    without_enums,
)
from duckdb_anon.rewrite.factors import (
    BucketFactor,
    Factor,
    GeneralizedFactor,
    ListFactor,
    NodeFactor,
    RandomizedFactor,
    RetainedFactor,
    SetFactor,
    SliceFactor,
    SuppressedFactor,
)
from duckdb_anon.rewrite.interval_factor import IntervalFactor
from duckdb_anon.rewrite.query.tables import TableInfo, contents_of
from duckdb_anon.rewrite.query.trees import all_of, is_aggregate, literal, quoted

_LEARNT_FROM = range(1_000, 500_001)
"""Numbers of rows of a release of cells that plausible tables answer by default."""
_MANY = 5_000
"""Rows from which sums of randomized amounts are answered in closed form."""


@dataclass(frozen=True)
class ReleaseModel:
    """How released rows relate to original rows.

    Attributes:
        release: FROM item of the release.
        exact: original column, folded, to SQL over a released row `r`, for columns that are as they were.
        factors: the independent parts of a row that are not.
        weight: SQL of the number of original rows that a released row stands for; '1' where each stands for one.
        bounded: whether every released row is one original row, so that hard bounds exist.
        complete: whether every original row is behind some released row.
        rate: SQL of the probability that an original row was released, where that alone is the weight; '' otherwise.
        edged: folded columns in which a value may stand for others too, so that no bound on them holds for certain.
        missing: SQL of the number of original rows that were left out, where that alone is the weight; '' otherwise.
        retyped: released and original type of the columns of which these differ.
        count_error: SQL of the error of counts of made records; '' of other releases.
        person: the original's person column where released rows are persons without it, folded; '' otherwise.
    """

    release: str
    exact: Mapping[str, str]
    factors: tuple[Factor, ...]
    weight: str
    bounded: bool = True
    complete: bool = True
    rate: str = ""
    edged: frozenset[str] = frozenset()
    missing: str = ""
    retyped: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    count_error: str = ""
    person: str = ""

    @property
    def has_original_values(self) -> bool:
        """Whether exact columns are the original's: no row was lost, and no value of them replaced."""
        randomized = all(isinstance(factor, RandomizedFactor) for factor in self.factors)
        generalized = self.bounded and not any(factor.signed for factor in self.factors)
        return bool(self.factors) and self.complete and (randomized or generalized)

    @property
    def has_person_lists(self) -> bool:
        """Whether the records of a person are shown as a list of generalized values."""
        return any(factor.counted and not isinstance(factor, ListFactor) for factor in self.factors)

    @property
    def is_noisy(self) -> bool:
        """Whether rows are noisy counts, of which no records can be drawn."""
        return self.weight != "1" and not self.rate and not self.missing

    def factor_of(self, column: str) -> Factor | None:
        """The factor that carries a column, None for an exact one."""
        return next((factor for factor in self.factors if column in factor.columns), None)

    def require(self, column: str, name: str) -> None:
        """Raise unless the release carries a column, or its rows are the persons that the column names."""
        if column == self.person:
            return
        if column not in self.exact and self.factor_of(column) is None:
            carried = [*self.exact, *(column for factor in self.factors for column in factor.columns)]
            raise RewriteError(
                f"column '{column}' is not in the release {name}{nearest(column, carried)}; released are "
                f"{listed(carried)}"
            )
        kind, was = self.retyped.get(column, ("", ""))
        if not comparable(kind, was):
            raise RewriteError(
                f"column '{column}' of the release {name} shows values of type {without_enums(kind)}, and the "
                f"original's are of type {without_enums(was)}, so nothing tells which of these they stand for; give "
                "them the original's type, or, if they are nodes of a hierarchy, name it: hierarchies := "
                f"{{'{column}': 'TREE'}}"
            )


def release_model(release: TableInfo, original: TableInfo, learnt: bool = False) -> ReleaseModel:
    """Read a release's columns.

    Args:
        release: the release.
        original: names, types and hierarchies of the original's columns.
        learnt: whether shares inside generalized cells are learnt.
    """
    if not release.columns:
        raise RewriteError(
            f"the planner cannot see the columns of the release {release.name}; if it is temporary or not "
            "committed yet, commit it as an ordinary table first"
        )
    contents = contents_of(release, original)
    if contents.retention and all(content.truth != "replaced" for content in contents.columns.values()):
        # replaced values are mixed with true ones, and only the role says which column they are in
        raise RewriteError(
            f"{release.name} has a column retention, so some sensitive values were replaced, and no column is known to "
            "be sensitive; say sensitive := '...' or COMMENT ON COLUMN ... IS 'anon: sensitive'"
        )
    exact: dict[str, str] = {}
    factors: list[Factor] = []
    for carrier, fields in contents.slices().items():
        inside = {node.column: _factor(node, release, original, contents, learnt) for node in fields}
        factors.append(
            SliceFactor(
                name=fold(carrier),
                columns=tuple(inside),
                cell=f"r.{quoted(contents.bucket)}",
                release=release.sql,
                fields=tuple((node.column, _cell(node)) for node in fields if inside[node.column] is None),
                generalized=tuple(node for node in inside.values() if isinstance(node, GeneralizedFactor)),
            )
        )
    for content in contents.columns.values():
        if content.field:
            continue
        factor = _factor(content, release, original, contents, learnt)
        if factor is None:
            declared = is_enum(content.original_type) and is_text(content.type)
            exact[content.column] = f"{_cell(content)}::{content.original_type}" if declared else _cell(content)
        else:
            factors.append(factor)
    weights = [_weight(weight.column, weight.meaning, release) for weight in contents.weights]
    alone = {weight.meaning: f"r.{quoted(weight.column)}" for weight in contents.weights} if len(weights) == 1 else {}
    missing = f"(select max({alone['missing']}) from {release.sql} as r)" if "missing" in alone else ""
    return ReleaseModel(
        release=release.sql,
        exact=exact,
        factors=tuple(factors),
        weight=" * ".join(weights) or "1",
        bounded=contents.bounded and _are_records(contents, release, original),
        complete=contents.complete,
        rate=alone.get("rate", ""),
        edged=_edged(original, release, contents),
        missing=missing,
        retyped={
            column.column: (column.value_type, column.original_type)
            for column in contents.columns.values()
            if column.value_type and column.original_type and column.value_type != column.original_type
        },
        count_error=f"(select any_value({quoted(contents.count_error)}) from {release.sql})"
        if contents.count_error
        else "",
        person=_person(original, contents),
    )


def _edged(original: TableInfo, release: TableInfo, contents: Contents) -> frozenset[str]:
    """Columns in which rare values may be joined: sensitive numbers and dates, and others if the call said so.

    Intervals of randomized columns are of what was randomized, and made records are of the table as it is.
    """
    if contents.count_error:
        return frozenset()
    exact = {name for name, content in contents.columns.items() if content.truth != "randomized"}
    if not contents.edges:
        sensitive = {name for name, role in original.roles.items() if role == "sensitive"} - original.hierarchies.keys()
        kinds = {fold(name): kind_of_type(kind) for name, kind in original.columns if name in sensitive}
        return frozenset(name for name in exact if kinds.get(name) == "ordered")
    if release.reader.rows(f"select max({quoted(contents.edges)}) from {release.sql}") == [(1,)]:
        return frozenset()
    return frozenset(exact - {fold(name) for name, role in original.roles.items() if role == "quasi"})


def _person(original: TableInfo, contents: Contents) -> str:
    """The original's person column, '' unless released rows are persons without it."""
    names = {fold(name) for name, role in original.roles.items() if role == "person"} - contents.columns.keys()
    listed = any(content.cell == "nodes" for content in contents.columns.values())
    return next(iter(names), "") if listed else ""


def _are_records(contents: Contents, release: TableInfo, original: TableInfo) -> bool:
    """Whether released rows are the original's, generalized: none was replaced, none stands for equal records.

    Labels of a sensitive column and leaves do not say so: both also stand where quasi-identifiers were replaced.
    """
    if any(role == "person" and fold(name) in contents.columns for name, role in original.roles.items()):
        return False
    sensitive = {fold(name) for name, role in original.roles.items() if role == "sensitive"}

    def is_generalized(content: Content) -> bool:
        if content.field or content.cell != "node":
            return bool(content.field) or content.cell != "value"
        inner = release.generalized
        selected = inner is None or not is_text(content.original_type) or fold(content.column) in inner
        return selected and fold(content.column) not in sensitive

    cells = contents.columns.values()
    return not any(column.cell == "node" for column in cells) or any(map(is_generalized, cells))


def _cell(content: Content) -> str:
    """SQL of a cell over a released row; declared texts as texts where the original's are."""
    sql = f"r.{quoted(content.carrier)}" + (f".{quoted(content.field)}" if content.field else "")
    plain = without_enums(content.type)
    if plain == content.type or without_enums(content.original_type) != content.original_type:
        return sql
    return f"{sql}::{plain}"


def _factor(
    content: Content, release: TableInfo, original: TableInfo, contents: Contents, learnt: bool
) -> Factor | None:
    """The factor of a column, or of a field of a slice; None where the cell is the value."""
    name, columns, cell, table = content.column, (content.column,), _cell(content), release.sql
    trees = {fold(name): tree for name, tree in original.hierarchies.items()}
    noisy = [f"r.{quoted(weight.column)}" for weight in contents.weights if weight.meaning == "rows"]
    records = f"sum({noisy[0]})" if noisy else "count(*)"
    if content.truth == "randomized":
        return RandomizedFactor(name, columns, cell, table, signed=True, channels=contents.channels)
    if content.truth == "replaced":
        retention = f"r.{quoted(contents.retention)}"
        return RetainedFactor(name, columns, cell, table, signed=True, retention=retention)
    if content.truth == "suppressed":
        suppressed = f"struct_extract(r.{quoted(contents.blank)}, {literal(content.carrier)})"
        return SuppressedFactor(name, columns, cell, table, suppressed=suppressed)
    if content.cell == "interval":
        return IntervalFactor(
            name, columns, cell, table, learnt=learnt, records=records, kind=box_type(content.type) or ""
        )
    if content.cell == "set":
        return SetFactor(name, columns, cell, table, learnt=learnt, records=records)
    if content.cell == "counts":
        bucket = f"r.{quoted(contents.bucket)}" if contents.bucket else cell
        return BucketFactor(name, columns, bucket, table, counts=cell)
    if content.cell in ("node", "nodes"):
        kind, counted = content.original_type, content.cell == "nodes"
        if counted and list_type(kind) is not None:
            return ListFactor(
                name, columns, cell, table, hierarchy=trees.get(content.column), kind=list_type(kind) or ""
            )
        tree = trees.get(content.column)
        return NodeFactor(
            name, columns, cell, table, counted=counted, learnt=learnt and not counted, records=records,
            hierarchy=tree, kind=kind,
        )  # fmt: skip
    if content.cell == "items" and list_type(content.original_type) is None:
        raise RewriteError(
            f"{release.name} lists sensitive values of '{content.carrier}', of which {original.name} has one a row: of "
            "persons with several rows they are read as nodes of a hierarchy, as one_to_m_generalize() releases them "
            f"(hierarchies := {{'{content.carrier}': 'TREE'}}), and what one value may be stands in quasi-identifiers "
            f"(qi := '{content.carrier}')"
        )
    return None


def _weight(column: str, says: str, release: TableInfo) -> str:
    """How many original rows a released row stands for."""
    number = f"r.{quoted(column)}"
    if says == "rate":
        return f"(1 / {number})"
    if says == "missing":
        return f"(1 + {number} / (select count(*) from {release.sql}))"
    return f"{number}::double"


def prefers_draws(tree: exp.Query, release: TableInfo, original: TableInfo) -> bool:
    """Whether plausible tables answer better than the closed form: by what the release does to what the query reads.

    They do where generalized cells are read, or permuted values of buckets and slices together with other columns: the
    closed form takes columns for independent there. Small releases of cells teach too little, and drawing large ones
    takes long. They do where several randomized columns are, unless records are counted, or randomized amounts of many
    rows added up: the model that is drawn from has too many of the rare values, however many rows there are, and the
    noise of inverted channels becomes less with the rows. `examples/studies/plausible.py` measures both.
    """
    contents = contents_of(release, original)
    read = {column.name for column in all_of(tree, exp.Column)} & contents.columns.keys()
    columns = [contents.columns[name] for name in read]
    truths = [column.truth for column in columns]
    if any(column.truth == "exact" and column.cell in ("interval", "set", "node") for column in columns):
        return release.reader.size() in _LEARNT_FROM
    randomized = {name for name in read if contents.columns[name].truth == "randomized"}
    if len(randomized) > 1:
        aggregates = [node for node in all_of(tree, exp.Expr) if is_aggregate(node)]
        if not all(_is_inverted(node, randomized) for node in aggregates):
            return True
        return any(isinstance(node, exp.Sum) for node in aggregates) and (release.reader.size() or 0) < _MANY
    return "permuted" in truths and len({column.carrier for column in columns}) > 1


def _is_inverted(node: exp.Expr, randomized: Collection[str]) -> bool:
    """Whether an aggregate is a count, or a sum of randomized amounts alone."""
    amounts = {column.name for column in all_of(node, exp.Column)} if isinstance(node, exp.Sum) else set()
    return isinstance(node, (exp.Count, exp.CountIf)) or (bool(amounts) and amounts <= {*randomized})
