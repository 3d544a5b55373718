"""Whether two originals hold the same records, whatever they are called: samples of keyed hashes of their records.

A sample has the records with the smallest hashes, so samples of the same records agree (bottom-k; Broder 1997, On the
resemblance and containment of documents). Records are compared in three kinds: key; quasi-identifiers with sensitive
values; quasi-identifiers alone. Names of columns do not count, and a number is the same number in every type.

Records of different individuals may be equal by chance. In a table of the same population this happens at most as
often as a row of the table has an equal one (Good 1953), and to keys at most as often as the range of numbers is full.
What is above that counts, if it is no error of sampling. Where most records have equal ones, nothing can be said.
Cost: one pass a kind that hashes each row, .3 s of one processor for 1M rows of 8 columns; 64 KB a kind.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import duckdb

from duckdb_anon.engine.records.release_digest import column_types
from duckdb_anon.engine.sql_quoting import ident, literal
from duckdb_anon.model.errors import AnonError, cause_of, one_line
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.release_formats.duckdb_types import is_integer, is_number, is_timestamp, is_zoned

MOST = 8192
"""Number of records in a sample."""
SAME = 0.2
"""Share of the records of the smaller original above which two originals count as one."""
_FEWEST = 10
_ALL = 2**64 - 1
KEY, RECORD, QUASI = "key", "record", "quasi"


@dataclass(frozen=True)
class Sample:
    """A sample of the different records of an original."""

    kind: str  # KEY, RECORD or QUASI
    columns: Sequence[str]  # what a record is
    common: float  # at most so large is the chance that a record of other individuals is equal to one of these
    limit: int  # no record with a hash up to it is left out
    hashes: Sequence[int]  # ascending

    @property
    def tells(self) -> bool:
        """Whether an original with the same records is recognized."""
        return self.share(self) is not None

    def share(self, other: Sample) -> float | None:
        """Share of the smaller original's records that the other one has; None where that may be chance."""
        limit = min(self.limit, other.limit)
        mine, others = ({h for h in sample.hashes if h <= limit} for sample in (self, other))
        fewest = min(len(mine), len(others))
        if fewest < _FEWEST:
            return None
        share = len(mine & others) / fewest
        chance = min(self.common * len(others), other.common * len(mine)) / fewest
        surely = share - 1 / math.sqrt(fewest)  # two standard deviations, at most
        return share if chance < 1 and surely - chance > SAME * (1 - chance) else None


@dataclass(frozen=True)
class Records:
    """The records of an original that are about to be released."""

    con: duckdb.DuckDBPyConnection
    source: str  # what follows FROM
    quasi: Sequence[str]  # columns
    sensitive: Sequence[str]
    key: str  # '' for none
    _made: dict[tuple[str, ...], Sample] = field(default_factory=dict)

    def samples(self, secret: str) -> list[Sample]:
        """A sample of each kind, with the secret of a register."""
        return [self._sample(secret, kind, columns) for kind, columns in self._kinds()]

    def share(self, secret: str, samples: Sequence[Sample]) -> float | None:
        """`Sample.share` of another original's samples, the largest; columns are found by name, else by place."""
        there = {fold(name): name for name in column_types(self.con, self.source)}
        own, shares = dict(self._kinds()), list[float]()
        released = {fold(name) for name in (*self.quasi, *self.sensitive)}
        if not any(fold(name) in released for sample in samples if sample.kind != KEY for name in sample.columns):
            samples = [sample for sample in samples if sample.kind != KEY]  # other facts about the same individuals
        for sample in samples:
            columns = [there[fold(name)] for name in sample.columns if fold(name) in there]
            if len(columns) < len(sample.columns):
                columns = list(own.get(sample.kind, ()))
            if len(columns) == len(sample.columns):
                share = sample.share(self._sample(secret, sample.kind, columns))
                shares += [share] if share is not None else []
        return max(shares, default=None)

    def _kinds(self) -> Iterator[tuple[str, Sequence[str]]]:
        """Kinds of records with their columns."""
        if self.quasi:
            yield QUASI, self.quasi
        if self.sensitive:
            yield RECORD, (*self.quasi, *self.sensitive)
        if self.key:
            yield KEY, (self.key,)

    def _sample(self, secret: str, kind: str, columns: Sequence[str]) -> Sample:
        made = self._made.get((secret, kind, *columns))
        if made is None:
            made = self._made[secret, kind, *columns] = self._drawn(secret, kind, columns)
        return made

    def _drawn(self, secret: str, kind: str, columns: Sequence[str]) -> Sample:
        types = column_types(self.con, self.source)
        texts = ", ".join(f"coalesce({_text(ident(name), types[name])}, '-'), chr(31)" for name in columns)
        named = literal(f"{secret} {kind} ")
        number = f"try_cast(regexp_replace(any_value({ident(columns[0])}::varchar), '\\D', '', 'g') as hugeint)"
        try:
            [(rows,)] = self.con.execute(f"select count(*) from {self.source}").fetchall()
            limit = min(_ALL, _ALL * 4 * MOST // max(rows, 1))
            hashed = f"select *, (md5_number(concat({named}, {texts})) >> 64)::ubigint as h from {self.source}"
            sample, numbers, reach = drawn(self.con, hashed, kind, columns, limit, number if kind == KEY else "null")
        except duckdb.Error as error:  # of a view, for instance
            raise AnonError(f"release: {one_line(error)}") from cause_of(error)
        if kind != KEY:
            return sample
        numbered = sample.hashes and numbers == len(sample.hashes)
        # a key repeats for an individual with several records
        return replace(sample, common=min(1.0, numbers * (_ALL / sample.limit) / reach) if numbered else 0.0)


def drawn(
    con: duckdb.DuckDBPyConnection,
    hashed: str,
    kind: str,
    columns: Sequence[str] = (),
    limit: int = _ALL,
    number: str = "null",
) -> tuple[Sample, int, int]:
    """A sample of the hashes `h` up to a limit of a SELECT, how many different numbers it has, and their range.

    `number`: SQL of the number of the records of one hash.
    """
    hashes, rows, unique, numbers, reach = con.execute(
        f"with counted as (select h, count(*) as n, {number} as number from ({hashed}) where h <= {limit} "
        f"group by h order by h limit {MOST}) select coalesce(list(h order by h), []), sum(n), "
        "count(*) filter (n = 1), count(distinct number), coalesce(max(number) - min(number) + 1, 1) from counted"
    ).fetchall()[0]
    limit = hashes[-1] if len(hashes) == MOST else limit
    return Sample(kind, tuple(columns), 1 - unique / rows if rows else 1.0, limit, hashes), numbers, reach


def _text(value: str, kind: str) -> str:
    """SQL of a value as text, the same text for one number or day in every type; NULL for NULL."""
    if is_timestamp(kind):
        return f"epoch_us({value})::varchar" if is_zoned(kind) else f"replace({value}::varchar, ' 00:00:00', '')"
    if is_number(kind) and not is_integer(kind):
        whole = f"try_cast(case when {value} = floor({value}) then {value} end as hugeint)"
        return f"coalesce({whole}::varchar, {value}::varchar)"
    return f"{value}::varchar"
