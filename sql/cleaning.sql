-- Codes for missing values: 9, 99, 9999999, -1 among numbers; '?', 'unknown', 'n/a' among texts.

create or replace temp macro _anon_may_be_code(x, v) as coalesce(
    x = -1 or (abs(x) between 9 and 1e15 and abs(x) + 1 = 10 ** round(log10(abs(x) + 1))),
    lower(trim(v)) in (
        '?', '-', '--', '.', 'n/a', 'na', 'n.a.', 'null', 'nan', 'missing', 'unknown', 'not known', 'not available',
        'not stated', 'unspecified', 'unbekannt', 'keine angabe', 'k.a.', 'inconnu', 'non renseigné', 'desconocido',
        'sconosciuto', 'onbekend', 'άγνωστο', '未知', '不详'),
    false);

-- How far a number lies outside of the other values.
create or replace temp macro _anon_distance(number, low, high) as if(number > 0, number - high, low - number);

-- Those of `found` that are codes: numbers outside the other values that at least two records have, which are far from them
-- (half their range or more) or, in steps of the other values, distant from them and three times as frequent as they are
-- on average.
create or replace temp macro _anon_codes_among(found, low, high, often, others) as
    list_filter(list_sort(coalesce(found, [])), lambda code: code.x is null or (
        code.n >= 2 and _anon_distance(code.x, low, high) > 0 and (
            _anon_distance(code.x, low, high) >= (high - low) / 2
            or (code.n >= 3 * often and _anon_distance(code.x, low, high) >= 2 * (high - low) / greatest(others - 1, 1))
            or (code.x < 0 and low >= 0))));

-- The codes of a column, of its numbers x or texts v with n records each, which may be codes or not: an aggregate, a list
-- of STRUCTs of x, v, n.
create or replace temp macro _anon_codes(x, v, n, may_be) as _anon_codes_among(
    list({x: x, v: v, n: n}) filter (may_be),
    min(x) filter (not may_be),
    max(x) filter (not may_be),
    avg(n) filter (x is not null and not may_be),
    count(x) filter (not may_be));

-- What anon_dirt looks for in a column: how many records have a problem, and the SQL that cleans the column, in which
-- {x} stands for the column. All are aggregates.

create or replace temp macro _anon_blanks(x) as {records: count(*) filter (x <> trim(x)), clean: 'trim({x})'};

-- `codes`: codes for missing values, each with its number x or its text v, and its records n.
create or replace temp macro _anon_missing(codes) as {
    records: list_sum(list_transform(codes, lambda code: code.n)),
    clean: 'CASE WHEN {x} NOT IN (' || array_to_string(list_transform(codes, lambda code:
        coalesce(code.x::bigint::varchar, '''' || replace(code.v, '''', '''''') || '''')), ', ') || ') THEN {x} END'
};

-- Records whose date has not the most frequent format, where most values are dates of some format. The day comes
-- first in 3/4/2020 if a first number is above 12.
create or replace temp macro _anon_dates_of(counts, many, days_first) as {
    records: case when list_sum(counts) >= 0.5 * many then list_sum(counts) - list_max(counts) end,
    clean: 'try_strptime({x}, [''%Y-%m-%d'', ''' || if(days_first, '%d/%m/%Y', '%m/%d/%Y')
        || ''', ''%d.%m.%Y'', ''%Y%m%d''])::date'
};
create or replace temp macro _anon_dates(x) as _anon_dates_of(
    [
        count(*) filter (regexp_full_match(trim(x), '\d{4}-\d{1,2}-\d{1,2}')),
        count(*) filter (regexp_full_match(trim(x), '\d{1,2}/\d{1,2}/\d{4}')),
        count(*) filter (regexp_full_match(trim(x), '\d{1,2}\.\d{1,2}\.\d{4}')),
        count(*) filter (regexp_full_match(trim(x), '(19|20)\d{6}'))
    ],
    count(x),
    max(try_cast(split_part(trim(x), '/', 1) as integer))
        filter (regexp_full_match(trim(x), '\d{1,2}/\d{1,2}/\d{4}')) > 12
);

-- Records with a value that the SQL for several formats makes NULL, such as a year alone.
create or replace temp macro _anon_unread_dates(x) as {
    records: case when _anon_dates(x).records > 0 then if(
        _anon_dates(x).clean like '%d/%m%',
        count(x) filter (try_strptime(trim(x), ['%Y-%m-%d', '%d/%m/%Y', '%d.%m.%Y', '%Y%m%d']) is null),
        count(x) filter (try_strptime(trim(x), ['%Y-%m-%d', '%m/%d/%Y', '%d.%m.%Y', '%Y%m%d']) is null)) end,
    clean: '{x}'
};

-- Numbers that are text because of codes for missing values: the cast that is possible without the codes.
create or replace temp macro _anon_numbers(v, n, may_be) as {
    records: case when count(*) filter (may_be) > 0
        and bool_and(try_cast(trim(v) as double) is not null and not regexp_full_match(trim(v), '0[0-9].*'))
            filter (not may_be)
        then sum(n) filter (not may_be) end,
    clean: if(bool_and(regexp_full_match(trim(v), '[-+]?[0-9]{1,18}')) filter (not may_be),
        '({x})::BIGINT', '({x})::DOUBLE')
};

-- Postcodes that are shorter than the longest; `lengths` maps each length to its records.
create or replace temp macro _anon_postcodes_of(lengths, digits) as {
    records: case when digits > 0.9 and list_max(map_keys(lengths)) between 4 and 6
        then list_sum(map_values(lengths)) - lengths[list_max(map_keys(lengths))] end,
    clean: 'lpad({x}::varchar, ' || list_max(map_keys(lengths)) || ', ''0'')'
};
create or replace temp macro _anon_postcodes(x) as _anon_postcodes_of(
    histogram(length(trim(x))), avg(regexp_full_match(trim(x), '[0-9]+')::integer)
);

-- Records whose spelling is not the most frequent one of its letters, in columns whose values repeat; of each word in
-- lower case its records, those of its most frequent spelling, and its spellings.
create or replace temp macro _anon_spellings(total, most, spellings) as {
    records: case when sum(total) > 2 * count(*) then sum(total - most) filter (spellings > 1) end,
    clean: 'lower({x})'
};

-- Dates that stand for a missing one, where several records have them.
create or replace temp macro _anon_placeholders(x) as {
    records: list_sum(list_filter(map_values(histogram(x) filter (x::date::varchar in (
        '0001-01-01', '1899-12-30', '1900-01-01', '1970-01-01', '2999-12-31', '9999-12-31'))), lambda n: n > 1)),
    clean: 'CASE WHEN {x}::date::varchar NOT IN (''0001-01-01'', ''1899-12-30'', ''1900-01-01'', ''1970-01-01'', '
        || '''2999-12-31'', ''9999-12-31'') THEN {x} END'
};
