"""From what a release carries to the parts a rewritten query reads it through.

Which column carries what is decided in `duckdb_anon.model.release_formats`; here each kind of cell gets its part:
exact values
are expressions over a released row, everything else is listed, weighed or inverted by a part of its own.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from duckdb_anon.model.errors import RewriteError
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.learnt import Spread
from duckdb_anon.model.release_formats import Content, Contents, Weight
from duckdb_anon.model.release_formats.duckdb_types import is_text, without_enums
from duckdb_anon.rewrite.query.tables import TableInfo, box_type, contents_of, list_type
from duckdb_anon.rewrite.query.template import column as quoted
from duckdb_anon.rewrite.query.template import multiplied, select, tree
from duckdb_anon.rewrite.shapes.intervals import IntervalPart
from duckdb_anon.rewrite.shapes.inverted import RandomizedPart
from duckdb_anon.rewrite.shapes.learnt_parts import LearntIntervals, LearntNodes, LearntSets, learnable
from duckdb_anon.rewrite.shapes.listed import BagPart, NodePart, SetPart
from duckdb_anon.rewrite.shapes.parts import ROW, Part, aliased
from duckdb_anon.rewrite.shapes.person_lists import ItemPart, MemberPart
from duckdb_anon.rewrite.shapes.released import Model
from duckdb_anon.rewrite.shapes.replaced import RetainedPart
from duckdb_anon.rewrite.shapes.slices import SlicePart


def model_of(release: TableInfo, original: TableInfo, spread: Spread = "uniform") -> Model:
    """Read a release.

    Args:
        release: the release.
        original: its original.
        spread: how the rows of a generalized cell are spread over its values.

    Raises:
        RewriteError: when the planner cannot see its columns, or cannot read one of them.
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
    listed = next((content.carrier for content in contents.columns.values() if _lists_values(content)), None)
    if listed is not None:
        raise RewriteError(
            f"{release.name} lists sensitive values of '{listed}', of which {original.name} has one a row: of persons "
            "with several rows they are read as nodes of a hierarchy, as one_to_m_generalize() releases them "
            f"(hierarchies := {{'{listed}': 'TREE'}}), and what one value may be stands in quasi-identifiers (qi := "
            f"'{listed}')"
        )
    builder = _Builder(release, original, contents, spread)
    exact: dict[str, exp.Expr] = {}
    parts: list[Part] = []
    for fields in contents.slices().values():
        parts.append(builder.permuted(fields))
    for content in contents.columns.values():
        if content.field:
            continue
        part = builder.part(content)
        if part is None:
            exact[content.column] = cell_of_row(content)
        else:
            parts.append(part)
    alone = {weight.says: weight.column for weight in contents.weights} if len(contents.weights) == 1 else {}
    missing = None
    if "missing" in alone:
        most = "select max({number}) from {release}"
        missing = tree(f"({most})", number=field_of_row(alone["missing"]), release=aliased(release, ROW))
    return Model(
        release,
        exact,
        tuple(parts),
        multiplied([_weight(weight, release) for weight in contents.weights]) if contents.weights else None,
        contents.bounded and _generalized(contents, release, original) and not _numbers_persons(contents, original),
        contents.complete,
        field_of_row(alone["rate"]) if "rate" in alone else None,
        missing,
        field_of_row(contents.bucket) if contents.bucket else None,
        {
            content.column: (content.value_type, content.original_type)
            for content in contents.columns.values()
            if content.value_type and content.original_type and content.value_type != content.original_type
        },
        bool(contents.edges),
    )


def _lists_values(content: Content) -> bool:
    """Whether all that a person has stands where the original has one value: her rows are not counted then."""
    return content.cell == "items" and list_type(content.original_type) is None


def _generalized(contents: Contents, release: TableInfo, original: TableInfo) -> bool:
    """Whether labels of the release are those of generalized cells, and so its rows those of the original.

    Labels of a sensitive column do not say so, nor do leaves: both stand where quasi-identifiers have been replaced.
    """
    secret = {fold(name) for name, role in original.roles.items() if role == "sensitive"}

    def says_so(content: Content) -> bool:
        if content.field or content.cell != "node":
            return bool(content.field) or content.cell != "value"
        known = release.generalized
        shown = known is None or not is_text(content.original_type) or fold(content.column) in known
        return shown and fold(content.column) not in secret

    cells = contents.columns.values()
    # a release of values alone is asked elsewhere, by its weights
    return not any(content.cell == "node" for content in cells) or any(says_so(content) for content in cells)


def _numbers_persons(contents: Contents, original: TableInfo) -> bool:
    """Whether a release has a row a person and different value of hers: records that are alike are one row of it."""
    return any(role == "person" and fold(name) in contents.columns for name, role in original.roles.items())


def field_of_row(*path: str) -> exp.Expr:
    """A column of a released row, or a field inside it."""
    found: exp.Expr = quoted(path[0], ROW)
    for step in path[1:]:
        found = exp.Dot(this=found, expression=exp.to_identifier(step, quoted=True))
    return found


def cell_of_row(content: Content) -> exp.Expr:
    """The cell of a released row; declared texts as texts where the original's are: their order is another one.

    Args:
        content: a column of the original.
    """
    cell = field_of_row(*([content.carrier, content.field] if content.field else [content.carrier]))
    plain = without_enums(content.type)
    if plain == content.type or without_enums(content.original_type) != content.original_type:
        return cell
    return exp.Paren(this=exp.Cast(this=cell, to=exp.DataType.build(plain, dialect="duckdb")))


class _Builder:
    """Makes the part of each content."""

    def __init__(self, release: TableInfo, original: TableInfo, contents: Contents, spread: Spread) -> None:
        self.release, self.contents, self.learnt = release, contents, spread == "learnt"
        noisy = [field_of_row(one.column) for one in contents.weights if one.says not in ("rate", "missing")]
        self.rows = tree("sum({rows})", rows=noisy[0]) if noisy else tree("count(*)")
        self.trees: Mapping[str, TableInfo] = {fold(name): tree for name, tree in original.hierarchies.items()}

    def permuted(self, fields: list[Content]) -> Part:
        """The part of a slice."""
        carrier = fields[0].carrier
        inner = {content.column: part for content in fields if (part := self.part(content)) is not None}
        exact = {c.column: cell_of_row(c) for c in fields if c.column not in inner}
        columns = tuple(content.column for content in fields)
        key = field_of_row(self.contents.bucket)
        return SlicePart(fold(carrier), columns, key, self.release, fields=exact, inner=inner)

    def part(self, content: Content) -> Part | None:
        """The part of a column, or of a field of a slice; None where the cell is the value."""
        release, key = self.release, cell_of_row(content)
        stem, columns = content.column, (content.column,)
        if content.truth == "randomized":
            return RandomizedPart(stem, columns, key, release, signed=True, channels=self.contents.channels)
        if content.truth == "replaced":
            retention = field_of_row(self.contents.retention)
            return RetainedPart(stem, columns, key, release, signed=True, retention=retention)
        if content.cell == "interval":
            kind = box_type(content.type) or ""
            if self.learnt and learnable(kind):
                return LearntIntervals(stem, columns, key, release, kind=kind, rows=self.rows)
            return IntervalPart(stem, columns, key, release, kind=kind)
        if content.cell == "set":
            if self.learnt:
                return LearntSets(stem, columns, key, release, rows=self.rows)
            return SetPart(stem, columns, key, release)
        if content.cell == "counts":
            bucket = field_of_row(self.contents.bucket) if self.contents.bucket else key
            return BagPart(stem, columns, bucket, release, column=key)
        if content.cell in ("node", "nodes"):
            return self._nodes(content, (stem, columns, key))
        return None

    def _nodes(self, content: Content, common: tuple[str, tuple[str, ...], exp.Expr]) -> Part:
        stem, columns, key = common
        hierarchy, kind = self.trees[content.column], content.original_type
        if content.cell == "node" and self.learnt:
            return LearntNodes(stem, columns, key, self.release, hierarchy=hierarchy, kind=kind, rows=self.rows)
        if content.cell == "node":
            return NodePart(stem, columns, key, self.release, hierarchy=hierarchy, kind=kind)
        element = list_type(kind)
        if element is None:
            return ItemPart(stem, columns, key, self.release, counted=True, hierarchy=hierarchy, kind=kind)
        return MemberPart(stem, columns, key, self.release, hierarchy=hierarchy, kind=element)


def _weight(weight: Weight, release: TableInfo) -> exp.Expr:
    """How many original rows a released row stands for."""
    number = field_of_row(weight.column)
    if weight.says == "rate":
        return tree("1 / {number}", number=number)
    if weight.says == "missing":
        rows = select("select count(*) from {release}", release=aliased(release, ROW))
        return tree("1 + {number} / {rows}", number=number, rows=rows)
    # a whole number of rows times the largest BIGINT or DECIMAL has no place in their types
    whole = release.types.get(fold(weight.column)) != "DOUBLE"
    return tree("{number}::double", number=number) if whole else number
