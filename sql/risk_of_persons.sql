-- Protection of 1:M tables, in which an individual has a set of sensitive values. Needs the macros of risk.sql.
--
-- The sensitive column holds lists (a release with one record per individual) or single values (raw tables, with the name
-- of the column that identifies the individual in `person`). The fingerprint of an individual is the set of its values,
-- NULL being a value; its class is given by its published quasi-identifiers, which for an individual with differing
-- records is the set of all of them.
--   tbl        name of a table, view, file or common table expression, or a SELECT in parentheses
--   qi         list of the quasi-identifiers
--   sensitive  name of the sensitive column, or a list of names: one fingerprint over all of them
--   person     name of the person column; NULL: every record is an individual
-- Cost: hash aggregations over records; km_anonymity lists the sets of up to m values of each individual.

-- Names as a list: 'a' and ['a', 'b'] alike.
create or replace temp macro _anon_name_list(names) as
    case when names is null then []::varchar[] when typeof(names) like '%[]' then names::varchar[] else [names::varchar] end;

-- A value, or a list of them, as a list of texts.
create or replace temp macro _anon_texts(value) as
    case when typeof(value) like '%[]' then value::varchar[] else [value::varchar] end;

-- The individuals: class and fingerprint, a list of texts that start with the number of their column.
create or replace temp macro _anon_fingerprints(fn, tbl, qi, sensitive, person) as table
    with _anon_names as materialized (
        from _anon_checked(fn, tbl, qi, list_append(_anon_name_list(sensitive), person))
        where len(_anon_name_list(sensitive)) > 0
            or error(fn || ': no sensitive column is named. Pass it as sensitive := ''disease'' [bad-argument]')
    ),
    records as (
        select row(*columns(lambda c: _anon_among(c, qi) or c = '_anon_none')) as _anon_qi,
            coalesce(*columns(lambda c: _anon_among(c, [person]) or c = '_anon_none')) as _anon_person,
            _anon_number,
            _anon_texts(columns(lambda c: _anon_among(c, _anon_name_list(sensitive)) or c = '_anon_none'))
        from (select *, null as _anon_none, if(person is null, row_number() over (), null) as _anon_number from _anon_table(tbl))
        where (select checked from _anon_names)
    ),
    listed as (
        select _anon_qi, _anon_person, _anon_number, list_value(*columns(* exclude (_anon_qi, _anon_person, _anon_number))) as texts from records
    ),
    numbered as (
        -- the last column is _anon_none
        select _anon_qi, _anon_person, _anon_number, flatten(list_transform(texts[:-2], lambda of_column, i:
            list_transform(of_column, lambda t: i || ':' || coalesce(t, '(null)')))) as items
        from listed
    )
    select list_sort(list_distinct(list(_anon_qi))) as class, list_sort(list_distinct(flatten(list(items)))) as fingerprint
    from numbered
    group by _anon_person, _anon_number;

-- kl_diversity(tbl, qi, sensitive, person): the parameters of (k,l)-diversity that a table reaches (Gong, Luo, Yang, Ni and
-- Li 2017).
--   k                   individuals who share the rarest fingerprint
--   frequency_l         least 1 / share of the most frequent fingerprint of a class; distinct_l and entropy_l likewise
--   qi_risk             probability of picking an individual out of the smallest class
--   fingerprint_risk    probability of picking an individual out of those with the rarest fingerprint, 1/k
create or replace temp macro kl_diversity(tbl, qi := NULL, sensitive := NULL, person := NULL) as table
    with individual as (from _anon_fingerprints('kl_diversity', tbl, qi, sensitive, person)),
    fingerprint_size as (select count(*) as n from individual group by fingerprint),
    cell as (
        select class, count(*) as n, sum(count(*)) over (partition by class) as class_n
        from individual group by class, fingerprint
    ),
    diversity as (
        select sum(n) as size, sum(n) / max(n) as frequency_l, count(*) as distinct_l,
            exp(sum(n * ln(class_n / n)) / sum(n)) as entropy_l
        from cell group by class
    ),
    fingerprints as (select coalesce(min(n), 'infinity'::double) as k, count(*) as number from fingerprint_size)
    select coalesce(sum(size), 0)::bigint as persons, count(size) as classes, any_value(number) as fingerprints,
        any_value(k) as k,
        coalesce(min(frequency_l), 'infinity'::double) as frequency_l,
        coalesce(min(distinct_l), 'infinity'::double) as distinct_l,
        coalesce(min(entropy_l), 'infinity'::double) as entropy_l,
        coalesce(1 / min(size), 0) as qi_risk, 1 / any_value(k) as fingerprint_risk
    from fingerprints left join diversity on true;

-- km_anonymity(tbl, qi, sensitive, m, person): the smallest number of individuals of a class who have a set of values that
-- occurs in the class, by the size of the set up to m; size 0 is the class itself. (k, k^m)-anonymity (Poulis et al. 2013)
-- holds for the least `smallest_support` of the rows.
create or replace temp macro km_anonymity(tbl, qi := NULL, sensitive := NULL, m := 2, person := NULL) as table
    with recursive subset(class, fingerprint, items) as (
        select class, fingerprint, []::varchar[] from _anon_fingerprints('km_anonymity', tbl, qi, sensitive, person)
        union all
        select class, fingerprint, list_append(items, next_item)
        from (
            select class, fingerprint, items,
                unnest(list_filter(fingerprint, lambda i: len(items) = 0 or i > items[-1])) as next_item
            from subset where len(items) < m
        )
    ),
    support as (select class, items, count(*) as n from subset group by class, items)
    select len(items) as size, count(*) as sets, min(n) as smallest_support
    from support group by len(items) order by len(items);
