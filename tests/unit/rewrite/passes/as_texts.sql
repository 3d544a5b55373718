-- after: spell_out_pivots
PIVOT people ON sex IN (1) USING count(*) GROUP BY age;
SELECT age, COUNT(*) FILTER(WHERE sex = '1') AS "1" FROM people GROUP BY age;

PIVOT people ON age IN (1) USING count(*) GROUP BY sex;
SELECT sex, COUNT(*) FILTER(WHERE age = 1) AS "1" FROM people GROUP BY sex;
