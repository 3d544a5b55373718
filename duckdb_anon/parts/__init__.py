"""Tables too large for one call: cut into parts by counting, worked part by part, shuffled as one.

    values   the values of every column with their counts, coded as the kernels code them
    tree     cuts as a tree, and the tree as SQL that says which part a row belongs to
    plan     the tree: parts that are too large are cut where the method itself would cut them, known by counts alone
    work     the ordinary call on one part, which knows the values and counts of the whole
    gathered what the parts released, as small numbers, and its one order
    check    what the finished release must satisfy, asked of it in SQL
    duck     all of it on DuckDB within a bound on memory; `place` is the folder of a run, which can be taken up again

`spark` does the same on Spark. Counting SQL is written once, in DuckDB's dialect (`rewrite.dialects` translates it).
"""
