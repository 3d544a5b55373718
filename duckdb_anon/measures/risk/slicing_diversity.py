"""slicing_diversity: how surely a sliced release links original records to sensitive values.

For each original record t and sensitive value s, p(t, s) is what an attacker believes who knows all quasi-identifiers
of t, takes every bucket that shows t's parts in proportion to how often it shows them, and reads the sensitive values
there (Li, Li, Zhang and Molloy 2012, section 5). The release is l-diverse when no p(t, s) exceeds 1/l. A generalized
cell shows every part it covers. Ranges: p in (0, 1], l from 1. Cost: distinct records times buckets, in blocks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from duckdb_anon.kernels.row_keys import keys_of
from duckdb_anon.measures.released_rows import OfRelease
from duckdb_anon.measures.risk.matching_classes import evidence
from duckdb_anon.model.errors import ColumnError
from duckdb_anon.model.function_specs import Params
from duckdb_anon.model.progress import tick
from duckdb_anon.model.release_table import ReadTable

NAME = "slicing_diversity"
_BLOCK = 5_000_000


def slicing_diversity(tables: Sequence[ReadTable], params: Params, rng: np.random.Generator) -> Mapping[str, Any]:
    """One row: l of the release, and the highest and average p(t, s) over the records that some bucket matches."""
    original, release = tables
    qi = [info.name for info in params["roles"].qi]
    sensitive = params["roles"].one_sensitive(NAME).name
    missing = [name for name in [*qi, sensitive] if name not in release.columns]
    if missing or not release.contents.bucket or not release.columns[sensitive].slice:
        raise ColumnError(
            f"{NAME}: the release is not sliced: it has no column "
            f"{', '.join(missing) or 'bucket, or its sensitive column is no STRUCT'}"
        )
    known = evidence(NAME, release, qi, sensitive)
    records = [original.columns[name].value_codes().astype(np.int64) for name in qi]
    alike = keys_of(records)
    worst = np.zeros(alike.number)
    step = max(1, _BLOCK // max(1, *known.weight.shape))
    for at in range(0, alike.number, step):
        tick()
        some = alike.first[at : at + step]
        worst[at : at + step] = known.linked([codes[some] for codes in records]).max(axis=1)
    times = np.bincount(alike.of_row)[worst > 0]
    matched = worst[worst > 0]
    highest = float(matched.max(initial=0.0))
    return {
        "records": [original.rows],
        "matched": [int(times.sum())],
        "highest": [highest],
        "average": [float(np.average(matched, weights=times)) if len(matched) else 0.0],
        "l": [1 / highest if highest > 0 else np.inf],
    }


MEASURE = OfRelease(
    name=NAME,
    summary="l of a sliced release by slicing's own definition, over all original records",
    paper="Li, Li, Zhang & Molloy (2012), IEEE TKDE 24(3), section 5",
    example="FROM slicing_diversity('people', 'sliced')",
    section="From papers, for comparison",
    instead=("l_diversity",),
    parameters=(),
    returns={"records": "BIGINT", "matched": "BIGINT", "highest": "DOUBLE", "average": "DOUBLE", "l": "DOUBLE"},
    compute=slicing_diversity,
    answers=("sliced", "sampled"),
    needs=("qi", "sensitive"),
)
