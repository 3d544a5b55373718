"""Queries that name an original, answered from its release: what makes a dashboard work on what may be shown.

A connection has pairs of names, `people:release`; a query that reads `people` is rewritten to an estimate from
`release` before it runs, with `<measure>_low` and `<measure>_high` where bounds are asked for. What is to be said
of rows that the release does not decide is a Python warning. Every other statement runs as it is.
"""

from __future__ import annotations

import datetime as dt
import decimal
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import duckdb
from sqlglot import exp, parse
from sqlglot.errors import SqlglotError

from duckdb_anon.model.errors import ParameterError
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.quoting import literal
from duckdb_anon.rewrite.marks import NOTE
from duckdb_anon.rewrite.query.trees import step_of

SHAPE = "anon: columns of an original, without its rows"
"""Comment of the view that a published file has in the place of an original."""
_LEVELS = {"true": "sure", "false": "none", "none": "none", "hard": "hard", "sure": "sure", "likely": "likely"}
_QUERY = re.compile(r"(\s|\(|--[^\n]*\n|/\*.*?\*/)*(select|with|from|pivot|table|values)\b", re.IGNORECASE | re.DOTALL)
"""How a text begins that is a query."""
_VALUES = (bool, int, float, str, decimal.Decimal, dt.date, dt.datetime, type(None))


class Rewriter(Protocol):
    """Writes the SQL that estimates an answer."""

    def rewritten(self, query: str, releases: Mapping[str, str], bounds: str) -> str:
        """The SQL of the estimate of one SELECT over originals with releases; `bounds` as for `rewrite_query`."""


@dataclass(frozen=True)
class Answering:
    """Which release answers for which original."""

    releases: Mapping[str, str]  # original, as queries name it and in lower case, to its release
    bounds: str = "none"  # which bounds to add, as `rewrite_query` takes them

    @classmethod
    def of(cls, answer: str | Sequence[str], bounds: str = "false") -> Answering:
        """Read the parameters of a URL: `answer=people:release` (again or after commas for more), `bounds=true`.

        Raises:
            ParameterError: a pair without a colon, an original twice, or bounds that are none.

        Example:
            >>> Answering.of("people:r, visits:v", "true")
            Answering(releases={'people': 'r', 'visits': 'v'}, bounds='sure')
        """
        texts = [answer] if isinstance(answer, str) else list(answer)
        releases: dict[str, str] = {}
        for pair in (part.strip() for text in texts for part in text.split(",")):
            original, _, release = pair.rpartition(":")
            if not original.strip() or not release.strip():
                raise ParameterError(f"answer={pair}: expected ORIGINAL:RELEASE, for instance answer=people:release")
            if fold(original.strip()) in releases:
                raise ParameterError(f"answer={pair}: {original.strip()} is answered by a release already")
            releases[fold(original.strip())] = release.strip()
        if str(bounds).lower() not in _LEVELS:
            raise ParameterError(f"bounds={bounds}: allowed are {', '.join(_LEVELS)}")
        return cls(releases, _LEVELS[str(bounds).lower()])

    @classmethod
    def requested(cls, options: Mapping[str, Any]) -> Answering | None:
        """Read what a URL says of `answer` and `bounds`, each a text or several; None where it says nothing.

        Raises:
            ParameterError: bounds without an original, or as of `of`.

        Example:
            >>> Answering.requested({"answer": ["people:r"], "bounds": ["true"]})
            Answering(releases={'people': 'r'}, bounds='sure')
        """
        if not options:
            return None
        if "answer" not in options:
            raise ParameterError("bounds=... belongs to answer=ORIGINAL:RELEASE, which the URL does not have")
        bounds = options.get("bounds", "false")
        return cls.of(options["answer"], bounds if isinstance(bounds, str) else bounds[0])

    def require_published(self, con: duckdb.DuckDBPyConnection) -> None:
        """Refuse a file that holds an original, or a register of releases, whose key undoes them.

        SUMMARIZE, COPY, query() and views would show the original's rows.
        """
        found = con.execute(
            "select lower(table_name) from duckdb_tables() where not internal union all "
            "select lower(view_name) from duckdb_views() where not internal and comment is distinct from $1",
            [SHAPE],
        ).fetchall()
        names = {name for (name,) in found}
        register = con.execute("select 1 from duckdb_tables() where schema_name = 'anon' and table_name = 'secret'")
        chosen = bool(register.fetchall())
        for original, release in self.releases.items():
            if chosen or original.rpartition(".")[2] in names:
                what = "a register of releases" if chosen else f"{original} itself"
                raise ParameterError(
                    f"answer={original}:{release}: this file holds {what}. Only a file that duckdb-anon publish wrote "
                    "may answer. Publish the release and open that file"
                )

    def rewritten(self, statement: str, parameters: Any, rewriter: Rewriter) -> tuple[str, bool]:
        """A tool's statement as it is to run, and whether it was rewritten (its parameters are then in its text).

        A ParameterError where a parameter's type has no literal, or the text has another statement beside the query.
        """
        if not any(original.rpartition(".")[2] in fold(statement) for original in self.releases):
            return statement, False
        try:
            trees = [node for node in parse(statement, read="duckdb") if node is not None]
        except SqlglotError as error:
            if not _QUERY.match(statement):
                return statement, False  # DuckDB will say what is wrong
            # DuckDB may well read it, and would answer it from the original
            raise ParameterError(f"the query could not be parsed: {str(error).splitlines()[0]}") from error
        queries = [tree for tree in trees if isinstance(tree, (exp.Query, exp.Pivot))]
        named = {found for query in queries for table in query.find_all(exp.Table) if (found := self._original(table))}
        if not named:
            return statement, False
        if len(trees) > 1:
            raise ParameterError(
                f"the text has {len(trees)} statements, one of which reads {min(named)}; send one by one"
            )
        query = _filled(trees[0], parameters).sql("duckdb") if parameters else statement
        # tables of a released database are drawn together, so a query over several says which ones there are
        releases = self.releases if len(named) > 1 else {name: self.releases[name] for name in named}
        return rewriter.rewritten(query.strip().rstrip(";"), releases, self.bounds), True

    def _original(self, table: exp.Table) -> str | None:
        if step_of(table) is not None:
            return None
        parts = [fold(part.name) for part in table.parts]
        for original in self.releases:
            qualified = original.split(".")
            shared = min(len(qualified), len(parts))
            if qualified[-shared:] == parts[-shared:]:
                return original
        return None


def _filled(query: exp.Expr, values: Sequence[Any] | Mapping[str, Any]) -> exp.Expr:
    """Put values in the place of `?`, `$1` and `$name`.

    >>> _filled(parse("select $2, $1", read="duckdb")[0], [10, 20]).sql("duckdb")
    'SELECT 20, 10'
    """
    position = 0
    for node in list(query.find_all(exp.Placeholder, exp.Parameter, bfs=False)):
        index: Any = "" if node.this is None else node.name
        if not index:
            index, position = str(position + 1), position + 1
        if not isinstance(values, Mapping):
            index = int(index) - 1 if index.isdigit() else len(values)
        if index not in (values if isinstance(values, Mapping) else range(len(values))):
            raise ParameterError(f"the query asks for the parameter {node.sql('duckdb')}, and there is no value for it")
        value = values[index]
        if not isinstance(value, _VALUES):
            raise ParameterError(f"parameter {node.sql('duckdb')} is a {type(value).__name__}, which has no literal")
        node.replace(exp.convert(value))
    return query


@dataclass(frozen=True)
class RewriteQuery:
    """`rewrite_query` on a connection of DuckDB's own that has the package's functions."""

    con: duckdb.DuckDBPyConnection

    def rewritten(self, query: str, releases: Mapping[str, str], bounds: str) -> str:
        """See `Rewriter`; a ParameterError where there is no such release."""
        call = f"select rewrite_query($1, {literal(releases)}, bounds := '{bounds}')"
        try:
            # to the end: the connection runs another statement next
            text = str(self.con.execute(call, [query]).fetchall()[0][0])
        except duckdb.Error as error:
            for original, release in releases.items():
                if f"'{release}' is not a committed table" in str(error):
                    raise ParameterError(  # no list of the tables: the transaction is over
                        f"answer={original}:{release}: there is no table '{release}' in this file; name a release that "
                        "is"
                    ) from error
            raise
        for line in text.splitlines():
            if line.startswith(NOTE):
                warnings.warn(line.removeprefix(NOTE), stacklevel=4)
            elif not line.startswith("--"):
                break
        return text
