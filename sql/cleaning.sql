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
    clean: 'CASE WHEN ' || if(codes[1].x is null, 'trim({x})', '{x}') || ' NOT IN (' || array_to_string(
        list_sort(list_distinct(list_transform(codes, lambda code: coalesce(
            code.x::bigint::varchar, '''' || replace(trim(code.v), '''', '''''') || '''')))), ', ') || ') THEN {x} END'
};

-- Texts that are mostly dates. `counts`: records of each format; `unread`: records that none of the formats reads, which
-- the cast makes NULL. Where there are none the cast is strict: a later table that it cannot read is an error, no loss.
create or replace temp macro _anon_dates_of(counts, total, unread, first) as {
    records: case when list_sum(counts) >= 0.5 * total and total > unread then total - unread end,
    lost: unread,
    clean: if(unread > 0, 'try_strptime', 'strptime') || '(trim({x}), [''%Y-%m-%d'', ''' || first
        || ''', ''%d.%m.%Y'', ''%Y%m%d'', ''%d %B %Y'', ''%d %b %Y'', ''%B %d, %Y''])::date'
};
create or replace temp macro _anon_is_date(v, days_first) as if(days_first,
    try_strptime(trim(v), ['%Y-%m-%d', '%d/%m/%Y', '%d.%m.%Y', '%Y%m%d', '%d %B %Y', '%d %b %Y', '%B %d, %Y']),
    try_strptime(trim(v), ['%Y-%m-%d', '%m/%d/%Y', '%d.%m.%Y', '%Y%m%d', '%d %B %Y', '%d %b %Y', '%B %d, %Y'])) is not null;
create or replace temp macro _anon_matching(v, n, may_be, pattern) as
    coalesce(sum(n) filter (not may_be and regexp_full_match(trim(v), pattern)), 0);

create or replace temp macro _anon_date_counts(v, n, may_be) as [
    _anon_matching(v, n, may_be, '\d{4}-\d{1,2}-\d{1,2}'),
    _anon_matching(v, n, may_be, '\d{1,2}/\d{1,2}/\d{4}'),
    _anon_matching(v, n, may_be, '\d{1,2}\.\d{1,2}\.\d{4}'),
    _anon_matching(v, n, may_be, '(19|20)\d\d(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])'),
    _anon_matching(v, n, may_be, '\d{1,2} [[:alpha:]]+ \d{4}'),
    _anon_matching(v, n, may_be, '[[:alpha:]]+ \d{1,2}, \d{4}')
];

-- The day comes first in 3/4/2020 if a first number is above 12.
create or replace temp macro _anon_dates(v, n, may_be) as if(
    max(try_cast(split_part(trim(v), '/', 1) as integer)) filter (regexp_full_match(trim(v), '\d{1,2}/\d{1,2}/\d{4}')) > 12,
    _anon_dates_of(
        _anon_date_counts(v, n, may_be), sum(n) filter (not may_be),
        coalesce(sum(n) filter (not may_be and not _anon_is_date(v, true)), 0), '%d/%m/%Y'),
    _anon_dates_of(
        _anon_date_counts(v, n, may_be), sum(n) filter (not may_be),
        coalesce(sum(n) filter (not may_be and not _anon_is_date(v, false)), 0), '%m/%d/%Y'));
-- Texts that are mostly numbers, nineteen of twenty at least. A leading zero or plus makes a code or a phone number.
create or replace temp macro _anon_numbers_of(whole, broken, total, coded) as {
    records: case when not coded and whole + broken >= 0.95 * total then whole + broken end,
    lost: total - whole - broken,
    clean: if(whole + broken < total, 'TRY_CAST({x} AS ', 'CAST({x} AS ') || if(broken > 0, 'DOUBLE)', 'BIGINT)')
};
create or replace temp macro _anon_numbers(v, n, may_be) as _anon_numbers_of(
    _anon_matching(v, n, may_be, '-?[0-9]{1,18}'),
    _anon_matching(v, n, may_be, '-?[0-9]*\.[0-9]+([eE][-+]?[0-9]+)?|-?[0-9]{1,18}[eE][-+]?[0-9]+'),
    sum(n) filter (not may_be),
    bool_or(not may_be and regexp_full_match(trim(v), '(0[0-9]|\+).*')));

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
