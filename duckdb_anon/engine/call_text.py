"""What a call of a method was resolved to, for the one who writes its release's description.

The planner runs on the thread that executes the statement, so a note is kept a thread. A statement may plan several
calls (a table argument may call a method itself): the first that began is the outermost, the statement's own.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from duckdb_anon.engine.catalog import Relation
from duckdb_anon.model.function_specs import ColumnInfo, ColumnPlan, Method, Params, Roles
from duckdb_anon.model.release_comment import HIDDEN, Description, Label, attributes_comment, table_name
from duckdb_anon.model.release_formats import CHANNELS
from duckdb_anon.model.release_formats.duckdb_types import kind_of_type


@dataclass(frozen=True)
class Recorded:
    """One planned call of a method.

    Attributes:
        entry: the method.
        relation: its table argument, resolved.
        roles: columns by role.
        arguments: the call's own arguments that were given; neither roles nor the table.
        params: its parameters, defaults and what was settled while planning filled in.
        layout: the released columns.
    """

    entry: Method
    relation: Relation
    roles: Roles
    arguments: Mapping[str, Any]
    params: Params
    layout: tuple[ColumnPlan, ...]

    def description(self, date: str, version: str) -> Description:
        """What the release's comment says."""
        told = {name: value for name, value in self.arguments.items() if name not in HIDDEN}
        persons = self.entry.unit == "person" and self.roles.person is not None
        return Description(table_name(self.relation.given), self.entry.name, told, date, version, persons)

    def column_comments(self) -> dict[str, str]:
        """Comment of each released column that shows one of the original's, by its name."""
        labels = self._labels()
        comments: dict[str, str] = {}
        for plan in self.layout:
            own = labels.get(plan.column or plan.name)
            held = {f.name: labels[f.column or f.name] for f in plan.fields if (f.column or f.name) in labels}
            if plan.fields and held and plan.name != CHANNELS.key:
                comments[plan.name] = attributes_comment(held)
            elif not plan.fields and own is not None:
                comments[plan.name] = own.comment()
        return comments

    def _labels(self) -> dict[str, Label]:
        labels = {info.name: self._label("quasi", info) for info in self.roles.qi}
        labels |= {info.name: self._label("sensitive", info) for info in self.roles.sensitive}
        labels |= {info.name: Label("insensitive") for info in self.roles.keep}
        if self.roles.person is not None:
            labels[self.roles.person.name] = Label("person")
        return labels

    def _label(self, role: str, info: ColumnInfo) -> Label:
        categorical = info.kind == "nominal" and kind_of_type(info.type) == "ordered"
        return Label(role, categorical, info.hierarchy)


class _Notes(threading.local):
    """The thread's note, if one is being taken."""

    check: Callable[[Recorded], None] | None = None
    outermost: object | None = None
    recorded: Recorded | None = None


_notes = _Notes()


@contextmanager
def recording(check: Callable[[Recorded], None]) -> Iterator[Callable[[], Recorded | None]]:
    """Note the outermost call planned on this thread inside the block.

    Args:
        check: called with it before it runs; an AnonError it raises is the call's own.

    Yields:
        A function that returns the call, None as long as no method was planned.
    """
    _notes.check, _notes.outermost, _notes.recorded = check, None, None
    try:
        yield lambda: _notes.recorded
    finally:
        _notes.check, _notes.outermost, _notes.recorded = None, None, None


def begin(call: object) -> None:
    """Note that the planner takes up a call."""
    if _notes.check is not None and _notes.outermost is None:
        _notes.outermost = call


def note(call: object, recorded: Callable[[], Recorded]) -> None:
    """Keep what the call became, if it is the outermost one."""
    if _notes.check is not None and _notes.outermost is call and _notes.recorded is None:
        found = recorded()
        _notes.check(found)
        _notes.recorded = found
