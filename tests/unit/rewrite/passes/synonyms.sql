SELECT mean(a), count_star(), fsum(b), favg(b), kahan_sum(b) FROM t;
SELECT AVG(a), COUNT(*), SUM(b), AVG(b), SUM(b) FROM t;

SELECT mean(a, b) FROM t;
SELECT MEAN(a, b) FROM t;
