"""What SDNist's own program says of small releases: made by plain arithmetic, so that they are the same everywhere.

The scores are those of `sdnist.metrics.kmarginal.KMarginal.compute_score` of SDNist 2.4 (NIST), which was run once on
these tables: pairs as it forms them, triples by giving it all of them as its marginals.
"""

ORIGINALS = {
    "made": "(select i * i % 53 as a, i * 7919 % 11 % 4 as b, 'c' || i * i * i % 7 as c, i * 31 % 101 % 9 // 2 as d, i "
            "from range(2000) t(i))",
    "census": "(select AGE as a, SEX as b, 'c' || RELATE as c, EDUC as d, row_number() over () - 1 as i from census limit 8000)",
}  # fmt: skip
"""Five columns: a number, few numbers, a text, numbers, and the row's number, which is not compared."""

RELEASES = {
    "some rows": "select a, b, c, d from {o} where i * 7919 % 10 < 6",
    "coarser": "select a // 5 * 5 as a, b, c, d // 2 as d from {o}",
    "moved": "select if(i % 3 = 0, a + i % 7, a) as a, if(i % 5 = 0, 1 + i % 2, b) as b, c, d from {o}",
    "columns apart": "select x.a, y.b, z.c, x.d from {o} x join {o} y on y.i = (x.i + 17) % {rows} "
                     "join {o} z on z.i = (x.i + 391) % {rows}",
}  # fmt: skip
ROWS = {"made": 2000, "census": 8000}

SCORES = {
    ("made", "some rows"): (972.1944444444445, 898.3333333333334),
    ("made", "coarser"): (430.33333333333337, 240.12500000000003), ("made", "moved"): (885.8333333333333, 817.125),
    ("made", "columns apart"): (985.0, 884.0), ("census", "some rows"): (961.6736111111112, 910.0729166666666),
    ("census", "coarser"): (264.49999999999994, 78.62499999999994), ("census", "moved"): (963.2291666666667, 910.21875),
    ("census", "columns apart"): (918.4791666666666, 778.4375),
}  # fmt: skip
"""Of all pairs and of all triples of the four columns."""
