"""Query rewriting: a query over the original becomes a query over its release that estimates the answer.

    query/           the query as a tree with names bound
    release_model    columns of the release -> exact columns, factors, weight of a row
    factors          what each cell may stand for, with shares; `interval_factor` for intervals
    compile_query    the query over released rows with weights; `aggregates` are weighted there
    bounds           low and high of its measures
    plausible        queries that are not linear in the rows run on plausible tables
    rewriter         all of it for one query; `comparison` sets estimates beside the original's answers

Sources: uniform overlap, Zhang et al. (2007), Xiao and Tao (2006); inverted channels, Guo, Ying and Wu (2011).
"""
