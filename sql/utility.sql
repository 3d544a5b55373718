-- Utility of a release of plain rows, measured against the original. Needs the macros of risk.sql.
--   original, release  names of tables, views, files or common table expressions, or SELECTs in parentheses
--   qi           list of the columns to compare, quasi-identifiers or others

-- k_marginal(original, release, qi, k := 2): how similar the marginals of all sets of k columns are, as a score: 1000
-- for equal marginals, 0 for disjoint ones (Task et al. 2023, NIST SDNist). The score of a set is 1000 (1 - d), d being the
-- total variation distance of the shares of its combinations of values; `score` is the mean over the sets, and
-- worst_score the lowest, of the columns in `worst`. Values are compared as they are: bin numbers first.
-- Cost: records times sets.
create or replace temp macro k_marginal(original, release, qi := NULL, k := 2) as table
    with records as (
        select * exclude (_anon_value, _anon_person, _anon_weight, _anon_none), true as _anon_original
        from _anon_records('k_marginal', original, qi, null, null, null)
        union all by name
        select * exclude (_anon_value, _anon_person, _anon_weight, _anon_none), false as _anon_original
        from _anon_records('k_marginal', release, qi, null, null, null)
    ),
    as_text as (select columns(* exclude (_anon_original))::varchar, _anon_original from records),
    listed as (select list_value(*columns(* exclude (_anon_original))) as texts, _anon_original from as_text),
    column_set as (
        select list_filter(range(1, len(qi) + 1), lambda place: (number >> (place - 1)) & 1 = 1) as places
        from (select unnest(range(1 << len(qi))) as number)
        where bit_count(number) = k
    ),
    names as (
        select struct_keys(r) as there
        from (select * exclude (_anon_original) from records limit 1) as r
    ),
    cell as (
        select places, list_select(texts, places) as combination,
            count(*) filter (_anon_original) / (select count(*) from listed where _anon_original) as p,
            count(*) filter (not _anon_original) / (select count(*) from listed where not _anon_original) as q
        from listed, column_set
        group by places, combination
    ),
    distance as (select places, sum(abs(p - q)) / 2 as d from cell group by places)
    select count(*) as marginals, 1000 * (1 - avg(d)) as score,
        array_to_string(list_select((select there from names), arg_max(places, d)), ', ') as worst,
        1000 * (1 - max(d)) as worst_score
    from distance;
