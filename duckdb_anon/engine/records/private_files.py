"""Folders that nobody but their owner reads, and files that appear once they are complete.

What a run spills or keeps between parts holds rows of the original. It lies below one folder of the user's (mode 0700)
in TMPDIR, or /var/tmp, which outlives a restart; never beside an output, which others may read. A folder that is
somebody else's, a link, or open to others is refused.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from glob import escape
from pathlib import Path

from duckdb_anon.model.errors import AnonError

PUBLISHED = 0o640
"""Mode of published files: the owner writes, the group reads."""
_FOLDER = 0o750
_TARGET = "target"
_TOGETHER: ContextVar[dict[Path, Path] | None] = ContextVar("_TOGETHER", default=None)
"""Goal of each complete draft that waits for the others, inside `placed_together`."""
_WRITER = re.compile(r"\.(\d+)\.[0-9a-f]{8}\.part(\.wal)?$")


def private_root() -> Path:
    """The user's folder for rows of originals."""
    user = os.getuid() if hasattr(os, "getuid") else 0
    lasting = Path("/var/tmp")  # noqa: S108 -- a folder inside it that belongs to the user is checked below
    given = os.environ.get("TMPDIR")
    above = Path(given) if given else lasting if os.access(lasting, os.W_OK) else Path(tempfile.gettempdir())
    root = above / f"duckdb-anon-{user}"
    try:
        root.mkdir(mode=0o700, exist_ok=True)
        found = root.lstat()
    except OSError as error:
        raise AnonError(f"release: {root} cannot be made: {error.strerror}. Name another folder in TMPDIR") from error
    foreign = hasattr(os, "getuid") and (found.st_uid != user or found.st_mode & 0o077)
    if not stat.S_ISDIR(found.st_mode) or foreign:
        raise AnonError(
            f"release: {root} does not belong to this user alone, and rows of the original would lie in it. Remove it, "
            "or name another folder in TMPDIR"
        )
    return root


def spill_folder() -> str:
    """A fresh name below the private folder, for DuckDB's temporary files; DuckDB makes the folder when it spills."""
    return str(private_root() / f"spill-{secrets.token_hex(8)}")


def folder_for(purpose: str, target: str) -> Path:
    """The folder that an earlier run for the same target left, else a fresh one (0700)."""
    for folder in sorted(private_root().glob(f"{purpose}-*")):
        note = folder / _TARGET
        if note.is_file() and note.read_text(encoding="utf-8") == target:
            return folder
    folder = Path(tempfile.mkdtemp(prefix=f"{purpose}-", dir=private_root()))
    (folder / _TARGET).write_text(target, encoding="utf-8")
    return folder


@contextmanager
def draft_of(goal: Path, mode: int = PUBLISHED) -> Iterator[Path]:
    """A fresh name next to a goal for a file or folder, which takes the goal's place at the end of the block.

    Inside `placed_together` it waits for the other files.

    >>> with tempfile.TemporaryDirectory() as folder, draft_of(Path(folder, "page.html")) as draft:
    ...     _ = draft.write_text("complete")
    ...     list(Path(folder).glob("*.html"))
    []
    """
    for left in left_behind(goal):
        remove(left)
    draft = goal.with_name(f".{goal.name}.{os.getpid()}.{secrets.token_hex(4)}.part")
    try:
        yield draft
        if not draft.exists():
            return
        for file in draft.iterdir() if draft.is_dir() else [draft]:
            file.chmod(mode)
        together = _TOGETHER.get()
        if together is not None:
            together[draft] = goal
        else:
            place(draft, goal)
    finally:
        for left in (draft, draft.with_name(f"{draft.name}.wal")):
            if draft not in (_TOGETHER.get() or ()):
                remove(left)


def left_behind(goal: Path) -> list[Path]:
    """Drafts of a goal whose writers have ended."""
    found = [(left, _WRITER.search(left.name)) for left in goal.parent.glob(f".{escape(goal.name)}.*.part*")]
    return [left for left, writer in found if writer is not None and not _is_running(int(writer[1]))]


def place(draft: Path, goal: Path) -> None:
    """Let a complete draft take the place of its goal."""
    if draft.is_dir():
        draft.chmod(_FOLDER)
        if goal.exists():
            shutil.rmtree(goal)
    os.replace(draft, goal)


@contextmanager
def placed_together(journal: Path) -> Iterator[None]:
    """Files of every `draft_of` in the block take their places at its end, all of them; none where the block fails.

    The journal lists them once all are complete. What ended after that is finished when the journal is opened again;
    what ended before has changed nothing.
    """
    _finish(journal)
    drafts: dict[Path, Path] = {}
    token = _TOGETHER.set(drafts)
    try:
        try:
            yield
        finally:
            _TOGETHER.reset(token)
        if drafts:
            places = {os.path.relpath(draft, journal.parent): goal.name for draft, goal in drafts.items()}
            with draft_of(journal, mode=0o600) as draft:
                draft.write_text(json.dumps(places), encoding="utf-8")
            _finish(journal)
    finally:
        if not journal.exists():
            for draft in drafts:
                remove(draft)


def _finish(journal: Path) -> None:
    """Move the files that a journal lists to their places."""
    if not journal.exists():
        return
    for draft, goal in json.loads(journal.read_text(encoding="utf-8")).items():
        path = journal.parent / draft
        if path.exists():
            os.replace(path, path.with_name(goal))
    journal.unlink()


@contextmanager
def alone(lock: Path, refusal: str) -> Iterator[None]:
    """Run the block unless another process is inside it, which is refused; systems without `flock` run it anyway."""
    with lock.open("a") as file:
        try:
            import fcntl  # on POSIX systems only

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except ImportError:
            pass
        except BlockingIOError as error:
            raise AnonError(refusal) from error
        yield


def remove(path: Path) -> None:
    """Remove a file or folder that may be there."""
    if path.is_dir():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)


def _is_running(process: int) -> bool:
    """Whether a process of this machine runs; elsewhere than on POSIX systems every one counts as running."""
    if os.name != "posix":
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def write_private(path: Path, text: str) -> None:
    """Write a file that its owner alone reads (0600), complete or not at all."""
    handle, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(draft, path)
    finally:
        Path(draft).unlink(missing_ok=True)
