FROM t JOIN u ON t.a = u.a SELECT COUNT(*);
SELECT COUNT(*) FROM t JOIN u ON t.a = u.a;
