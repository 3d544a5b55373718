-- with row_id, for the tests; it stays with the holder
select * from mondrian('{{ ref("people") }}', k := {{ var("k", 10) }}, sensitive_edges := 10, row_id := true)
