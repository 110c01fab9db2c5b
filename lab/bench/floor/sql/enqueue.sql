INSERT INTO execution_admission_entry (state_id, execution_id, status, queue_order)
SELECT $2, r.id, 'queued', $3 + r.place - 1 FROM unnest($1::bigint[]) WITH ORDINALITY r (id, place)
