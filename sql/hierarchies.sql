-- Labels of anon_hierarchy: parts of dates, prefixes of codes, and intervals of numbers.

create or replace temp macro _anon_years(moment, width) as
    floor(year(moment) / width)::int * width || '..' || floor(year(moment) / width)::int * width + width - 1;

-- Infinity has no month, and is its own label.
create or replace temp macro _anon_date_label(moment, unit) as coalesce(case unit
    when 'day' then strftime(moment, '%Y-%m-%d')
    when 'month' then strftime(moment, '%Y-%m')
    when 'quarter' then year(moment) || '-Q' || quarter(moment)
    when 'year' then year(moment)::varchar
    when '5 years' then _anon_years(moment, 5)
    when 'decade' then _anon_years(moment, 10)
end, moment::varchar);

-- The step is the smallest of 1, 2, 5, 10 times a power of ten that is at least the raw width.
create or replace temp macro _anon_power(raw) as try_cast(if(raw > 0, floor(log10(raw)), 0) as int);
create or replace temp macro _anon_digit(raw) as case when not raw > 0 then 1 else list_extract(
    list_append(list_filter([1, 2, 5, 10], lambda digit: raw <= digit * power(10, _anon_power(raw))), 10), 1) end;

-- A multiple of the step, as decimal text, for 3 * 0.1 is 0.30000000000000004.
create or replace temp macro _anon_multiple(k, raw) as ((k * _anon_digit(raw)) || 'e' || _anon_power(raw))::double;

-- Multiples of the step between two numbers; numbers that span more than a DOUBLE holds get none.
create or replace temp macro _anon_round_edges(low, high, bins) as list_transform(
    range(
        try_cast(floor(low / _anon_multiple(1, (high - low) / bins)) as bigint) + 1,
        try_cast(ceil(high / _anon_multiple(1, (high - low) / bins)) as bigint)),
    lambda k: _anon_multiple(k, (high - low) / bins));

create or replace temp macro _anon_edge(value) as
    if(value = trunc(value) and abs(value) < 1e15, value::bigint::varchar, value::varchar);

-- The interval that holds interval number i when `width` neighbours are joined; the outer ends are open.
create or replace temp macro _anon_joined(edges, i, width) as case
    when i // width = 0 and width > len(edges) then '*'
    when i // width = 0 then '< ' || _anon_edge(edges[width])
    when i // width * width + width > len(edges) then '>= ' || _anon_edge(edges[i // width * width])
    else '[' || _anon_edge(edges[i // width * width]) || ', ' || _anon_edge(edges[i // width * width + width]) || ')'
end;

-- The first characters of a code, the rest masked; a short code is filled up, so that no label stands for two nodes.
create or replace temp macro _anon_prefix(code, kept, longest) as if(
    longest <= kept, code, rpad(left(code, kept), kept, ' ') || repeat('*', longest - kept));
