"""Query rewriting: ask the original question of the release.

A release says by the types of its columns how it is to be read (`duckdb_anon.model.release_formats`). A query over the
original becomes a query over the release that returns, instead of the answer, its expectation: every released row
stands for an unknown original row whose parts are independent of one another.

    query/     the query as a tree: `parse` (names bound, subqueries that only select and filter merged), `outputs`,
               `grouping_sets`; `template` builds trees, `spelling` and `layout` print them
    shapes/    `released_parts`: what `model.release_formats` found in the release -> exact columns, independent
    parts, weights
    estimate/  `expectation`: conditions and amounts -> sums of products over parts (NULL keeps its three values);
               `homes`: the part an expression speaks of; `steps`: what is asked of each part, once a distinct cell, and
               one pass over the released rows; `aggregates`: COUNT, SUM, AVG, MIN, MAX
    bounds/    `limits` decides: `hard_bounds`, or intervals where columns were permuted (`permutation`), randomized
               (`delta_method` with `variance_terms`) or sampled
    select     one SELECT over the original -> one SELECT over the release
    comparison both answers side by side, one row a group and measure

Each kind of cell has its part:

    inverted       inverse of the published channel
    replaced       undoes replacement of sensitive values
    listed         sets, hierarchy nodes, counts of a bucket, slices: the share of each value
    person_lists   list of nodes of one person
    intervals      STRUCT(lower, upper): uniform overlap

A part (`parts.Part`) needs one thing: its `values`, a SELECT of (cell, values, weight) with one row a distinct cell and
value. Shares, grouping, joins and bounds follow from that; a part with a closed form overrides `shares`. Weights may be
negative (`signed`: no bounds) and may add up to a number of rows rather than to one (`counted`).

What cannot be estimated is a RewriteError that names the construct and the column. Not estimated: DISTINCT
aggregates, medians and other order statistics, rows without an aggregate, joins of the original with itself,
functions of continuous intervals. MIN and MAX are the ends of what is possible.

Sources: uniform overlap, Zhang et al. (2007), Xiao and Tao (2006); buckets, Xiao and Tao (2006), Anatomy;
sliced, Li, Li, Zhang and Molloy (2012), Hasan et al. (2018); randomized, Guo, Ying and Wu (2011).
Cost: planning some milliseconds; running one pass over the release and one over the distinct cells of each
column asked for, times the width of the boxes only for columns that are grouped by or joined on.
"""
