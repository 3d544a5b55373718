"""kl_diversity and km_anonymity: what a 1:M table, or a release of persons, guarantees, all in sql/risk_of_persons.sql.

(k,l)-diversity (Gong, Luo, Yang, Ni & Li 2017, definition 5): how many persons share each fingerprint, and how
varied fingerprints are in each class of equal quasi-identifiers. (k,k^m)-anonymity (Poulis, Loukides,
Gkoulalas-Divanis & Skiadopoulos 2013): how many persons of a class share each set of up to m values. Both read
lists of nodes, and raw or exploded tables when the person column is known. Cost: hash aggregations; sets of up
to m values of each person are listed.
"""

from __future__ import annotations

from duckdb_anon.model.function_specs import Parameter, PureSql

_SENSITIVE = Parameter("sensitive", "sensitive column(s), one list over all of them (default: by comment)", "names")
_PERSON = Parameter(
    "person",
    "column that identifies the individual of each record (default: by comment; without one, each "
    "record is an individual)",
    "text",
)
KL_DIVERSITY = PureSql(
    name="kl_diversity",
    summary="individuals per list of sensitive values, diversity of lists per class, and the risks that these bound",
    paper="Gong, Luo, Yang, Ni and Li (2017), definitions 1-5, theorem 1",
    example="FROM kl_diversity('persons', ['age'], 'disease')",
    section="Equivalence classes",
    parameters=(_SENSITIVE, _PERSON),
    answers=("rows", "persons", "boxes", "sampled", "suppressed"),
)
KM_ANONYMITY = PureSql(
    name="km_anonymity",
    summary="minimum support of value sets in each equivalence class, one row per set size",
    paper="Poulis, Loukides, Gkoulalas-Divanis and Skiadopoulos (2013)",
    example="FROM km_anonymity('persons', ['age'], 'disease', m := 2)",
    section="Equivalence classes",
    smallest="m := 1",
    parameters=(_SENSITIVE, Parameter("m", "largest size of a set, 1 to 4", "integer", 2, low=1, high=4), _PERSON),
    answers=("rows", "persons", "boxes", "sampled", "suppressed"),
)
