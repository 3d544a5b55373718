-- Protection of 1:M tables, in which a person has a set of sensitive values: needs the macros of risk.sql.
--
-- The sensitive column holds lists (a release with one row a person) or single values (raw and exploded tables,
-- with the name of the column that says whose row it is in `person`). A person's fingerprint is the set of its
-- values, NULL being a value; its class is given by its published quasi-identifiers, which for a person with
-- differing rows means the set of all of them.
--   tbl        table or view name, file name, CTE, or a SELECT in parentheses
--   qi         names of the quasi-identifiers
--   sensitive  name of the sensitive column, or a list of names: one fingerprint over all of them
--   person     name of the person column; NULL: every row is a person
-- Cost: hash aggregations over rows; km_anonymity lists the sets of up to m values of each person.

-- A column's values in one row as a list of texts, marked with the number of the column.
create or replace temp macro _anon_items(name, number) as
    'list_transform(case when typeof(' || _anon_column(name) || ') like ''%[]'' then ' || _anon_column(name)
    || '::varchar[] else [' || _anon_column(name) || '::varchar] end, lambda _i: ''' || number
    || ':'' || coalesce(_i, ''(null)''))';

-- Common table expression _anon_person(_class, _items): quasi-identifiers and fingerprint of each person.
create or replace temp macro _anon_persons(fn, tbl, qi, sensitive, person) as
    'with _anon_row as (select ' || _anon_qi(fn, qi) || ', flatten(['
    || coalesce(
        array_to_string(list_transform(sensitive::varchar[], lambda name, i: _anon_items(name, i)), ', '),
        error(fn || ': no sensitive column is named; pass it as sensitive := ''disease''')
    ) || ']) as _items, ' || coalesce(_anon_column(person::varchar), 'row_number() over ()') || ' as _p from '
    || _anon_from(tbl) || '),
    _anon_person as (
        select list_sort(list_distinct(list(row(' || coalesce(_anon_keys(qi), '') || ')))) as _class,
            list_sort(list_distinct(flatten(list(_items)))) as _items
        from _anon_row group by _p
    )';

-- kl_diversity(tbl, qi, sensitive, person): how far (k,l)-diversity is met (Gong, Luo, Yang, Ni & Li 2017).
--   k                   persons who share the rarest fingerprint
--   frequency_l         least 1 / share of the most frequent fingerprint of a class; distinct_l, entropy_l likewise
--   qi_risk             chance to pick a person out of the smallest class
--   fingerprint_risk    chance to pick a person out of those with the rarest fingerprint, 1/k
create or replace temp macro kl_diversity(tbl, qi := NULL, sensitive := NULL, person := NULL) as table
    from query(
        _anon_persons('kl_diversity', tbl, qi, _anon_name_list(sensitive), person) || ',
        _anon_print as (select count(*) as _n from _anon_person group by _items),
        _anon_pair as (
            select _class, count(*) as _n, sum(count(*)) over (partition by _class) as _of_class
            from _anon_person group by _class, _items
        ),
        _anon_diverse as (
            select sum(_n) as _size, max(_n) as _most, count(*) as _different,
                exp(sum(_n * ln(_of_class / _n)) / sum(_n)) as _effective
            from _anon_pair group by _class
        ),
        _anon_k as (select coalesce(min(_n), ''infinity''::double) as _k, count(*) as _prints from _anon_print)
        select coalesce(sum(_size), 0)::bigint as persons, count(_size) as classes, any_value(_prints) as fingerprints,
            any_value(_k) as k,
            coalesce(min(_size / _most), ''infinity''::double) as frequency_l,
            coalesce(min(_different), ''infinity''::double) as distinct_l,
            coalesce(min(_effective), ''infinity''::double) as entropy_l,
            coalesce(1 / min(_size), 0) as qi_risk, 1 / any_value(_k) as fingerprint_risk
        from _anon_k left join _anon_diverse on true having true'
    );

-- Names as a list: 'a' and ['a', 'b'] alike.
create or replace temp macro _anon_name_list(names) as
    case when names is null then null when typeof(names) like '%[]' then names::varchar[] else [names::varchar] end;

-- km_anonymity(tbl, qi, sensitive, m, person): least number of persons of a class who have a set of values that a
-- person of the class has, by size of the set up to m; size 0 is the class itself. (k, k^m)-anonymity
-- (Poulis et al. 2013) holds for the least `smallest_support` of the rows.
create or replace temp macro km_anonymity(tbl, qi := NULL, sensitive := NULL, m := 2, person := NULL) as table
    from query(
        'with recursive ' || _anon_persons('km_anonymity', tbl, qi, _anon_name_list(sensitive), person)[6:] || ',
        _anon_set(_class, _items, _set) as (
            select _class, _items, []::varchar[] from _anon_person
            union all
            select _class, _items, list_append(_set, _next)
            from (
                select _class, _items, _set,
                    unnest(list_filter(_items, lambda _i: len(_set) = 0 or _i > _set[-1])) as _next
                from _anon_set where len(_set) < ' || m::integer || '
            )
        ),
        _anon_support as (select _class, _set, count(*) as _n from _anon_set group by _class, _set)
        select len(_set) as size, count(*) as sets, min(_n) as smallest_support
        from _anon_support group by len(_set) order by len(_set)'
    );
