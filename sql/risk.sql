-- Re-identification and attribute disclosure risk of a table as it is published. Runs in the stock DuckDB shell:
-- .read this file.
--
-- An equivalence class is a set of records with the same published quasi-identifiers: two records with the same
-- interval, set or node are in one class, and NULL is a value like any other. Raw tables and releases are read alike.
--   tbl             name of a table, view, file or common table expression, or a SELECT in parentheses
--   qi              list of the quasi-identifiers, ['age', 'sex']; an unknown name is an error with the nearest name
--   sensitive       name of the sensitive column. Where it is a MAP from value to count (an Anatomy release), the
--                   classes of l_diversity and t_closeness are its buckets
--   person          name of the column that identifies the individual of a record; individuals are then counted in
--                   place of records, each once in every class and for every sensitive value of the class
--   sample_weights  name of the column with the number of individuals of the population that a sampled record represents
--   missing         'value': NULL equals NULL only; 'wildcard': NULL matches every value, as in sdcMicro
-- An empty table meets every requirement: k and l are infinite; t, risks and sizes are 0.
-- DuckDB 1.5 compares texts byte by byte here, whatever their collation; write (select lower(name) as name, ... from t).
-- Cost: a hash aggregation over the records, then work over the distinct pairs of class and value.

-- The rows of `tbl`.
create or replace temp macro _anon_table(tbl) as table
    from query(if(ltrim(tbl) like '(%', tbl, 'from query_table(''' || replace(tbl, '''', '''''') || ''')'));

-- Whether the column `name` is one of `names`; the case of letters does not matter.
create or replace temp macro _anon_among(name, names) as
    list_contains(list_transform(names, lambda n: lower(n)), lower(name));

-- One row, checked = true; an error where quasi-identifiers are not named or where a column does not exist. The row of
-- NULLs gives an empty table its column names.
create or replace temp macro _anon_checked(fn, tbl, qi, others) as table
    select case
        when qi is null or len(qi) = 0
            then error(fn || ': no quasi-identifier is named. Pass them as qi := [''age'', ''sex''] [bad-argument]')
        when list_contains(list_transform(qi, lambda name: name is null), true)
            then error(fn || ': qi holds a NULL; every entry must be a column name [bad-argument]')
        when len(missing) > 0
            then error(fn || ': there is no column ''' || missing[1] || '''. Did you mean '''
                || list_sort(list_transform(there, lambda c: {near: -jaro_winkler_similarity(lower(c), lower(missing[1])), c: c}))[1].c
                || '''? The columns are ' || array_to_string(there, ', ') || ' [bad-column]')
        else true
    end as checked
    from (
        select there, list_filter(list_concat(qi, others), lambda n: n is not null and not _anon_among(n, there)) as missing
        from (
            select list_filter(struct_keys(record), lambda name: name <> '_anon_none') as there
            from (from _anon_table(tbl) union all by name select null as _anon_none) as record
            limit 1
        )
    );

-- The records: quasi-identifiers by their names, and _anon_value, _anon_person and _anon_weight, each NULL where no column
-- is named for it. The column _anon_none keeps every list of columns from being empty.
create or replace temp macro _anon_records(fn, tbl, qi, sensitive, person, sample_weights) as table
    with _anon_names as materialized (
        from _anon_checked(fn, tbl, qi, [sensitive, person, sample_weights])
        where person is null or sample_weights is null
            or error(fn || ': sample_weights and person cannot be combined. Give each individual one record [bad-argument]')
    )
    select * replace (
        case when typeof(_anon_value) like 'STRUCT(%'
            then error(fn || ': the sensitive column is a STRUCT. Name one of its fields in a SELECT: '
                || '(SELECT *, s.field AS field FROM t) [bad-column]')
            else _anon_value end as _anon_value,
        case when person is not null and _anon_person is null
            then error(fn || ': the person column is NULL in some records, so their individual is unknown. '
                || 'Leave these records out [bad-column]')
            else _anon_person end as _anon_person,
        case
            when sample_weights is null then 1.0::double
            when isfinite(_anon_weight::double) and _anon_weight::double > 0 then _anon_weight::double
            else error(fn || ': sample_weights must be numbers above 0 in every record [bad-column]')
        end as _anon_weight
    )
    from (
        select columns(lambda c: _anon_among(c, qi) or c = '_anon_none'),
            coalesce(*columns(lambda c: _anon_among(c, [sensitive]) or c = '_anon_none')) as _anon_value,
            coalesce(*columns(lambda c: _anon_among(c, [person]) or c = '_anon_none')) as _anon_person,
            coalesce(*columns(lambda c: _anon_among(c, [sample_weights]) or c = '_anon_none')) as _anon_weight
        from (select *, null as _anon_none from _anon_table(tbl))
    )
    where (select checked from _anon_names);

-- The equivalence classes: quasi-identifiers, _anon_size (records, or individuals), _anon_population (the number of
-- individuals of the population that they represent) and _anon_share (largest share of one individual in the records).
create or replace temp macro _anon_exact_classes(fn, tbl, qi, person, sample_weights) as table
    with by_person as (
        select * exclude (_anon_value, _anon_weight), count(*) as _anon_n, sum(_anon_weight) as _anon_w
        from _anon_records(fn, tbl, qi, null, person, sample_weights)
        group by all
    )
    select * exclude (_anon_person, _anon_n, _anon_w),
        if(person is null, sum(_anon_n)::bigint, count(*)) as _anon_size,
        if(person is null, sum(_anon_w), count(*)) as _anon_population,
        max(_anon_n) / sum(_anon_n) as _anon_share
    from by_person
    group by all;

-- The same with _anon_matching, the number of records that match a record of the class, and the population of these.
-- With missing := 'wildcard' two classes match where each column is equal or NULL in one of them. Classes are compared by
-- the columns that are NULL in neither, one join for each two sets of missing columns.
create or replace temp macro _anon_classes(fn, tbl, qi, person, sample_weights, missing) as table
    with exact as (from _anon_exact_classes(fn, tbl, qi, person, sample_weights)),
    numbered as (
        select *, row_number() over () as _anon_class from exact
        where case
            when missing not in ('value', 'wildcard')
                then error(fn || ': missing must be ''value'' or ''wildcard'', got ''' || missing || ''' [bad-argument]')
            when missing = 'wildcard' and person is not null
                then error(fn || ': missing := ''wildcard'' counts records; leave person out [bad-argument]')
            else missing = 'wildcard'
        end
    ),
    as_text as (select columns(* exclude (_anon_size, _anon_population, _anon_share, _anon_class))::varchar, _anon_class from numbered),
    listed as (select _anon_class, list_value(*columns(* exclude (_anon_class))) as qi_values from as_text),
    masked as (select *, list_transform(qi_values, lambda v: v is null) as mask from listed),
    compared as (
        select _anon_class, masked.mask, other.mask as other_mask,
            list_transform(qi_values, lambda v, i: if(other.mask[i], null, v)) as visible
        from masked, (select distinct mask from masked) as other
    ),
    wildcard as (
        select mine._anon_class, sum(_anon_size)::bigint as _anon_matching, sum(_anon_population) as _anon_matched
        from compared as mine
        join compared as theirs
            on mine.mask = theirs.other_mask and mine.other_mask = theirs.mask and mine.visible = theirs.visible
        join numbered on numbered._anon_class = theirs._anon_class
        group by mine._anon_class
    )
    select *, _anon_size as _anon_matching from exact where missing = 'value'
    union all by name
    select * exclude (_anon_class, _anon_matched) replace (_anon_matched as _anon_population)
    from numbered join wildcard using (_anon_class);

-- equivalence_classes(tbl, qi): one row per class: its quasi-identifiers, class_size and, with sample_weights,
-- population_size.
create or replace temp macro equivalence_classes(
    tbl, qi := NULL, person := NULL, sample_weights := NULL, missing := 'value'
) as table
    select columns(lambda c: c <> 'population_size' or sample_weights is not null) from (
        select * exclude (_anon_none, _anon_size, _anon_population, _anon_share, _anon_matching),
            _anon_matching as class_size, _anon_population as population_size
        from _anon_classes('equivalence_classes', tbl, qi, person, sample_weights, missing)
    );

-- uniques(tbl, qi): the classes of one record (individual): their quasi-identifiers.
create or replace temp macro uniques(tbl, qi := NULL, person := NULL, missing := 'value') as table
    select * exclude (_anon_none, _anon_size, _anon_population, _anon_share, _anon_matching)
    from _anon_classes('uniques', tbl, qi, person, null, missing)
    where _anon_matching = 1;

-- k_anonymity(tbl, qi): k, the number of records (individuals) in the smallest class (Samarati and Sweeney 1998); with
-- sample_weights the estimated number of individuals of the population in it. With person also person_share, the largest
-- share of one individual in the records of a class: k individuals do not hide one who has nearly all of the records.
create or replace temp macro k_anonymity(
    tbl, qi := NULL, person := NULL, sample_weights := NULL, missing := 'value'
) as table
    select columns(lambda c: c = 'k' or person is not null) from (
        select coalesce(if(sample_weights is null, min(_anon_matching), min(_anon_population)), 'infinity'::double) as k,
            coalesce(max(_anon_share), 0) as person_share
        from _anon_classes('k_anonymity', tbl, qi, person, sample_weights, missing)
    );

-- class_statistics(tbl, qi): number and sizes of the classes, and the discernibility of the table, the sum of the squared
-- class sizes (Bayardo and Agrawal 2005), between records and records squared.
create or replace temp macro class_statistics(tbl, qi := NULL, person := NULL) as table
    select coalesce(sum(_anon_size), 0)::bigint as rows, count(*) as classes, coalesce(min(_anon_size), 0) as smallest,
        coalesce(avg(_anon_size), 0) as average, coalesce(max(_anon_size), 0) as largest,
        coalesce(sum(_anon_size::hugeint * _anon_size), 0)::double as discernibility
    from _anon_exact_classes('class_statistics', tbl, qi, person, null);

-- The risk of a sampled record that n records of the sample match, which represent f individuals of the population: the
-- mean of 1 / F over the sizes F that the class may have in the population, a negative binomial with p = n / f (Benedetti
-- and Franconi 1998). It is p times the integral over [0, 1] of u^(n-1) / (p + q u), with q = 1 - p: by its series in q
-- where that converges fast, else by the recurrence I(m) = (1/m - p I(m-1)) / q from I(0) = -ln(p) / q, which is stable
-- for p <= 1/2.
create or replace temp macro _anon_sample_risk(n, f) as
    case
        when f <= n then 1 / n
        when n > 40 or 2 * n > f then n / f * list_sum(list_transform(range(0, 60), lambda j:
            exp(j * ln(1 - n / f) + lgamma(n) + lgamma(j + 1) - lgamma(n + j + 1))))
        else n / f * list_reduce(
            list_concat([-ln(n / f) / (1 - n / f)], list_transform(range(1, n::bigint), lambda m: 1 / m)),
            lambda integral, reciprocal: (reciprocal - n / f * integral) / (1 - n / f))
    end;

-- The records with the size of their class, what it represents, their risk, and that of their household: 1 - prod(1 - risk)
-- over its members, NULL without household. Everybody of a NULL household is one by themselves. `classes` names the rows of
-- _anon_risks.
create or replace temp macro _anon_risk_of_records(fn, tbl, qi, household, classes) as table
    select _anon_record.* exclude (_anon_key, _anon_none, _anon_home), _anon_matching, _anon_population, _anon_risk,
        if(household is null, null, if(_anon_home is null, _anon_risk,
            1 - product(1 - _anon_risk) over (partition by _anon_home))) as _anon_household
    from (
        select *, row(*columns(lambda c: _anon_among(c, qi) or c = '_anon_none')) as _anon_key,
            coalesce(*columns(lambda c: _anon_among(c, [household]) or c = '_anon_none')) as _anon_home
        from (select *, null as _anon_none from _anon_table(tbl))
        where (select checked from _anon_checked(fn, tbl, qi, [household]))
    ) as _anon_record
    join (
        select row(*columns(* exclude (_anon_size, _anon_population, _anon_share, _anon_matching, _anon_risk))) as _anon_key,
            _anon_matching, _anon_population, _anon_risk
        from query_table(classes)
    ) using (_anon_key);

-- The classes and the risk of a record of each.
create or replace temp macro _anon_risks(fn, tbl, qi, person, sample_weights, missing) as table
    select *, if(sample_weights is null, 1 / _anon_matching, _anon_sample_risk(_anon_matching, _anon_population)) as _anon_risk
    from _anon_classes(fn, tbl, qi, person, sample_weights, missing);

-- reidentification_risk(tbl, qi, threshold := 0.2): the probability of re-identifying a record by its quasi-identifiers
-- (El Emam and Dankar 2008).
--   prosecutor       the adversary knows that the individual is in the table: 1 / size of the smallest class
--   journalist       the adversary does not know it: the largest risk in the population that sample_weights describe
--                    (Benedetti and Franconi 1998). Without sample_weights the table is the population
--   marketer         the expected share of the records that an adversary links correctly: the mean risk of a record
--   expected         the expected number of re-identifications: the sum of the risks
--   above_threshold  share of the records whose risk is above the threshold
--   sample_uniques   records alone in their class
--   household_expected  with household: the expected number of records whose household is re-identified through any of its
--                    members, the sum over records of 1 - prod(1 - risk of each member) (Templ, Kowarik and Meindl 2015)
--   household_risk   their share of the records
-- With person, `rows` are individuals, each counted once in every class.
create or replace temp macro reidentification_risk(
    tbl, qi := NULL, threshold := 0.2, person := NULL, sample_weights := NULL, missing := 'value', household := NULL
) as table
    with _anon_risk_classes as materialized (from _anon_risks('reidentification_risk', tbl, qi, person, sample_weights, missing))
    select columns(lambda c: c not in ('household_expected', 'household_risk') or household is not null)
    from (
        select coalesce(sum(_anon_size), 0)::bigint as rows,
            coalesce(max(1 / _anon_matching), 0)::double as prosecutor,
            coalesce(max(_anon_risk), 0)::double as journalist,
            coalesce(sum(_anon_size * _anon_risk) / sum(_anon_size), 0)::double as marketer,
            coalesce(sum(_anon_size) filter (_anon_risk > case
                when threshold is null or threshold < 0 or threshold > 1 then error(
                    'reidentification_risk: threshold must lie in [0, 1], got ' || coalesce(threshold::varchar, 'NULL') || ' [bad-argument]')
                else threshold::double end) / sum(_anon_size), 0)::double as above_threshold,
            count(*) filter (_anon_matching = 1) as sample_uniques,
            coalesce(sum(_anon_size * _anon_risk), 0)::double as expected
        from _anon_risk_classes
    ), (
        select coalesce(sum(_anon_household), 0)::double as household_expected,
            coalesce(avg(_anon_household), 0)::double as household_risk
        from _anon_risk_of_records('reidentification_risk', tbl, qi, household, '_anon_risk_classes')
        where household is not null
    );

-- record_risk(tbl, qi): the records, each with the size of its class and the risk of re-identifying it.
--   class_size       records (individuals) that match it
--   population_size  with sample_weights: the number of individuals of the population that these represent
--   prosecutor       1 / class_size: the adversary knows that the individual is in the table
--   journalist       the risk in the population that sample_weights describe (Benedetti and Franconi 1998); its sum is the
--                    expected number of re-identifications. Without sample_weights the table is the population
--   household_risk   with household: the probability that any member of its household is re-identified
create or replace temp macro record_risk(
    tbl, qi := NULL, person := NULL, sample_weights := NULL, missing := 'value', household := NULL
) as table
    with _anon_risk_classes as materialized (from _anon_risks('record_risk', tbl, qi, person, sample_weights, missing))
    select columns(lambda c: (c <> 'population_size' or sample_weights is not null) and (c <> 'household_risk' or household is not null))
    from (
        select * exclude (_anon_matching, _anon_population, _anon_risk, _anon_household), _anon_matching as class_size,
            _anon_population as population_size, 1 / _anon_matching as prosecutor, _anon_risk as journalist,
            _anon_household as household_risk
        from _anon_risk_of_records('record_risk', tbl, qi, household, '_anon_risk_classes')
    );

-- k_map(tbl, population, qi): the smallest number of individuals of a population, one record each, who share their
-- quasi-identifiers with a record of tbl (Sweeney 2001), and the journalist risk 1 / k, highest and average (El Emam and
-- Dankar 2008). `unmatched` records have nobody in the population.
create or replace temp macro k_map(tbl, population, qi := NULL) as table
    with classes as (
        select * exclude (_anon_released), count(*) filter (_anon_released) as _anon_rows,
            count(*) filter (not _anon_released) as _anon_individuals
        from (
            select *, true as _anon_released from _anon_records('k_map', tbl, qi, null, null, null)
            union all by name
            select *, false as _anon_released from _anon_records('k_map', population, qi, null, null, null)
        )
        group by all
    )
    select coalesce(min(_anon_individuals) filter (_anon_rows > 0), 'infinity'::double) as k,
        coalesce(sum(_anon_rows), 0)::bigint as rows,
        coalesce(sum(_anon_individuals), 0)::bigint as population,
        coalesce(max(1 / _anon_individuals) filter (_anon_rows > 0 and _anon_individuals > 0), 0) as highest,
        coalesce(sum(_anon_rows / _anon_individuals) filter (_anon_individuals > 0) / sum(_anon_rows), 0) as average,
        coalesce(sum(_anon_rows) filter (_anon_individuals = 0), 0)::bigint as unmatched
    from classes;

-- The records of each class, sensitive value and individual: class (a number), value, person_of_entry, n.
create or replace temp macro _anon_entries(fn, tbl, qi, sensitive, person) as table
    with counted as (
        select * exclude (_anon_weight), count(*) as _anon_n
        from _anon_records(fn, tbl, qi, sensitive, person, null)
        where typeof(_anon_value) not like 'MAP(%' and (sensitive is not null
            or error(fn || ': no sensitive column is named. Pass it as sensitive := ''disease'' [bad-argument]'))
        group by all
    ),
    classes as (
        select * exclude (_anon_value, _anon_person, _anon_n),
            list({value: _anon_value, person_of_entry: _anon_person, n: _anon_n}) as _anon_entries
        from counted
        group by all
    )
    select class, entry.value, entry.person_of_entry, entry.n
    from (
        select class, unnest(entries) as entry
        from (select row_number() over () as class, _anon_entries as entries from classes)
    );

-- The sensitive values of each class, one row a class and value: class, value_rows (records or individuals), class_rows
-- (their sum), persons (of the class), share (of the value in the table), place (rank of the value in the order of its
-- type, NULL last) and label (its text). typeof() is a constant of the query, so only one of both readings runs.
create or replace temp macro _anon_cells(fn, tbl, qi, sensitive, person) as table
    with _anon_entry as (from _anon_entries(fn, tbl, qi, sensitive, person)),
    _anon_plain_cell as (
        select class, value, if(person is null, sum(n), count(*)) as value_rows from _anon_entry group by class, value
    ),
    _anon_individual as (
        select class, count(distinct person_of_entry) as persons from _anon_entry where person is not null group by class
    ),
    _anon_plain_class as (
        select class, sum(value_rows) as class_rows, if(person is null, sum(value_rows), any_value(persons)) as persons
        from _anon_plain_cell left join _anon_individual using (class) group by class
    ),
    _anon_plain_value as (
        select value, sum(value_rows) as amount, row_number() over (order by value nulls last) as place
        from _anon_plain_cell group by value
    ),
    bucket as (
        select row_number() over () as class, count(*) as weight, coalesce(
            try_cast(_anon_value::varchar as map(varchar, bigint)),
            error(fn || ': the sensitive column is neither a value nor a MAP from value to count [bad-column]')
        ) as counts
        from _anon_records(fn, tbl, qi, sensitive, null, null)
        where typeof(_anon_value) like 'MAP(%' and (person is null or error(
            fn || ': counts of rows in buckets do not tell individuals apart; leave person out to count rows [bad-argument]'))
        group by _anon_value
    ),
    bucket_cell as (
        select class, weight, unnest(map_keys(counts)) as value, unnest(map_values(counts)) as value_rows,
            list_sum(map_values(counts)) as class_rows
        from bucket
    ),
    bucket_value as (
        select value, sum(weight * value_rows / class_rows) as amount,
            row_number() over (order by try_cast(value as double), value) as place
        from bucket_cell group by value
    )
    select class, value_rows, class_rows, persons,
        amount / (select sum(amount) from _anon_plain_value) as share, place, _anon_plain_value.value::varchar as label
    from _anon_plain_cell join _anon_plain_class using (class)
    join _anon_plain_value on _anon_plain_cell.value is not distinct from _anon_plain_value.value
    union all
    select class, value_rows, class_rows, class_rows, amount / (select sum(amount) from bucket_value), place, value
    from bucket_cell join bucket_value using (value);

-- l_diversity(tbl, qi, sensitive): the level of the least diverse class, one row a measure.
--   distinct   number of distinct values (Machanavajjhala et al. 2006)
--   frequency  records over records of the most frequent value: no value has a share above 1/l. With person: no value
--              belongs to more than one in l individuals
--   entropy    exp of the entropy of the values: n equally frequent values count n
--   recursive  smallest c that the table does not reach: it is recursive (c, l)-diverse for every larger c.
--              l is the parameter (default 2); infinite where a class has fewer than l values
-- With person no level is above the number of individuals, and there is one row more:
--   rows       records over the records of the value, or of the individual, that has most of them
create or replace temp macro l_diversity(tbl, qi := NULL, sensitive := NULL, l := 2, person := NULL) as table
    with _anon_by_person as (
        select sum(n) over (partition by class) as class_n, sum(n) over (partition by class, value) as value_n,
            sum(n) over (partition by class, person_of_entry) as person_n
        from _anon_entries('l_diversity', tbl, qi, sensitive, person)
        where person is not null
    ),
    class as (
        select list(value_rows) as counts, any_value(class_rows) as n, any_value(persons) as persons
        from _anon_cells('l_diversity', tbl, qi, sensitive, person)
        group by class
    ),
    level as (
        select min(least(len(counts), persons)) as distinct_l,
            min(persons / list_max(counts)) as frequency_l,
            exp(min(least(
                list_sum(list_transform(counts, lambda c: c * ln(n / c))) / n, if(person is null, null, ln(persons))
            ))) as entropy_l,
            max(case
                when l is null or l < 1 or l <> floor(l) then error(
                    'l_diversity: l must be a whole number from 1, got ' || coalesce(l::varchar, 'NULL') || ' [bad-argument]')
                when least(len(counts), persons) < l then 'infinity'::double
                else list_max(counts) / (n - coalesce(list_sum(list_reverse_sort(counts)[:l::bigint - 1]), 0))
            end) as recursive_c
        from class
    )
    select unnest(['distinct', 'frequency', 'entropy', 'recursive'] || if(person is null, [], ['rows'])) as measure,
        unnest([
            coalesce(distinct_l, 'infinity'::double), coalesce(frequency_l, 'infinity'::double),
            coalesce(entropy_l, 'infinity'::double), coalesce(recursive_c, 0),
            (select coalesce(min(class_n / greatest(value_n, person_n)), 'infinity'::double) from _anon_by_person)
        ][:if(person is null, 4, 5)]) as value
    from level;

-- The earth mover's distance between each class and the table, with equal and with ordered ground distance: the largest
-- of each. Equal: the sum of the positive differences of shares, which only values of the class can have. Ordered: P and
-- Q being the cumulative shares of class and table, the mean of |P - Q| over all places but the last. P is constant
-- between two values of the class and Q rises, so each stretch splits at one crossing place r (the last with Q <= P) and
-- sums in closed form from A, the running sum of Q; `past` is A just before a place. The cost does not grow with classes
-- times values.
create or replace temp macro _anon_emd(fn, tbl, qi, sensitive, person) as table
    with cell as (from _anon_cells(fn, tbl, qi, sensitive, person)),
    table_value as (select place, any_value(share) as share from cell group by place),
    cumulated as (select place, share, sum(share) over (order by place) as q from table_value),
    ladder as (
        select place, q, sum(q) over (order by place) as a, a - q as past, count(*) over () as places from cumulated
    ),
    last as (select coalesce(max(places), 1) as places, coalesce(max(past), 0) as past from ladder),
    step as (
        select class, greatest(value_rows / class_rows - share, 0) as gain, place as x, past,
            sum(value_rows) over by_place / class_rows as p,
            lead(place, 1, (select places from last)) over by_place as next_x,
            lead(past, 1, (select past from last)) over by_place as next_past
        from cell join ladder using (place)
        window by_place as (partition by class order by place)
    ),
    point as (
        select distinct p as height, 0 as reached, 0 as total from step
        union all
        select q, place, a from ladder
    ),
    crossing as (
        select distinct height, max(reached) over by_height as reached, max(total) over by_height as total
        from point
        window by_height as (order by height)
    ),
    stretch as (
        select class, gain, past, p, x + next_x - 2 as span, greatest(x - 1, least(next_x - 1, reached)) as r,
            greatest(past, least(next_past, total)) as a
        from step join crossing on p = crossing.height
    ),
    distance as (
        select sum(gain) as equal, sum(2 * (past - a) + p * (2 * r - span)) as excess from stretch group by class
    )
    select max(equal) as equal,
        (max(excess) + (select past from last)) / greatest((select places from last) - 1, 1) as ordered
    from distance;

-- The same with the ground distance of a hierarchy, a table of one row a leaf: the leaf, then its ancestors up to the
-- root. What a class has too much of below a node is moved over half the level of the node.
create or replace temp macro _anon_emd_tree(fn, tbl, qi, sensitive, person, hierarchy) as table
    with cell as (from _anon_cells(fn, tbl, qi, sensitive, person)),
    leaf as (
        select list_value(*columns(*)) as path
        from (select columns(*)::varchar from _anon_table(coalesce(hierarchy, '(select null as leaf)')))
    ),
    table_value as (select place, any_value(share) as share, any_value(label) as label from cell group by place),
    checked as (
        select place, share, case
            when path is null and label is not null
                then error(fn || ': the sensitive column has a value that is not a leaf of the hierarchy [bad-column]')
            when list_contains(list_transform(path, lambda node: node is null), true)
                then error(fn || ': the hierarchy has a NULL; every leaf needs all its ancestors [bad-column]')
            when count(*) over (partition by place) > 1
                then error(fn || ': the hierarchy lists a leaf twice, with different ancestors [bad-column]')
            else path
        end as path
        from table_value left join leaf on label = path[1]
    ),
    height as (select coalesce(max(len(path)), 1) - 1 as h from leaf),
    node as (
        select list(place) as places, sum(share) as share, row_number() over () as node
        from checked, (select unnest(range(1, h + 1)) as level from height)
        group by level, path[level:]
    ),
    member as (select node, share, unnest(places) as place from node),
    excess as (
        select class, node, sum(value_rows) / any_value(class_rows) - any_value(member.share) as extra
        from cell join member using (place)
        group by class, node
    ),
    distance as (
        select sum(greatest(extra, 0)) / greatest((select h from height), 1) as tree from excess group by class
    )
    select max(tree) as tree from distance;

-- t_closeness(tbl, qi, sensitive): t, the largest earth mover's distance between a class and the table (Li, Li and
-- Venkatasubramanian 2007), and its ground distance:
--   equal      1 between any two values
--   ordered    difference of ranks over (number of values - 1)
--   hierarchy  height of the lowest common ancestor over the height of the root
-- The default is hierarchy where a hierarchy table is named, ordered for numbers, dates and times, and equal otherwise.
create or replace temp macro t_closeness(
    tbl, qi := NULL, sensitive := NULL, distance := NULL, hierarchy := NULL, person := NULL
) as table
    with _anon_sample as (from _anon_records('t_closeness', tbl, qi, sensitive, person, null) limit 1),
    _anon_chosen as (
        select case
            when distance not in ('equal', 'ordered', 'hierarchy')
                then error('t_closeness: distance must be ''equal'', ''ordered'' or ''hierarchy'', got ''' || distance || ''' [bad-argument]')
            when distance = 'hierarchy' and hierarchy is null
                then error('t_closeness: distance ''hierarchy'' needs a hierarchy table, hierarchy := ''name'' [bad-argument]')
            when distance <> 'hierarchy' and hierarchy is not null
                then error('t_closeness: with a hierarchy table distance must be left out or be ''hierarchy'' [bad-argument]')
            when hierarchy is not null then 'hierarchy'
            when distance is not null then distance
            when regexp_matches(typeof(any_value(_anon_value)),
                '^(MAP\()?(U?(TINY|SMALL|BIG|HUGE)?INT|U?INTEGER|BIGNUM|FLOAT|DOUBLE|DECIMAL|DATE|TIME)') then 'ordered'
            else 'equal'
        end as distance
        from _anon_sample
    )
    select coalesce(if(_anon_chosen.distance = 'ordered', ordered, equal), 0)::double as t, _anon_chosen.distance
    from _anon_chosen, _anon_emd('t_closeness', tbl, qi, sensitive, person)
    where hierarchy is null
    union all
    select coalesce(tree, 0)::double, _anon_chosen.distance
    from _anon_chosen, _anon_emd_tree('t_closeness', tbl, qi, sensitive, person, hierarchy)
    where hierarchy is not null;
