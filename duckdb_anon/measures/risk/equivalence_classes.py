"""Risk of a table as published, by its equivalence classes: the macros of sql/risk.sql and sql/risk_of_persons.sql.

k-anonymity (Samarati and Sweeney 1998), l-diversity (Machanavajjhala et al. 2006), t-closeness (Li, Li and
Venkatasubramanian 2007), re-identification risk (El Emam and Dankar 2008), class sizes and uniques; of a 1:M table or a
release of persons (k,l)-diversity (Gong et al. 2017) and (k,k^m)-anonymity (Poulis et al. 2013). Classes are formed
from published values: equal intervals, sets or nodes are one class; NULL is a value like any other, or matches every
value with missing := 'wildcard'. The classes of a sliced release are its buckets; for l and t what stands in a bucket
with the sensitive value distinguishes classes as well. Noisy counts have no classes and are refused.
Nothing is computed here; the entries let the columns' roles fill in what a call leaves out. Cost: hash aggregations.
"""

from __future__ import annotations

from functools import partial

from duckdb_anon.model.function_specs import Parameter, PureSql

CLASSES = ("rows", "boxes", "buckets", "sliced", "persons", "sampled", "suppressed", "retained")
"""Shapes whose rows fall into classes that an attacker cannot look inside."""
VALUES = ("rows", "boxes", "buckets", "sliced", "sampled", "suppressed")
"""Those in which the sensitive values of each class are known."""
_Macro = partial(PureSql, section="Equivalence classes", answers=CLASSES)
_LISTS = ("rows", "persons", "boxes", "sampled", "suppressed")
SAMPLE_WEIGHTS = Parameter(
    "sample_weights", "column with the number of individuals of the population that a sampled record represents", "text"
)
MISSING = Parameter(
    "missing", "'value': NULL equals NULL only; 'wildcard': NULL matches every value, as in sdcMicro", "text", "value",
    ("value", "wildcard"),
)  # fmt: skip
HOUSEHOLD = Parameter("household", "column that identifies the household of each record (default: by comment)", "text")
K_ANONYMITY = _Macro(
    name="k_anonymity",
    summary="size of the smallest equivalence class; with a person column also the largest share of an "
    "individual in a class",
    paper="Samarati and Sweeney (1998)",
    example="FROM k_anonymity('people')",
    parameters=(SAMPLE_WEIGHTS, MISSING),
)
L_DIVERSITY = _Macro(
    name="l_diversity",
    summary="distinct, frequency, entropy and recursive diversity of the least diverse class, by "
    "individuals and records",
    paper="Machanavajjhala, Gehrke, Kifer and Venkitasubramaniam (2006)",
    example="FROM l_diversity('boxes', ['age', 'gender', 'education', 'hours_per_week'], 'salary')",
    parameters=(Parameter("l", "l of recursive (c, l)-diversity, whole, from 1", "integer", 2, low=1),),
    answers=VALUES,
    needs=("qi", "sensitive"),
)
T_CLOSENESS = _Macro(
    name="t_closeness",
    summary="largest earth mover's distance between a class and the table, with its ground distance",
    paper="Li, Li and Venkatasubramanian (2007)",
    example="FROM t_closeness('people')",
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
REIDENTIFICATION_RISK = _Macro(
    name="reidentification_risk",
    summary="prosecutor, journalist and marketer risk, records above a threshold, sample uniques, expected "
    "re-identifications",
    paper="El Emam and Dankar (2008); Benedetti and Franconi (1998)",
    example="FROM reidentification_risk('people', threshold := 0.2)",
    parameters=(
        Parameter("threshold", "risk above which a record counts as at risk, in [0, 1]", "number", 0.2, low=0, high=1),
        SAMPLE_WEIGHTS,
        MISSING,
        HOUSEHOLD,
    ),
)
CLASS_STATISTICS = _Macro(
    name="class_statistics",
    summary="number and sizes of the classes, discernibility",
    paper="Bayardo and Agrawal (2005)",
    example="FROM class_statistics('people')",
)
EQUIVALENCE_CLASSES = _Macro(
    name="equivalence_classes",
    summary="one row per equivalence class: its quasi-identifiers and class_size",
    paper="Samarati and Sweeney (1998)",
    example="FROM equivalence_classes('people') ORDER BY class_size LIMIT 10",
    parameters=(SAMPLE_WEIGHTS, MISSING),
)
UNIQUES = _Macro(
    name="uniques",
    summary="quasi-identifiers of the records (individuals) that are alone in their equivalence class",
    paper="Samarati and Sweeney (1998)",
    example="FROM uniques('people') LIMIT 10",
    parameters=(MISSING,),
)
RECORD_RISK = _Macro(
    name="record_risk",
    summary="every record with its class size, prosecutor and journalist risk; the sum of journalist is the expected "
    "number of re-identifications",
    paper="El Emam and Dankar (2008); Benedetti and Franconi (1998)",
    example="FROM record_risk('people') ORDER BY journalist DESC LIMIT 10",
    parameters=(SAMPLE_WEIGHTS, MISSING, HOUSEHOLD),
)
_SENSITIVE = Parameter("sensitive", "sensitive column(s), one list over all of them (default: by comment)", "names")
_PERSON = Parameter(
    "person",
    "column that identifies the individual of each record (default: by comment; without one, each "
    "record is an individual)",
    "text",
)
KL_DIVERSITY = _Macro(
    name="kl_diversity",
    summary="individuals per list of sensitive values, diversity of lists per class, and the risks that these bound",
    paper="Gong, Luo, Yang, Ni and Li (2017), definitions 1-5, theorem 1",
    example="FROM kl_diversity('persons', ['age'], 'disease')",
    parameters=(_SENSITIVE, _PERSON),
    answers=_LISTS,
)
KM_ANONYMITY = _Macro(
    name="km_anonymity",
    summary="minimum support of value sets in each equivalence class, one row per set size",
    paper="Poulis, Loukides, Gkoulalas-Divanis and Skiadopoulos (2013)",
    example="FROM km_anonymity('persons', ['age'], 'disease', m := 2)",
    smallest="m := 1",
    parameters=(_SENSITIVE, Parameter("m", "largest size of a set, 1 to 4", "integer", 2, low=1, high=4), _PERSON),
    answers=_LISTS,
)
