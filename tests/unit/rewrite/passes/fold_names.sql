SELECT Age AS "The Age" FROM People;
SELECT age AS "the age" FROM people;

SELECT "Éa" FROM t;
SELECT "Éa" FROM t;
