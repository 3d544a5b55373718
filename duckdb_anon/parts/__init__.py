"""Tables too large for one call: cut into parts by counting, worked part by part, shuffled as one.

    source_encoding  the values of every column with their counts, coded as the kernels code them; rows as codes
    placement        the part of each row: by cuts of the quasi-identifiers (`split_planner`), or by chance
    run_part         the method on one part, with the values and counts of the full table
    release_checks   checks of the finished release in SQL
    run_duckdb       all of it on DuckDB within a bound on memory; `RunDirectory` lets an interrupted run continue

`spark` does the same on Spark. Counting SQL is written once, in DuckDB's dialect (`rewrite.dialects` translates it).
"""
