"""Slices: STRUCT columns whose cells were permuted inside their buckets.

A cell is as likely as any other of its bucket (Li et al. 2012, Slicing). What is asked of a bucket is one pass over its
rows; the values that the final query sees one by one are counted first, so that rows never meet rows.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from duckdb_anon.model.identifier_case import fold
from duckdb_anon.rewrite.query.template import mapped, multiplied, name, select, tree
from duckdb_anon.rewrite.query.walking import all_of
from duckdb_anon.rewrite.shapes.parts import Part, Request, answer, columns_asked, labelled, same


@dataclass(frozen=True)
class SlicePart(Part):
    """A struct column whose cells were permuted inside their buckets.

    Attributes:
        fields: original column to its field in a row of the release, for fields with values of their own.
        inner: parts of generalized fields, by original column.
    """

    fields: Mapping[str, exp.Expr] = field(default_factory=dict)
    inner: Mapping[str, Part] = field(default_factory=dict)

    @property
    def bucket(self) -> exp.Expr:
        """The bucket, over a row of the release."""
        return self.key

    def shows(self, columns: Collection[str]) -> bool:
        """Whether the release shows the values of columns, none of them generalized.

        Args:
            columns: some of its columns, folded.
        """
        return not set(columns) & set(self.inner)

    def shares(self, requests: Sequence[Request], labels: Sequence[str]) -> exp.Select:
        """What is asked of a bucket's cells, which are as likely; generalized ones are listed."""
        if not self.shows({column for one in requests for column in columns_asked(one)}):
            return super().shares(requests, labels)
        answers = [self.of_bucket(one) for one in requests]
        return select(
            "select {key} as _cell, {answers} from {release} group by {key}",
            answers=[labelled(one, label) for one, label in zip(answers, labels, strict=True)],
            release=self.source(),
            key=self.key,
        )

    def of_bucket(self, request: Request) -> exp.Expr:
        """What a request asks for, as an aggregate over the rows of a bucket, of fields that the release shows.

        Args:
            request: what is asked.
        """
        return self._of_rows(answer(request, even=True))

    def tallied(self, used: Sequence[str], conditions: Sequence[exp.Expr]) -> exp.Select | None:
        """The different cells of each bucket, of fields that the release shows."""
        asked = {fold(one.name) for condition in conditions for one in all_of(condition, exp.Column)}
        if not self.shows({*used, *asked}):
            return None
        found = select(
            "select {key} as _cell, {columns}, count(*) as _there from {release} group by all",
            key=self.key,
            columns=self._named(used),
            release=self.source(),
        )
        for condition in conditions:
            found.where(self._of_rows(condition), copy=False)
        return found

    def _named(self, used: Sequence[str]) -> list[exp.Expr]:
        """The fields that have values of their own, under the names of their columns."""
        return [
            exp.Alias(this=tree("{field}", field=node), alias=exp.to_identifier(one, quoted=True))
            for one, node in self.fields.items()
            if one in used
        ]

    def _of_rows(self, node: exp.Expr) -> exp.Expr:
        """An expression over columns, over a row of the release; subqueries have columns of their own."""

        def shown(one: exp.Expr) -> exp.Expr | None:
            if isinstance(one, exp.Query):
                return one
            return self.fields[fold(one.name)] if isinstance(one, exp.Column) and not one.table else None

        return mapped(node, shown)

    def values(self, used: Sequence[str]) -> exp.Select:
        """One row a cell of the bucket, times the values its generalized fields may stand for."""
        inside = {name(f"inside_{column}"): column for column in self.inner if column in used}
        columns = self._named(used)
        columns += [exp.Column(this=exp.to_identifier(one, quoted=True), table=at.copy()) for at, one in inside.items()]
        weights = [tree("{at}._weight / {at}._total", at=at) for at in inside]
        chosen = select(
            "select {columns} from {release}",
            columns=[labelled(tree("{key}", key=self.key), "cell"), *columns, labelled(multiplied(weights), "weight")],
            release=self.source(),
        )
        for at, one in inside.items():
            part = self.inner[one]
            total = "1 as _weight, count(*)" if part.even else "sum(_weight)"
            weighted = select(
                f"select *, {total} over (partition by _cell) as _total from {{values}}",
                values=part.values([one]),
            )
            on = same(part.key, tree("{at}._cell", at=at))
            source = exp.Subquery(this=weighted, alias=exp.TableAlias(this=at.copy()))
            chosen.append("joins", exp.Join(this=source, on=on))
        return chosen
