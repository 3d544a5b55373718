"""The pages of the workbench, as a marimo app: controls, and what they change in the plan. No logic of their own."""

import marimo

app = marimo.App(width="medium", app_title="duckdb-anon workbench")


@app.cell
def _():
    from dataclasses import replace

    import altair
    import marimo as mo

    from duckdb_anon.model.errors import of_function
    from duckdb_anon.workbench import view
    from duckdb_anon.workbench.state import NAME, ROLES, current

    bench = current()
    altair.renderers.set_embed_options(actions=False)  # its menu has no name for a screen reader
    STEPS = ["Table", "Roles", "Promise", "Look", "Release"]
    changes, set_changes = mo.state(0, allow_self_loops=True)  # counts what this page has changed
    results, set_results = mo.state(0)  # counts the work that has ended
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

    return (
        NAME,
        ROLES,
        STEPS,
        bench,
        changes,
        does,
        failed,
        mo,
        replace,
        results,
        set_changes,
        set_failed,
        set_results,
        view,
    )


@app.cell
def _(STEPS, bench, mo, view):
    _asked = mo.query_params().get("step")
    step = mo.ui.radio(
        STEPS,
        value=_asked if _asked in STEPS else STEPS[0],
        inline=True,
        on_change=lambda value: mo.query_params().set("step", value),
    )
    mo.Html(
        view.block(
            f"<h1>{view.esc(bench.table)}</h1>",
            view.note(f"{view.esc(bench.source)}, {bench.rows:,} rows. Everything is kept in {view.esc(bench.plan)}."),
            view.note(view.esc(bench.sampled)) if bench.sampled else "",
            f'<div class="steps" role="group" aria-label="Step">{step}</div>',
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
    _trees = {column: bench.tree(column) for column in roles.elements}
    trees = mo.ui.dictionary({
        column: mo.ui.checkbox(
            value=bench.uses_tree(column), label="Generalize by the proposed hierarchy",
            on_change=does(lambda use, column=column: bench.use_tree(column, use)),
        ) for column, (rows, _) in _trees.items() if rows
    })  # fmt: skip
    _lines = [
        view.line(
            column,
            [*(view.facts_of(_profile[column]) if column in _profile else []), view.tree(*_trees[column])],
            roles[column],
            *([trees[column]] if column in trees.elements else []),
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
    return roles, trees


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


@app.cell
def _(bench, changes, does, mo, view):
    # work in the background: a bar, a button that stops it, and a clock that looks after it
    changes()
    _job = bench.jobs.running
    mo.stop(_job is None)
    clock = mo.ui.refresh(default_interval="1s")
    halt = mo.ui.button(label="Stop", on_click=lambda _: _job.stop())
    mo.Html(view.block(f'<div class="anon-quiet" aria-hidden="true">{clock}</div>{halt}'))
    return clock, halt


@app.cell
def _(bench, clock, mo, set_changes, set_failed, set_results, view):
    _beat = clock.value  # this cell runs again each second
    _job = bench.jobs.last
    if _job is not None and _job.ended.is_set():
        set_failed("stopped; what was done before is kept" if _job.stopped else _job.error)
        set_results(lambda number: number + 1)
        set_changes(lambda number: number + 1)
    mo.Html(view.block("" if _job is None or _job.ended.is_set() else view.progress(_job.text, _job.share)))


@app.cell
def _(STEPS, bench, does, mo, replace, step, view):
    # 3 Promise: who attacks, the limit, and the trials
    mo.stop(step.value != STEPS[2])
    _promise = bench.promise()
    _who = {
        f"{name}: {what}": name for name, what in (
            ("prosecutor", "looks for one individual, known to be in the table; the limit holds for each record"),
            ("journalist", "looks for anyone, and does not know who is in the table; the limit holds for each record"),
            ("marketer", "looks for as many individuals as possible; the limit holds on average"),
        )
    }  # fmt: skip
    attacker = mo.ui.radio(
        _who, value=next(name for name, each in _who.items() if each == _promise.attacker), label="Who may attack",
        on_change=does(lambda each: bench.set_promise(replace(bench.promise(), attacker=each))),
    )  # fmt: skip
    _limits = [0.01, 0.02, 0.03, 0.05, 0.09, 0.1, 0.15, 0.2, 0.25, 0.33, 0.5]
    limit = mo.ui.slider(
        steps=sorted({*_limits, _promise.limit}), value=_promise.limit,
        label="Largest acceptable risk", show_value=True,
        on_change=does(lambda value: bench.set_promise(replace(bench.promise(), limit=float(value)))),
    )  # fmt: skip
    attempt = mo.ui.button(
        label="Try methods", on_click=does(lambda _: (bench.set_promise(bench.promise()), bench.start("trials")))
    )
    mo.Html(
        view.block(
            "<h2>3 Promise: the limit of the risk</h2>",
            f"<div>{attacker}</div>",
            view.note(
                "The journalist's risk is counted in the table of the population that the plan names, and is the "
                "prosecutor's where it names none. 0.09 is the limit of the European Medicines Agency."
            ),
            f"<div>{limit}</div><div>{attempt}</div>",
        )
    )
    return attacker, attempt, limit


@app.cell
def _(STEPS, bench, does, mo, results, step, view):
    mo.stop(step.value != STEPS[2])
    results()
    _tried = view.measured((bench.result("trials")[0] or {"rows": []})["rows"])
    _calls = {view.label_of(row): row["call"] for row in _tried}
    _now = bench.release()["call"]
    point = mo.ui.dropdown(
        _calls, label="Chosen point", full_width=True, allow_select_none=True,
        value=next((name for name, call in _calls.items() if call == f"FROM {_now}"), None),
        on_change=does(lambda call: call and bench.choose(call)),
    )  # fmt: skip
    chart = mo.ui.altair_chart(
        view.points(_tried, bench.promise().limit), chart_selection="point", legend_selection=False,
        on_change=does(lambda chosen: len(chosen) and bench.choose(chosen["call"].iloc[0])),
    ) if _tried else ""  # fmt: skip
    mo.Html(view.block(f"{chart}<div>{point}</div>" if _tried else view.note("Nothing was tried yet.")))
    return chart, point


@app.cell
def _(STEPS, bench, changes, mo, step, view):
    mo.stop(step.value != STEPS[2])
    changes()
    _now, (_found, _fresh) = bench.release()["call"], bench.result("trials")
    _holds, _open = bench.promises()
    mo.Html(
        view.block(
            "" if _fresh or not _found else view.warning("The table or its roles have changed since the trials."),
            f"<p>The plan releases by <code>{view.esc(_now)}</code>.</p>",
            *(view.warning(text) for _, text in bench.warnings()),
            view.said("What it promises", _holds),
            view.said("What it does not", _open),
        )
    )


@app.cell
def _(STEPS, bench, does, mo, step, view):
    # 4 Look: questions of one's own, and a trial release
    mo.stop(step.value != STEPS[3])
    _texts = [*bench.queries(), "", "", ""][:3]
    questions = mo.ui.array([mo.ui.text(value=text, full_width=True, label="Question in SQL") for text in _texts])
    trial = mo.ui.button(
        label="Look at a trial release",
        on_click=does(lambda _: (bench.set_queries([field.value for field in questions]), bench.start("look"))),
    )  # fmt: skip
    mo.Html(
        view.block(
            "<h2>4 Look: what an analyst and an attacker find</h2>",
            *(f"<div>{field}</div>" for field in questions),
            f"<div>{trial}</div>",
        )
    )
    return questions, trial


@app.cell
def _(STEPS, bench, changes, mo, step, view):
    mo.stop(step.value != STEPS[3])
    changes()
    _found, _fresh = bench.result("look")
    mo.stop(not _found, mo.Html(view.block(view.note("No trial release was made yet."))))
    _bars = view.overlaid(_found["marginals"])
    mo.Html(
        view.block(
            "" if _fresh else view.warning("The plan has changed since this trial. Look again."),
            view.attacked(_found["risk"], bench.promise().limit),
            *(view.warning(text) for _, text in bench.warnings()),
            view.answers(_found["queries"]),
            view.table(_found["rows"], "Ten rows of the trial release"),
            view.table(bench.ten(), "Ten rows of the original"),
            view.table(_found["unchanged"], "Columns that leave unchanged"),
            f"<h3>Distributions</h3>{mo.ui.altair_chart(_bars, chart_selection=False, legend_selection=False)}"
            if _bars
            else "",
            view.said("Not measured", (f"{what}: {why}" for what, why in _found["missing"].items())),
        )
    )


@app.cell
def _(STEPS, bench, does, mo, step, view):
    # 5 Release: the file, and the plan that is carried out
    mo.stop(step.value != STEPS[4])
    _entry = bench.release()
    output = mo.ui.text(
        value=_entry["output"],
        label="File in this folder, .parquet or .duckdb",
        on_change=does(lambda name: bench.set_release(output=name)),
    )
    _none = "none"
    key = mo.ui.dropdown(
        {_none: None, **{column: column for column in bench.columns}},
        value=_entry.get("key", _none), label="Key of a record",
        on_change=does(lambda column: bench.set_release(key=column)),
    )  # fmt: skip
    again = mo.ui.checkbox(
        value=_entry.get("independent", False),
        label="Release although there are earlier releases",
        on_change=does(lambda yes: bench.set_release(independent=yes or None)),
    )
    publish = mo.ui.button(label="Release", on_click=does(lambda _: bench.start("publish")))
    mo.Html(
        view.block(
            "<h2>5 Release: write and verify</h2>",
            f"<div>{output}</div><div>{key}</div><div>{again}</div>",
            view.note(
                "With a key, later releases continue this one. Independent releases of a table add up: an attacker who "
                "compares them learns more than each reveals."
            ),
            view.note(f"Signature: {view.esc(bench.signature)}"),
            view.note(view.esc(bench.sampled)) if bench.sampled else "",
            f"<div>{publish}</div>",
        )
    )
    return again, key, output, publish


@app.cell
def _(STEPS, bench, changes, mo, step, view):
    mo.stop(step.value != STEPS[4])
    changes()
    _done, _fresh = bench.result("publish")
    mo.Html(
        view.block(
            *(view.warning(text) for _, text in bench.warnings()),
            (
                ("" if _fresh else view.warning("The plan has changed since this release.")) + view.outcome(_done)
                if _done
                else view.note("Nothing was released yet.")
            ),
            view.code(bench.sql(), "The SQL that does the same"),
            view.code(
                bench.plan.read_text(encoding="utf-8"), f"{bench.plan.name}, for duckdb-anon run {bench.plan.name}"
            ),
        )
    )


if __name__ == "__main__":
    app.run()
