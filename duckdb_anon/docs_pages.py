"""Pages of the docs site that are made from code: one page per function, and the output of SQL in tutorials.

`python -m duckdb_anon.docs_pages` runs the SQL of README and of the pages in `docs/`, and writes its output below each
block, and README's picture of it; with `--check` it writes nothing and fails where an output differs. Function pages
are made when the site is built (`.github/mkdocs.yml`). Cost: the examples of all entries, about a minute.
"""

from __future__ import annotations

import contextlib
import html
import inspect
import io
import re
import sys
import tempfile
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import duckdb

from duckdb_anon.engine.planner import parameters_of
from duckdb_anon.measures.help.anon_functions import about, signature
from duckdb_anon.model.function_specs import REQUIRED, SECTIONS, Entry, Method, PureSql
from duckdb_anon.registry import ENTRIES, METHODS
from duckdb_anon.release_api import release
from duckdb_anon.shell.render import render
from duckdb_anon.sql_functions import connect

_WIDTH, _HEIGHT, _LEFT, _TOP = 8.4, 18, 16, 52  # of a character, of a line, of the margins, in pixels
_TEXT = "#d8dee9"
_COLOURS = {"keyword": "#7ee787", "string_const": "#ffa28b", "numeric_const": "#9aa4b2", "comment": "#9aa4b2"}
_HEAD = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" \
aria-label="A session: a release is made, attacked, and asked a question">
<rect width="{width}" height="{height}" rx="8" fill="#161b22"/>
<circle cx="20" cy="18" r="6" fill="#ff5f57"/><circle cx="40" cy="18" r="6" fill="#febc2e"/>\
<circle cx="60" cy="18" r="6" fill="#28c840"/>
<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="14">
"""


def session(statement: str, result: duckdb.DuckDBPyRelation | None) -> list[str]:
    """What the prompt shows of a statement without its comments, and of its result."""
    lines = [line for line in statement.strip().splitlines() if not line.startswith("--")]
    lines[-1] = lines[-1].removesuffix(";") + ";"
    shown = [f"{'  ... ' if number else 'anon> '}{line}" for number, line in enumerate(lines)]
    if result is None:
        return shown
    box = io.StringIO()
    render(result, "box", 20, box)
    return shown + box.getvalue().rstrip().splitlines()


def svg(lines: Iterable[str]) -> str:
    """Lines of a session as a picture; SQL is coloured by DuckDB's lexer."""
    lines = [*lines, "anon> "]
    width = round(max(map(len, lines)) * _WIDTH + 2 * _LEFT)
    texts = [
        f'<text x="{_LEFT + start * _WIDTH:.1f}" y="{_TOP + row * _HEIGHT}" fill="{colour}"'
        f"{' font-weight=' + chr(34) + 'bold' + chr(34) if colour == _COLOURS['keyword'] else ''} "
        f'textLength="{len(text) * _WIDTH:.1f}" lengthAdjust="spacingAndGlyphs" xml:space="preserve">'
        f"{html.escape(text)}</text>\n"
        for row, line in enumerate(lines)
        for start, text, colour in _coloured(line)
    ]
    return _HEAD.format(width=width, height=_TOP + len(lines) * _HEIGHT) + "".join(texts) + "</g>\n</svg>\n"


def _coloured(line: str) -> Iterator[tuple[int, str, str]]:
    """Pieces of a line without blanks at their ends: where each begins, its text and its colour."""
    is_sql = line.startswith(("anon> ", "  ... "))
    tokens = [(place + 6, kind.name) for place, kind in duckdb.tokenize(line[6:])] if is_sql else []
    starts = [(0, "prompt"), *tokens, (len(line), "")]
    for (start, kind), (end, _) in pairwise(starts):
        text = line[start:end].rstrip() if is_sql else line
        if text.strip():
            indent = len(text) - len(text.lstrip()) if is_sql else 0
            # DuckDB's keywords include names of columns; README writes those that are meant in capitals
            plain = kind == "keyword" and not text.isupper()
            yield start + indent, text[indent:], _TEXT if plain else _COLOURS.get(kind, _TEXT)


def is_shown(statement: str) -> bool:
    """Whether the picture shows a statement of README: those on the release that is checked."""
    return re.search(r"\bchecked\b", statement) is not None


DOCS = Path(__file__).with_name("docs")
_BLOCK = re.compile(r"```sql\n(.*?)```\n(?:\n(?:\|[^\n]*\n)+)?", re.DOTALL)
_PICTURE = "examples/terminal.svg"
_ROWS = 5
_UNITS = {
    "row": "Each record is taken for one individual. A table with several records of an individual is refused.",
    "person": "Individuals are counted where a column has the role `person`.",
    "any": "",
}


def example_connection() -> duckdb.DuckDBPyConnection:
    """A connection with the tables that the examples of entries read, and the releases that those of methods make."""
    con = connect()
    con.execute("create table people as from anon_sample('census', 600, seed := 1)")
    for column in ("age", "gender", "education", "hours_per_week"):
        con.execute(f"comment on column people.{column} is 'anon: quasi'")
    con.execute("comment on column people.salary is 'anon: sensitive'")
    con.execute("comment on table people is 'anon: outputs()'")
    con.execute(
        "create table visits as select pid, 20 + hash(pid) % 40 as age, 'd' || hash(pid, i) % 12 as disease "
        "from range(300) a(pid), range(3) b(i) where i <= pid % 3"
    )
    con.execute("create table diseases as select distinct disease as leaf, 'x' || right(disease, 1), 'all' from visits")
    con.execute("create table ages as select age as leaf, age // 10 * 10 || 's', 'any age' from range(20, 61) t(age)")
    con.execute("comment on column visits.pid is 'anon: person'")
    con.execute("comment on column visits.age is 'anon: quasi hierarchy=ages'")
    con.execute("comment on column visits.disease is 'anon: sensitive hierarchy=diseases'")
    con.execute("create table patients as select pid, 20 + hash(pid) % 40 as age from range(300) a(pid)")
    con.execute("comment on column patients.age is 'anon: quasi'")
    for entry in METHODS:
        con.execute(entry.example)
    con.execute("create table numbered as select row_number() over () as person_id, * from people")
    for column, role in (("age", "quasi"), ("education", "quasi"), ("salary", "sensitive")):
        con.execute(f"comment on column numbered.{column} is 'anon: {role}'")
    con.execute("from safe_output('SELECT count(*) FROM people')")
    release(con, "first", "mondrian('numbered', 10)", key="person_id")
    release(con, "next", "mondrian('numbered', 10)", previous="first")
    return con


def function_pages() -> Iterator[tuple[str, str]]:
    """Name and markdown of the index of functions and of the page of each function."""
    yield "index", index(ENTRIES)
    con = example_connection()
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):  # the example of a report writes files
        pages = [(entry.name, function_page(entry, con)) for entry in ENTRIES]
    con.close()
    yield from pages


def index(entries: Sequence[Entry]) -> str:
    """A table of functions in each section."""
    text = (
        "# Functions\n\n`FROM anon_functions()` lists them, `FROM anon_parameters('muco')` the parameters of one. "
        "`.help NAME` in the shell shows one.\n"
    )
    for section in SECTIONS:
        rows = [f"| [`{e.name}`]({e.name}.md) | {e.summary} |" for e in entries if e.section == section]
        if rows:
            text += "\n".join(["", f"## {section}", "", "| function | what it does |", "|---|---|", *rows, ""])
    return text


def function_page(entry: Entry, con: duckdb.DuckDBPyConnection) -> str:
    """The page of a function: what it does, parameters, an example with its output, limits, source.

    Args:
        entry: the function.
        con: a connection of `example_connection`.
    """
    parts = [
        f"# {entry.name}",
        f"{entry.summary[0].upper()}{entry.summary[1:]}.",
        f"```sql\n{_wrapped(signature(entry))}\n```",
    ]
    described = about(entry)
    if described is not None:
        parts.append(inspect.cleandoc(described))
    parts.append(_parameters(entry))
    parts.append(_example(entry, con))
    limits = [line for line in (_UNITS[entry.unit], _formats(entry), _extra(entry)) if line]
    if limits:
        parts.append("## Limits\n\n" + "\n".join(f"- {line}" for line in limits))
    if entry.paper:
        parts.append(f"## Source\n\n{entry.paper}")
    return "\n\n".join(parts) + "\n"


def _wrapped(call: str) -> str:
    """A signature in lines of at most 72 characters, each parameter with its default."""
    joined = call.replace(" := ", "\0:=\0")
    lines = textwrap.fill(joined, 72, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)
    return lines.replace("\0", " ")


def _parameters(entry: Entry) -> str:
    rows = []
    for parameter in parameters_of(entry):
        is_required = parameter.default is REQUIRED or parameter.name in getattr(entry, "tables", ("tbl",))
        default = "required" if is_required else "" if parameter.default is None else f"`{parameter.default}`"
        # Markdown reads braces at the end of a cell as attributes of the cell
        meaning = _cell(re.sub(r"\{[^{}]*\}", r"`\g<0>`", parameter.doc))
        rows.append(f"| `{parameter.name}` | {default} | {meaning} |")
    if not rows:
        return "It takes no parameters."
    return "\n".join(["## Parameters", "", "| parameter | default | meaning |", "|---|---|---|", *rows])


def _example(entry: Entry, con: duckdb.DuckDBPyConnection) -> str:
    shown = entry.example
    if isinstance(entry, Method):
        con.execute(entry.example.replace("CREATE TABLE", "CREATE OR REPLACE TABLE", 1))
        shown += f";\nFROM {entry.example.split()[2]} LIMIT {_ROWS}"
        result = con.sql(f"from {entry.example.split()[2]}")
    else:
        result = con.sql(entry.example)
    columns = [f"`{name}` {kind}" for name, kind in zip(result.columns, result.types, strict=True)]
    output = io.StringIO()
    render(result.limit(_ROWS), "markdown", _ROWS, output)
    text = re.sub(r"[^|\n]{200,}", lambda found: f" {found.group()[:190]} ... ", output.getvalue())
    return f"## Example\n\n```sql\n{shown};\n```\n\n{text}\nColumns: {', '.join(columns)}."


def _formats(entry: Entry) -> str:
    if isinstance(entry, Method):
        return f"Format of the release: {', '.join(entry.formats)}."
    answers = getattr(entry, "answers", ())
    if not answers or (isinstance(entry, PureSql) and answers == ("rows",)):
        return ""
    return "It reads releases of every format." if answers == ("*",) else f"It reads: {', '.join(answers)}."


def _extra(entry: Entry) -> str:
    return f"It needs `pip install 'duckdb-anon[{entry.extra}]'`." if entry.extra else ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def with_outputs(page: str, shown: list[str] | None = None) -> str:
    """A page with the output of each SQL block below it, all blocks run in order on one new connection.

    Args:
        page: markdown with blocks of SQL.
        shown: takes the lines of the session that a picture of the page shows.
    """
    con = connect()

    def filled(block: re.Match[str]) -> str:
        output = io.StringIO()
        for statement in con.extract_statements(block.group(1)):
            result = con.sql(statement.query)
            output = io.StringIO()
            is_select = result is not None and statement.type == duckdb.StatementType.SELECT
            if is_select:
                render(result, "markdown", 20, output)
            if shown is not None and is_shown(statement.query):
                shown.extend(session(statement.query, result if is_select else None))  # one more run
        table = f"\n{output.getvalue()}" if output.getvalue() else ""
        return f"```sql\n{block.group(1)}```\n{table}"

    try:
        return _BLOCK.sub(filled, page)
    finally:
        con.close()


def pages_with_sql() -> list[Path]:
    """README and the pages of the site whose SQL is run."""
    pages = [DOCS.parents[1] / "README.md", *sorted(DOCS.rglob("*.md"))]
    return [page for page in pages if page.exists() and "```sql\n" in page.read_text(encoding="utf-8")]


def main(arguments: Sequence[str]) -> int:
    """Write the outputs into the pages; with `--check`, name the pages whose outputs differ and return 1."""
    differing = 0
    for page in pages_with_sql():
        lines: list[str] = []
        made = {page: with_outputs(page.read_text(encoding="utf-8"), lines if page.name == "README.md" else None)}
        if lines:
            made[page.parent / _PICTURE] = svg(lines)
        for file, text in made.items():
            if file.read_text(encoding="utf-8") == text:
                continue
            differing += 1
            sys.stdout.write(f"{file}\n")
            if "--check" not in arguments:
                file.write_text(text, encoding="utf-8")
    return int(differing > 0 and "--check" in arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
