SELECT COUNT(*) FROM (people AS p JOIN regions AS r ON p.region = r.name);
SELECT COUNT(*) FROM people AS p JOIN regions AS r ON p.region = r.name;

SELECT COUNT(*) FROM (people) AS p;
SELECT COUNT(*) FROM people AS p;

SELECT COUNT(*) FROM regions AS r JOIN (people AS p JOIN t ON p.a = t.a) ON p.region = r.name;
SELECT COUNT(*) FROM regions AS r JOIN (people AS p JOIN t ON p.a = t.a) ON p.region = r.name;
