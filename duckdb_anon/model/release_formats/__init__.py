"""What a release carries: which column carries what, and how many original rows a row stands for.

Shapes are found from types and names here alone, by `read`:

    contents = read(release_types, original_types, sensitive=..., trees=...)

The entry of a measure names the formats it answers (`answers=`); any other release is refused before it is computed
(`refuse`), by name and with what answers instead.

A column is a carrier (a bucket, a weight, a channel) when the original has no column of that name and its type fits. A
method that releases one plans it under `Carrier.key`; where the original has a column `bucket`, the carrier is called
`bucket_` (`released_name`). Where nothing is known of the original, columns with a role are taken to be its own, and a
table that only shows when the call runs (temporary, CTE, DataFrame) is refused where it has another one (`in_doubt`).
The formats are the table `formats.FORMATS`.
"""

from duckdb_anon.model.release_formats.formats import (
    BUCKET,
    CHANNELS,
    COUNT,
    EDGES,
    FORMATS,
    GROUP,
    RATE,
    RETENTION,
    SOURCE,
    SUPPRESSED,
    Format,
)
from duckdb_anon.model.release_formats.reading import (
    EVERY,
    carriers,
    carriers_in_doubt,
    in_doubt,
    may_carry,
    read,
    refuse,
    released_name,
)
from duckdb_anon.model.release_formats.schema import Carrier, Cell, Claims, Content, Contents, Truth, Weight

__all__ = [
    "BUCKET", "CHANNELS", "COUNT", "EDGES", "EVERY", "FORMATS", "GROUP", "RATE", "RETENTION", "SOURCE", "SUPPRESSED",
    "Carrier", "Cell", "Claims", "Content", "Contents", "Format", "Truth", "Weight", "carriers", "carriers_in_doubt",
    "in_doubt", "may_carry", "read", "refuse", "released_name",
]  # fmt: skip
