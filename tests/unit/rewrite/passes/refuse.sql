SELECT MIN(COLUMNS(*)) FROM people;
-- refused: COLUMNS(...) cannot be answered

SELECT COUNT(*) FROM people WHERE RANDOM() < 0.5;
-- refused: random() cannot be answered

SELECT NEXTVAL('s'), COUNT(*) FROM people;
-- refused: nextval('s') cannot be answered

SELECT COUNT(*) FROM people WHERE sex.length() = 1;
-- refused: sex.length(...) cannot be answered as it is written

SELECT p.sex.upper(), COUNT(*) FROM people AS p GROUP BY 1;
-- refused: p.sex.upper(...) cannot be answered as it is written

SELECT main.upper(sex), COUNT(*) FROM people GROUP BY 1;
SELECT main.upper(sex), COUNT(*) FROM people GROUP BY 1;

SELECT TYPEOF(COUNT(*)) FROM people;
-- refused: typeof(count(*)) cannot be answered

SELECT #1, COUNT(*) FROM people;
-- refused: #1 cannot be answered

SELECT age FROM people UNION BY NAME SELECT age FROM people;
-- refused: UNION BY NAME cannot be answered

SELECT COUNT(*) FROM people TABLESAMPLE (10 PERCENT);
-- refused: TABLESAMPLE and USING SAMPLE cannot be answered

SELECT COUNT(*) FROM people USING SAMPLE 3;
-- refused: TABLESAMPLE and USING SAMPLE cannot be answered

PIVOT people ON sex;
-- refused: this PIVOT cannot be answered

UNPIVOT people ON COLUMNS(*);
-- refused: this UNPIVOT cannot be answered
