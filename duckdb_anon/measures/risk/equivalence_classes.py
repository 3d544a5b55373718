"""Risk of a table as published: what its equivalence classes give away, all in sql/risk.sql.

k-anonymity (Samarati and Sweeney 1998), l-diversity (Machanavajjhala et al. 2006), t-closeness (Li, Li and
Venkatasubramanian 2007), re-identification risk (El Emam and Dankar 2008) and class sizes. Classes are formed
from published values: equal intervals, sets or nodes are one class and NULL is a value of its own. Those of a sliced
release are its buckets, and for l and t what stands in a bucket beside the sensitive value as well (`slicing_diversity`
measures slicing's own notion). Noisy counts have no classes and are an error. With `sample_weights` the table is a
sample, and classes are as large as those of the population are estimated to be (Benedetti and Franconi 1998).
Nothing is computed here; the entries let the columns' roles fill in what a call leaves out. Cost: one hash
aggregation.
"""

from __future__ import annotations

from duckdb_anon.model.function_specs import Parameter, PureSql

CLASSES = ("rows", "boxes", "buckets", "sliced", "persons", "sampled", "suppressed", "retained")
"""Shapes whose rows fall into classes that an attacker cannot look inside."""
VALUES = ("rows", "boxes", "buckets", "sliced", "sampled", "suppressed")
"""Those whose classes also show whose sensitive values they hold."""
SAMPLE_WEIGHTS = Parameter(
    "sample_weights", "column with the number of individuals of the population that a sampled record represents", "text"
)
K_ANONYMITY = PureSql(
    name="k_anonymity",
    summary="size of the smallest equivalence class; with a person column also the largest share of an "
    "individual in a class",
    paper="Samarati and Sweeney (1998)",
    example="FROM k_anonymity('people')",
    section="Equivalence classes",
    parameters=(SAMPLE_WEIGHTS,),
    answers=CLASSES,
)
L_DIVERSITY = PureSql(
    name="l_diversity",
    summary="distinct, frequency, entropy and recursive diversity of the least diverse class, by "
    "individuals and records",
    paper="Machanavajjhala, Gehrke, Kifer and Venkitasubramaniam (2006)",
    example="FROM l_diversity('boxes', ['age', 'gender', 'education', 'hours_per_week'], 'salary')",
    section="Equivalence classes",
    parameters=(Parameter("l", "l of recursive (c, l)-diversity, whole, from 1", "integer", 2, low=1),),
    answers=VALUES,
    needs=("qi", "sensitive"),
)
T_CLOSENESS = PureSql(
    name="t_closeness",
    summary="largest earth mover's distance between a class and the table, with its ground distance",
    paper="Li, Li and Venkatasubramanian (2007)",
    example="FROM t_closeness('people')",
    section="Equivalence classes",
    parameters=(
        Parameter(
            "distance", "default: 'hierarchy' with a hierarchy, 'ordered' for numbers and dates, else 'equal'",
            "text", None, ("equal", "ordered", "hierarchy"),
        ),
        Parameter("hierarchy", "table with one row per leaf of the sensitive column: leaf, ancestors, root", "text"),
    ),
    answers=VALUES,
    needs=("qi", "sensitive"),
)  # fmt: skip
REIDENTIFICATION_RISK = PureSql(
    name="reidentification_risk",
    summary="re-identification risk of records: highest, average, share above a threshold, sample uniques",
    paper="El Emam and Dankar (2008), prosecutor risk",
    example="FROM reidentification_risk('people', threshold := 0.2)",
    section="Equivalence classes",
    parameters=(
        Parameter("threshold", "risk above which a record counts as at risk, in [0, 1]", "number", 0.2, low=0, high=1),
        SAMPLE_WEIGHTS,
    ),
    answers=CLASSES,
)
CLASS_STATISTICS = PureSql(
    name="class_statistics",
    summary="number and sizes of the classes, discernibility",
    paper="Bayardo and Agrawal (2005)",
    example="FROM class_statistics('people')",
    section="Equivalence classes",
    parameters=(),
    answers=CLASSES,
)
EQUIVALENCE_CLASSES = PureSql(
    name="equivalence_classes",
    summary="one row per equivalence class: its quasi-identifiers and class_size",
    paper="Samarati and Sweeney (1998)",
    example="FROM equivalence_classes('people') ORDER BY class_size LIMIT 10",
    section="Equivalence classes",
    parameters=(SAMPLE_WEIGHTS,),
    answers=CLASSES,
)
