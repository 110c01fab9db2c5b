-- Events of the demo after $1, up to $3, that the mirror has not taken ($2).
SELECT count(*), count(*) FILTER (WHERE NOT e.id = ANY ($2::bigint[]))
FROM event e
WHERE e.id > $1 AND e.id <= $3 AND e.trigger_ref IN ('shop.order_placed', 'ops.parcel_scanned')
