-- Starts above the rate of the preceding second.
SELECT count(*) FROM (
    SELECT count(*) OVER (ORDER BY admitted_at RANGE BETWEEN interval '999999 microseconds' PRECEDING AND CURRENT ROW) AS n
    FROM execution
) x WHERE n > $1::int
