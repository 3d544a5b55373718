-- Randomized response of one value at a time, for pipelines that collect or pass on values row by row, and
-- the estimate of a count from values collected so. Runs in the stock DuckDB shell: .read this file.
--   value   the true value; NULL is a value of its own and must then be in the domain
--   domain  list of all values an answer can have, without repeats; publish it with p
--   p       probability that the true value is kept; otherwise each other value is equally likely
-- Guo, Ying and Wu (2011), section III, equation 1. Whoever sees an answer cannot tell whether it is true;
-- counts over many answers are estimated without bias. Draw once and store the result: a view over
-- randomized_response draws afresh at every read, and readers could average the noise away. Draws come from
-- DuckDB's random(), which setseed() makes repeatable; `value` is evaluated more than once, so it must not be
-- random itself. Cost: one search of the domain a row.

-- The true value with probability p, else one of the others, as in
--   create table answers as select randomized_response(smokes, [true, false], 0.8) as smokes from people;
create or replace temp macro randomized_response(value, domain, p) as
    case
        when p is null or p < 0 or p > 1
            then error('randomized_response: p must be a probability, from 0 to 1 [bad-argument]')
        when coalesce(list_position(domain, value), 0) = 0
            then error('randomized_response: the value is not in the domain; list every value an answer can have [bad-argument]')
        when random() < p then value
        -- from the value's own place, one to len(domain) - 1 places further, round the end
        else domain[1 + (list_position(domain, value) + floor(random() * (len(domain) - 1))::bigint) % len(domain)]
    end;

-- Estimated number of rows whose true value is one of `wanted` values, with its standard error against the
-- table that was randomized: `found` of `total` released rows have one of them, as in
--   select randomized_response_count(count(*) filter (where smokes), count(*), 1, 2, 0.8) from answers;
create or replace temp macro randomized_response_count(found, total, wanted, domain_size, p) as
    list_transform(
        list_transform(
            [{
                'q': wanted * (1 - p::double) / (domain_size - 1),
                'gain': case when abs(p * domain_size - 1) < 1e-9
                    then error('randomized_response_count: p = 1 / domain_size keeps nothing to estimate from [bad-argument]')
                    else (p::double * domain_size - 1) / (domain_size - 1) end
            }],
            lambda c: {'inside': (1 - c.q) / c.gain, 'outside': -c.q / c.gain}
        ),
        lambda w: {
            'estimate': found * w.inside + (total - found) * w.outside,
            'std_error': sqrt(greatest(
                found * w.inside * (w.inside - 1) + (total - found) * w.outside * (w.outside - 1), 0))
        }
    )[1];
