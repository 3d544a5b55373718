"""The pages of the workbench, as a marimo app: controls, and what they change in the plan. No logic of their own."""

import marimo

app = marimo.App(width="medium", app_title="duckdb-anon workbench")


@app.cell
def _():
    import marimo as mo

    from duckdb_anon.model.errors import of_function
    from duckdb_anon.workbench import view
    from duckdb_anon.workbench.state import NAME, ROLES, current

    bench = current()
    STEPS = ["1 Table", "2 Roles", "3 Promise", "4 Look", "5 Release"]
    changes, set_changes = mo.state(0)  # counts what this page has changed
    failed, set_failed = mo.state("")  # the last error, in place

    def does(change):
        """What a control calls: the change, then everything that depends on the plan is made again."""

        def called(value):
            try:
                change(value)
                set_failed("")
            except Exception as error:
                set_failed(of_function(NAME, error))
            set_changes(lambda number: number + 1)

        return called

    return NAME, ROLES, STEPS, bench, changes, does, failed, mo, view


@app.cell
def _(STEPS, bench, mo, view):
    _asked = mo.query_params().get("step")
    step = mo.ui.radio(
        STEPS,
        value=_asked if _asked in STEPS else STEPS[0],
        inline=True,
        label="Step",
        on_change=lambda value: mo.query_params().set("step", value),
    )
    mo.Html(
        view.block(
            f"<h1>{view.esc(bench.table)}</h1>",
            view.note(f"{view.esc(bench.source)}, {bench.rows:,} rows. Everything is kept in {view.esc(bench.plan)}."),
            view.note(view.esc(bench.sampled)) if bench.sampled else "",
            format(step),
        )
    )
    return (step,)


@app.cell
def _(failed, mo, view):
    mo.Html(view.block(view.warning(failed()) if failed() else ""))


@app.cell
def _(STEPS, bench, does, mo, step, view):
    # 1 Table: what is dirty, and the expression that cleans it
    mo.stop(step.value != STEPS[0])
    _dirt, _now = bench.dirt(), bench.cleaning()
    expressions = mo.ui.dictionary({
        column: mo.ui.text(
            value=_now.get(column, rows[-1]["clean"]), full_width=True, label="SQL expression",
            on_change=does(lambda text, column=column: column in bench.cleaning() and bench.clean(column, text)),
        ) for column, rows in _dirt.items()
    })  # fmt: skip
    accepted = mo.ui.dictionary({
        column: mo.ui.checkbox(
            value=column in _now, label="Clean it",
            on_change=does(lambda yes, column=column: bench.clean(column, expressions[column].value if yes else None)),
        ) for column in _dirt
    })  # fmt: skip
    _lines = [
        view.line(column, view.problems(rows), accepted[column], expressions[column]) for column, rows in _dirt.items()
    ]
    mo.Html(
        view.block(
            "<h2>1 Table: clean it</h2>",
            view.note(
                "Blanks, codes for missing values and dates in several spellings make values of their own, which "
                "identify records that the clean value would not."
            ),
            *_lines or [view.note("Nothing to clean was found.")],
        )
    )
    return accepted, expressions


@app.cell
def _(STEPS, bench, changes, mo, step, view):
    mo.stop(step.value != STEPS[0])
    changes()
    _lost = [
        f"{column}: {'nothing is lost' if not n else f'{n:,} values become NULL, codes for missing values among them'}"
        for column, n in ((column, bench.nulls_by(column, text)) for column, text in bench.cleaning().items())
    ]
    mo.Html(
        view.block(
            "<h3>Cleaned</h3>" if _lost else "",
            '<div role="status">' + "".join(f"<p>{view.esc(text)}</p>" for text in _lost) + "</div>",
            "<h3>The table as it will be released from</h3>",
            view.table(
                [{"column": name, "type": kind} for name, kind in bench.columns.items()], "Columns and their types"
            ),
            view.table(bench.ten(), "Ten of its rows"),
        )
    )


@app.cell
def _(ROLES, STEPS, bench, does, mo, step, view):
    # 2 Roles: one line a column
    mo.stop(step.value != STEPS[1])
    _options = {meaning: role for role, meaning in ROLES.items()}
    _profile = bench.profile()
    roles = mo.ui.dictionary({
        column: mo.ui.dropdown(
            _options, value=ROLES[role], label="Role",
            on_change=does(lambda value, column=column: bench.set_role(column, value)),
        ) for column, role in bench.roles().items() if role in ROLES
    })  # fmt: skip
    _lines = [
        view.line(
            column,
            [*(view.facts_of(_profile[column]) if column in _profile else []), view.tree(*bench.tree(column))],
            roles[column],
        )
        for column in roles.elements
    ]
    mo.Html(
        view.block(
            "<h2>2 Roles: what an attacker may know</h2>",
            view.note(
                "A quasi-identifier is generalized; a sensitive or insensitive column leaves with its own values."
            ),
            ""
            if _profile
            else view.warning("Proposed roles need the extra profile: pip install 'duckdb-anon[profile]'"),
            *_lines,
        )
    )
    return (roles,)


@app.cell
def _(STEPS, bench, changes, does, mo, step, view):
    mo.stop(step.value != STEPS[1])
    changes()
    _weak = bench.warnings()
    reasons = mo.ui.dictionary({
        column: mo.ui.text(
            label="Why this role is right", full_width=True,
            on_change=does(lambda why, column=column: bench.accept(column, why)),
        ) for column, _ in _weak
    })  # fmt: skip
    _unique = bench.uniques()
    mo.Html(
        view.block(
            "<h2>What these roles mean</h2>",
            view.uniques(_unique),
            *(view.warning(text) + view.line(column, [], reasons[column]) for column, text in _weak),
        )
    )
    return (reasons,)


if __name__ == "__main__":
    app.run()
