-- Cells that ARX, sdcMicro and other tools write as text. `t` is the text of a cell without the blanks around it.

-- Whether the cell is suppressed, so that any value may stand there.
create or replace temp macro _anon_suppressed(t) as
    t is null or regexp_full_match(t, '\**|NA|N/A|NULL|null|\?');

-- The text as a value of the type that `sample` has; NULL where it is none.
create or replace temp macro _anon_like(t, sample) as try(cast_to_type(t, sample));

create or replace temp macro _anon_members(t) as
    list_transform(string_split(trim(t, '{}'), ','), lambda member: trim(member));

-- What intervals look like: [20, 30[ and its likes, 20-30, at most, at least.
create or replace temp macro _anon_brackets() as '([\[\](])\s*(.+?)\s*,\s*(.+?)\s*([\])\[])';
create or replace temp macro _anon_range() as
    '([-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?)\s*(?:-|\.\.|to)\s*([-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?)';
create or replace temp macro _anon_at_most() as '(<=?|≤)\s*(.+)';
create or replace temp macro _anon_at_least() as '(>=?|≥)\s*(.+)';

create or replace temp macro _anon_interval(lower_end, upper_end, without_lower, without_upper) as
    {lower_end: lower_end, upper_end: upper_end, without_lower: without_lower, without_upper: without_upper};

-- The interval of numbers, dates or times that the text stands for, and whether its ends lie outside of it. `low` and
-- `high` are the smallest and the largest value of the original's column. An end is NULL where the text cannot be read.
create or replace temp macro _anon_interval_of(t, low, high) as case
    when regexp_full_match(t, _anon_brackets()) then _anon_interval(
        _anon_like(regexp_extract(t, _anon_brackets(), 2), low), _anon_like(regexp_extract(t, _anon_brackets(), 3), low),
        regexp_extract(t, _anon_brackets(), 1) in (']', '('), regexp_extract(t, _anon_brackets(), 4) in ('[', ')'))
    when regexp_full_match(t, _anon_range()) then _anon_interval(
        _anon_like(regexp_extract(t, _anon_range(), 1), low), _anon_like(regexp_extract(t, _anon_range(), 2), low),
        false, false)
    when regexp_full_match(t, '\{.+\}') then _anon_interval(
        if(list_contains(list_transform(_anon_members(t), lambda member: _anon_like(member, low) is null), true), null,
            list_min(list_transform(_anon_members(t), lambda member: _anon_like(member, low)))),
        list_max(list_transform(_anon_members(t), lambda member: _anon_like(member, low))), false, false)
    when regexp_full_match(t, '[0-9]+\*+') then _anon_interval(
        _anon_like(replace(t, '*', '0'), low), _anon_like(replace(t, '*', '9'), low), false, false)
    when regexp_full_match(t, _anon_at_most()) then _anon_interval(
        low, _anon_like(regexp_extract(t, _anon_at_most(), 2), low), false, regexp_extract(t, _anon_at_most(), 1) = '<')
    when regexp_full_match(t, _anon_at_least()) then _anon_interval(
        _anon_like(regexp_extract(t, _anon_at_least(), 2), low), high, regexp_extract(t, _anon_at_least(), 1) = '>', false)
    when regexp_full_match(t, '.+\+') then _anon_interval(_anon_like(rtrim(t, '+'), low), high, false, false)
    else _anon_interval(_anon_like(t, low), _anon_like(t, low), false, false)
end;

-- The values of the original's column that the text stands for, of those in `present`, and NULL where `has_null`; NULL
-- where the text cannot be read.
create or replace temp macro _anon_values_of(t, present, has_null) as case
    when len(list_filter(present, lambda v: trim(v::varchar) = t)) > 0
        then list_filter(present, lambda v: trim(v::varchar) = t)
    when _anon_suppressed(t) then if(has_null, list_append(present, null), present)
    when t like '%*' and len(_anon_masked(t, present, true)) > 0 then _anon_masked(t, present, true)
    when t like '%*' and len(_anon_masked(t, present, false)) > 0 then _anon_masked(t, present, false)
    when t like '{%}' and len(_anon_among_members(t, present)) = len(_anon_members(t))
        then _anon_among_members(t, present)
end;

-- Values that begin with what stands before the stars, and with `as_long` are as long as the text.
create or replace temp macro _anon_masked(t, present, as_long) as
    list_filter(present, lambda v: starts_with(v::varchar, rtrim(t, '*')) and (not as_long or length(v::varchar) = length(t)));

create or replace temp macro _anon_among_members(t, present) as
    list_filter(present, lambda v: list_contains(_anon_members(t), v::varchar));
