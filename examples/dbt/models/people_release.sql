-- the very rows that were tested, without row_id
select * exclude (row_id) from {{ ref("people_checked") }}
