SELECT CURRENT_DATE AS current_date, COUNT(*) FROM people;
SELECT TODAY() AS "current_date", COUNT(*) FROM people;

SELECT born AS current_date, COUNT(*) FROM people GROUP BY CURRENT_DATE;
-- refused: current_date is a column here and a function
