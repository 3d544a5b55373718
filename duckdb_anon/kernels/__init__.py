"""Algorithms: arrays of codes in, arrays out. Nothing here knows SQL, names of columns or DuckDB.

Arguments of the same name mean the same everywhere and are documented here: `qi` are the quasi-identifiers, each an
`Attribute` with n codes; `sensitive` has the sensitive code of each row and `person` the individual it belongs to (None
where every row is an individual), shape (n,); `group_of_row` has groups 0, 1, ... of which every one is occupied;
`function` is the SQL function that errors name; `rng` draws; `tick` is polled and may raise to stop the work, and
`stop` or `flag` is an array that is not 0 once a compiled function is to stop; `space` is working space of one thread.
"""
