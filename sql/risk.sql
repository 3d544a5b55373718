-- Risk of a table as it is published: how small its equivalence classes are and how much a class gives away.
--
-- An equivalence class is a set of rows with the same published quasi-identifiers, compared as published: two
-- rows with the same interval, set or node are in one class, and NULL is a value of its own, in the
-- quasi-identifiers as well as in the sensitive column. Texts are equal where their collation says so (GROUP BY ALL
-- would not look at it). Values stand in DuckDB's own order: -infinity, numbers, infinity, NaN, NULL. The macros read raw tables and releases alike.
--   tbl        table or view name (qualified and quoted as in SQL), file name, CTE, or a SELECT in parentheses
--   qi         names of the quasi-identifiers, e.g. ['age', 'sex']; an unknown name is an error
--   sensitive  name of the sensitive column. Where it is a MAP from value to count (an Anatomy release), the
--              classes of l_diversity and t_closeness are the buckets, whatever the quasi-identifiers are.
--   person     name of the column that says whose row it is; NULL: every row is a person. Where it is named, persons
--              are counted: one counts once in each class she has rows in, and once for each sensitive value she has
--              there. A row of nobody (NULL) is an error.
--   sample_weights  name of the column that says how many persons of the population a row of a sample stands for: classes
--              are then as large as the population's are estimated to be. NULL: the table is all there is.
-- An empty table meets every requirement: k and l are infinite; t, risks and sizes are 0.
-- Cost: one hash aggregation over the rows, then work over the distinct (class, value) pairs.

-- Text of the table to read, named _anon_t: a SELECT in parentheses as it stands, anything else by name.
create or replace temp macro _anon_from(tbl) as
    case when ltrim(tbl) like '(%' then tbl else 'query_table(''' || replace(tbl, '''', '''''') || ''')' end
    || ' as _anon_t';

-- A column of _anon_t by name, quoted so that a misspelt name cannot mean anything else.
create or replace temp macro _anon_column(name) as '_anon_t."' || replace(name, '"', '""') || '"';

-- The person of a row, and the number of persons of a group (of rows, where none is named).
create or replace temp macro _anon_whose(fn, person) as
    case when person is null then 'null' else 'case when ' || _anon_column(person) || ' is null then error(''' || fn
    || ': the person column is NULL in some rows, so whose they are is unknown; leave them out'') else '
    || _anon_column(person) || ' end' end;
create or replace temp macro _anon_size(fn, person) as
    case when person is null then 'count(*)' else 'count(distinct ' || _anon_whose(fn, person) || ')' end;

-- The number of persons of the population that a group of rows stands for, by the weights of a sample.
create or replace temp macro _anon_weight(fn, weights, person) as
    case
        when weights is null then _anon_size(fn, person)
        when person is not null then error(fn || ': sample_weights and person cannot be combined; give one row a person')
        else 'sum(case when isfinite(' || _anon_column(weights::varchar) || '::double) and '
        || _anon_column(weights::varchar) || ' > 0 then ' || _anon_column(weights::varchar) || '::double else error('''
        || fn || ': sample_weights must be numbers above 0, in every row'') end)' end;

-- The quasi-identifiers as a select list, `_anon_t."age" as _anon_q1, ...`; raises where none is named.
create or replace temp macro _anon_qi(fn, qi) as
    case
        when qi is null or len(qi::varchar[]) = 0
            then error(fn || ': no quasi-identifier is named; pass them as qi := [''age'', ''sex'']')
        when list_contains(list_transform(qi::varchar[], lambda name: name is null), true)
            then error(fn || ': qi holds a NULL; every entry must be a column name')
        else array_to_string(
            list_transform(qi::varchar[], lambda name, i: _anon_column(name) || ' as _anon_q' || i), ', '
        )
    end;

-- The names the select list above gives the quasi-identifiers, `_anon_q1, _anon_q2, ...`.
create or replace temp macro _anon_keys(qi) as
    coalesce(array_to_string(list_transform(range(1, len(qi::varchar[]) + 1), lambda i: '_anon_q' || i), ', '), '');

-- The sensitive column, quoted; raises where none is named. A STRUCT is a group of columns (a sliced release),
-- whose values taken together would look more diverse than the sensitive attribute in it.
create or replace temp macro _anon_sensitive(fn, name) as
    'case when typeof(' || _anon_column(name) || ') like ''STRUCT(%'' then error(''' || fn
    || ': the sensitive column is a STRUCT; name one of its fields in a SELECT: (SELECT *, s.field AS field FROM t)'
    || ''') else ' || _anon_column(name) || ' end';

-- The name of the sensitive column, which must be given.
create or replace temp macro _anon_given(fn, name) as
    coalesce(name::varchar, error(fn || ': no sensitive column is named; pass it as sensitive := ''disease'''));

-- Common table expressions behind l_diversity and t_closeness, one row for each class and value in it:
--   _anon_cell (class, class_rows, value_rows, place),
--   _anon_value (place, share, label): each value's share in the table.
-- A value's place is its rank in the order of the values, NULL last. typeof() is folded when the query is
-- bound, so of the two readings (plain column, MAP of a bucket) only the one that applies is ever run.
create or replace temp macro _anon_cells(fn, tbl, qi, sensitive, person) as
    'with _anon_row as (select ' || _anon_qi(fn, qi) || ', ' || _anon_sensitive(fn, _anon_given(fn, sensitive))
    || ' as _v, ' || _anon_whose(fn, person) || ' as _p from ' || _anon_from(tbl) || '),
    _anon_plain_cell as (
        select ' || _anon_keys(qi) || ', _v, '
    || case when person is null then 'count(*)' else 'count(distinct _p)' end || ' as _c from _anon_row
        where typeof(_v) not like ''MAP(%'' group by ' || _anon_keys(qi) || ', _v
    ),
    _anon_plain_class as (
        select row_number() over () as _id, sum(_c) as _n, ' || case when person is null then 'sum(_c)'
    else 'any_value(_of.persons)' end || ' as _persons, list(_v) as _vs, list(_c) as _cs
        from _anon_plain_cell' || case when person is null then '' else ' join (select ' || _anon_keys(qi)
    || ', count(distinct _p) as persons from _anon_row group by ' || _anon_keys(qi) || ') as _of on (' || array_to_string(
        list_transform(range(1, len(qi::varchar[]) + 1), lambda i:
            '_anon_plain_cell._anon_q' || i || ' is not distinct from _of._anon_q' || i), ' and ') || ')' end
    || ' group by ' || array_to_string(list_transform(
        range(1, len(qi::varchar[]) + 1), lambda i: '_anon_plain_cell._anon_q' || i), ', ') || '
    ),
    _anon_plain as (select _id, _n, unnest(_vs) as _v, unnest(_cs) as _c from _anon_plain_class),
    _anon_plain_value as (
        select _v, row_number() over (order by _v nulls last) as _place, _w / sum(_w) over () as _share
        from (select _v, sum(_c) as _w from _anon_plain_cell group by _v)
    ),
    _anon_map as (
        select coalesce(
                try_cast(_v::varchar as map(varchar, bigint)),
                error(''' || fn || ': the sensitive column is neither a value nor a MAP from value to count'')
            ) as _m, ' || case when person is null then 'count(*)' else 'error(''' || fn
    || ': counts of rows in buckets do not tell persons; leave person out for what they say of rows'')' end || ' as _w
        from _anon_row where typeof(_v) like ''MAP(%'' group by _v
    ),
    _anon_bucket as (
        select row_number() over () as _id, list_sum(map_values(_m)) as _n, _n as _persons, _w,
            map_keys(_m) as _vs, map_values(_m) as _cs
        from _anon_map
    ),
    _anon_piece as (select _id, _n, _w, unnest(_vs) as _v, unnest(_cs) as _c from _anon_bucket),
    _anon_bucket_value as (
        select _v, row_number() over (order by try_cast(_v as double), _v) as _place, _w / sum(_w) over () as _share
        from (select _v, sum(_w * _c / _n) as _w from _anon_piece group by _v)
    ),
    _anon_cell as (
        select _id as class, _n as class_rows, _c as value_rows, _place as place
        from _anon_plain join _anon_plain_value on _anon_plain._v is not distinct from _anon_plain_value._v
        union all
        select _id, _n, _c, _place from _anon_piece join _anon_bucket_value using (_v)
    ),
    _anon_value as (
        select _place as place, _share as share, _v::varchar as label from _anon_plain_value
        union all
        select _place, _share, _v from _anon_bucket_value
    )';

-- equivalence_classes(tbl, qi): one row a class, the quasi-identifiers under their own names, class_size and, with
-- sample_weights, population_size.
create or replace temp macro equivalence_classes(tbl, qi := NULL, person := NULL, sample_weights := NULL) as table
    from query(
        'select _anon_c.* from (select '
        || case
            when _anon_qi('equivalence_classes', qi) is null then ''
            else array_to_string(list_transform(qi::varchar[], lambda name: _anon_column(name)), ', ')
        end
        || ', ' || _anon_size('equivalence_classes', person) || ' as class_size' || case when sample_weights is null
            then '' else ', ' || _anon_weight('equivalence_classes', sample_weights, person) || ' as population_size' end
        || ' from ' || _anon_from(tbl) || ' group by '
        || coalesce(array_to_string(list_transform(qi::varchar[], lambda name: _anon_column(name)), ', '), '')
        || ') as _anon_c'
    );

-- k_anonymity(tbl, qi): k, the number of rows (persons) in the smallest class (Samarati and Sweeney 1998); with
-- sample_weights the estimated number of persons of the population in it. Of persons also person_share, the largest
-- share one person has of the rows of a class: k persons hide nobody who has nearly all of their rows.
create or replace temp macro k_anonymity(tbl, qi := NULL, person := NULL, sample_weights := NULL) as table
    from query(
        case when person is null or sample_weights is not null then
            'select coalesce(min(_n), ''infinity''::double) as k from (select ' || _anon_qi('k_anonymity', qi) || ', '
            || _anon_weight('k_anonymity', sample_weights, person) || ' as _n from ' || _anon_from(tbl)
            || ' group by ' || _anon_keys(qi) || ')'
        else
            'select coalesce(min(_n), ''infinity''::double) as k, coalesce(max(_s), 0) as person_share from (
                select count(*) as _n, max(_c) / sum(_c) as _s from (
                    select ' || _anon_qi('k_anonymity', qi) || ', ' || _anon_whose('k_anonymity', person)
            || ' as _anon_p, count(*) as _c from ' || _anon_from(tbl) || ' group by ' || _anon_keys(qi) || ', _anon_p
                ) group by ' || _anon_keys(qi) || ')'
        end
    );

-- l_diversity(tbl, qi, sensitive): the level the least diverse class reaches, one row a measure.
--   distinct   number of distinct values (Machanavajjhala et al. 2006)
--   frequency  rows over rows with the most frequent value: l here means that no value has a share above 1/l; of
--              persons, no value is had by more than one in l
--   entropy    exp of the entropy of the values, so that n equally frequent values count n
--   recursive  smallest c the table does not quite reach: it is recursive (c, l)-diverse for every larger c.
--              l is the parameter (default 2); infinite where a class has fewer than l values
-- Of persons no level is above their number: all the values of one person in a class of her own are hers. They have a
-- line more:
--   rows       rows over the rows of the value, or of the person, that has most of them
create or replace temp macro l_diversity(tbl, qi := NULL, sensitive := NULL, l := 2, person := NULL) as table
    from query(
        _anon_cells('l_diversity', tbl, qi, sensitive, person) || ',
        _anon_group as (
            select _n, _persons, _cs from _anon_plain_class union all select _n, _persons, _cs from _anon_bucket
        ),
        _anon_class as (
            select least(len(_cs), _persons) as _m, _persons / list_max(_cs) as _frequency,
                least(list_sum(list_transform(_cs, lambda c: c * ln(_n / c))) / _n,
                    case when ' || (person is not null) || ' then ln(_persons) end) as _entropy,
                case when _persons < ' || coalesce(l, 1) || ' then ''infinity'' else list_max(_cs) / (_n - ' || case
                    when l is null or l < 1 or l <> floor(l)
                        then error('l_diversity: l must be a whole number from 1, got ' || coalesce(l::varchar, 'NULL'))
                    when l = 1 then '0'
                    when l = 2 then 'list_max(_cs)'
                    else 'list_sum(list_reverse_sort(_cs)[:' || (l - 1)::bigint || '])'
                end || ') end as _recursive
            from _anon_group
        ),
        _anon_level as (
            select min(_m)::double as _m, min(_frequency) as _f, exp(min(_entropy)) as _e, max(_recursive) as _r
            from _anon_class
        )
        select unnest([''distinct'', ''frequency'', ''entropy'', ''recursive''' || case when person is null then ''
            else ', ''rows''' end || ']) as measure,
            unnest([
                coalesce(_m, ''infinity''), coalesce(_f, ''infinity''), coalesce(_e, ''infinity''), coalesce(_r, 0)'
        || case when person is null then '' else ', (
                select coalesce(min(_n / greatest(_c, _d)), ''infinity'') from (
                    select count(*) over (partition by ' || _anon_keys(qi) || ') as _n,
                        count(*) over (partition by ' || _anon_keys(qi) || ', _v) as _c,
                        count(*) over (partition by ' || _anon_keys(qi) || ', _p) as _d
                    from _anon_row
                ))' end || '
            ]) as value
        from _anon_level'
    );

-- Earth mover's distance of each class with equal ground distance: the sum of the positive differences of
-- shares, which only values of the class can have.
create or replace temp macro _anon_emd_equal() as
    ',
    _anon_worst as (
        select max(_d) as _equal from (
            select sum(greatest(value_rows / class_rows - share, 0)) as _d
            from _anon_cell join _anon_value using (place) group by class
        )
    )';

-- With ordered ground distance (and equal beside it): P and Q being the cumulative shares of class and table, the
-- mean of |P - Q| over all places but the last. P is constant between two values of the class and Q rises, so each
-- stretch splits at one crossing place r (the last with Q <= P) and sums in closed form from A, the running
-- sum of Q; _past is A just before a place. The cost does not grow with classes x values.
create or replace temp macro _anon_emd_ordered() as
    ',
    _anon_cumulated as (select place, share, sum(share) over (order by place) as _q from _anon_value),
    _anon_ladder as (
        select place, share, _q, sum(_q) over (order by place) as _a, _a - _q as _past, count(*) over () as _m
        from _anon_cumulated
    ),
    _anon_end as (select coalesce(max(_m), 1) as _m, coalesce(max(_past), 0) as _past from _anon_ladder),
    _anon_step as (
        select class, greatest(value_rows / class_rows - share, 0) as _equal, place as _x, _past,
            sum(value_rows) over _w / class_rows as _p,
            lead(place, 1, (select _m from _anon_end)) over _w as _next,
            lead(_past, 1, (select _past from _anon_end)) over _w as _next_past
        from _anon_cell join _anon_ladder using (place)
        window _w as (partition by class order by place)
    ),
    _anon_point as (
        select distinct _p as _at, 0 as _reached, 0 as _sum from _anon_step
        union all
        select _q, place, _a from _anon_ladder
    ),
    _anon_cross as (
        select distinct _at, max(_reached) over _w as _reached, max(_sum) over _w as _sum
        from _anon_point window _w as (order by _at)
    ),
    _anon_piece_of_class as (
        select class, _equal, _past, _p, _x + _next - 2 as _span,
            greatest(_x - 1, least(_next - 1, _reached)) as _r,
            greatest(_past, least(_next_past, _sum)) as _a
        from _anon_step join _anon_cross on _p = _at
    ),
    _anon_class as (
        select sum(_equal) as _equal, sum(2 * (_past - _a) + _p * (2 * _r - _span)) as _excess
        from _anon_piece_of_class group by class
    ),
    _anon_worst as (
        select max(_equal) as _equal, (max(_excess) + any_value(_past)) / greatest(any_value(_m) - 1, 1) as _ordered
        from _anon_class, _anon_end
    )';

-- Earth mover's distance of each class over a tree whose leaves all have one depth: the mean over the levels
-- below the root of the equal distance between the nodes of the level (edges of equal length 1/(2 height)).
create or replace temp macro _anon_emd_tree(hierarchy) as
    ',
    _anon_leaf as (
        select distinct _path from (
            select list_value(*columns(*)) as _path from (select columns(*)::varchar from '
    || _anon_from(hierarchy) || ')
        )
    ),
    _anon_path as (
        select place, share, case
            when _path is null and label is not null
                then error(''t_closeness: the sensitive column has a value that is not a leaf of the hierarchy'')
            when list_contains(list_transform(_path, lambda node: node is null), true)
                then error(''t_closeness: the hierarchy has a NULL; every leaf needs all its ancestors'')
            when count(*) over (partition by place) > 1
                then error(''t_closeness: the hierarchy lists a leaf twice, with different ancestors'')
            else _path end as _path
        from _anon_value left join _anon_leaf on label = _path[1]
    ),
    _anon_height as (select coalesce(max(len(_path)), 1) - 1 as _h from _anon_leaf),
    _anon_node as (
        select list(place) as _places, sum(share) as _share, row_number() over () as _node
        from _anon_path, (select unnest(range(1, _h + 1)) as _level from _anon_height)
        group by _level, _path[_level:]
    ),
    _anon_member as (select _node, _share, unnest(_places) as place from _anon_node),
    _anon_weight as (
        select class, _node, sum(value_rows) / any_value(class_rows) - any_value(_share) as _extra
        from _anon_cell join _anon_member using (place) group by class, _node
    ),
    _anon_class as (
        select sum(greatest(_extra, 0)) / greatest((select _h from _anon_height), 1) as _tree
        from _anon_weight group by class
    )';

-- t_closeness(tbl, qi, sensitive): t, the largest earth mover's distance between a class and the whole table
-- (Li, Li and Venkatasubramanian 2007), and the ground distance it was measured with:
--   equal      1 between any two values
--   ordered    difference of ranks over (number of values - 1)
--   hierarchy  height of the lowest common ancestor over the height of the root
-- The default is hierarchy where a hierarchy table is named (one row a leaf: the leaf, then its ancestors up to
-- the root), ordered for numbers, dates and times, and equal for everything else.
create or replace temp macro t_closeness(
    tbl, qi := NULL, sensitive := NULL, distance := NULL, hierarchy := NULL, person := NULL
) as table
    from query(
        _anon_cells('t_closeness', tbl, qi, sensitive, person) || case
            when distance is not null and distance not in ('equal', 'ordered', 'hierarchy') then error(
                't_closeness: distance must be ''equal'', ''ordered'' or ''hierarchy'', got ''' || distance || ''''
            )
            when distance = 'hierarchy' and hierarchy is null then error(
                't_closeness: distance ''hierarchy'' needs a hierarchy table, hierarchy := ''name'''
            )
            when hierarchy is not null and coalesce(distance, 'hierarchy') <> 'hierarchy' then error(
                't_closeness: with a hierarchy table distance must be left out or be ''hierarchy'''
            )
            when hierarchy is not null
                then _anon_emd_tree(hierarchy)
                || ' select coalesce(max(_tree), 0)::double as t, ''hierarchy'' as distance from _anon_class'
            when distance = 'equal'
                then _anon_emd_equal()
                || ' select coalesce(_equal, 0)::double as t, ''equal'' as distance from _anon_worst'
            when distance = 'ordered'
                then _anon_emd_ordered()
                || ' select coalesce(_ordered, 0)::double as t, ''ordered'' as distance from _anon_worst'
            else _anon_emd_ordered() || ',
                _anon_kind as (
                    select case when regexp_matches(
                        typeof(any_value(_v)),
                        ''^(MAP\()?(U?(TINY|SMALL|BIG|HUGE)?INT|U?INTEGER|BIGNUM|FLOAT|DOUBLE|DECIMAL|DATE|TIME)''
                    ) then ''ordered'' else ''equal'' end as distance
                    from _anon_row
                )
                select coalesce(case distance when ''ordered'' then _ordered else _equal end, 0)::double as t, distance
                from _anon_kind, _anon_worst'
        end
    );

-- The risk of a row whose class has _n rows of a sample that stand for _f persons: the mean of 1 / F over the sizes F
-- that the class may have in the population, a negative binomial with p = _n / _f (Benedetti and Franconi 1998). It is
-- p times the integral over [0, 1] of u^(n-1) / (p + q u), q being 1 - p: by its series in q where that converges fast,
-- else by the recurrence I(m) = (1/m - p I(m-1)) / q from I(0) = -ln(p) / q, which is stable for p <= 1/2.
create or replace temp macro _anon_sampled_risk() as
    'case when _f <= _n then 1 / _n
        when _n > 40 or 2 * _n > _f then _n / _f * list_sum(list_transform(range(0, 60), lambda j:
            exp(j * ln(1 - _n / _f) + lgamma(_n) + lgamma(j + 1) - lgamma(_n + j + 1))))
        else _n / _f * list_reduce(
            list_concat([-ln(_n / _f) / (1 - _n / _f)], list_transform(range(1, _n::bigint), lambda m: 1 / m)),
            lambda a, x: (x - _n / _f * a) / (1 - _n / _f))
        end';

-- reidentification_risk(tbl, qi, threshold := 0.2): what somebody who knows a person is in the table and knows
-- the person's quasi-identifiers gains (prosecutor risk, 1 over class size; El Emam and Dankar 2008): the highest and
-- the average over the rows, the share of rows with a risk above the threshold, and the rows alone in their class.
-- With sample_weights it is what somebody gains who does not know whether the person is in the sample (Benedetti and
-- Franconi 1998). Where persons are counted, `rows` are persons, each as often as there are classes she has rows in.
create or replace temp macro reidentification_risk(
    tbl, qi := NULL, threshold := 0.2, person := NULL, sample_weights := NULL
) as table
    from query(
        'select coalesce(sum(_n), 0)::bigint as rows, coalesce(max(_r), 0)::double as highest,
            coalesce(sum(_n * _r) / sum(_n), 0)::double as average,
            coalesce(sum(_n) filter (_r > ' || case
                when threshold is null or threshold < 0 or threshold > 1 then error(
                    'reidentification_risk: threshold must lie in [0, 1], got ' || coalesce(threshold::varchar, 'NULL')
                )
                else threshold::double::varchar end || '::double) / sum(_n), 0) as above_threshold,
            count(*) filter (_n = 1) as sample_uniques
        from (select _n, ' || case when sample_weights is null then '1 / _n' else _anon_sampled_risk() end
        || ' as _r from (select ' || _anon_qi('reidentification_risk', qi) || ', '
        || _anon_size('reidentification_risk', person) || ' as _n, '
        || _anon_weight('reidentification_risk', sample_weights, person) || ' as _f from ' || _anon_from(tbl)
        || ' group by ' || _anon_keys(qi) || '))'
    );

-- class_statistics(tbl, qi): number and sizes of the classes, and the discernibility of the table, the sum of
-- the squared class sizes (Bayardo and Agrawal 2005), between rows and rows squared.
create or replace temp macro class_statistics(tbl, qi := NULL, person := NULL) as table
    from query(
        'select coalesce(sum(_n), 0)::bigint as rows, count(*) as classes, coalesce(min(_n), 0) as smallest,
            coalesce(avg(_n), 0) as average, coalesce(max(_n), 0) as largest,
            coalesce(sum(_n::hugeint * _n), 0)::double as discernibility
        from (select ' || _anon_qi('class_statistics', qi) || ', ' || _anon_size('class_statistics', person)
        || ' as _n from ' || _anon_from(tbl) || ' group by ' || _anon_keys(qi) || ')'
    );
