-- The results of the orders of this run, whose first event comes after $1 and first execution after $2:
-- events, unmatched events and unprocessed enforcements, workflows by status, inquiries.
SELECT (SELECT count(*) FROM event WHERE trigger_ref = 'shop.order_placed' AND id > $1),
       (SELECT count(*) FROM event e WHERE e.trigger_ref = 'shop.order_placed' AND e.id > $1
           AND NOT EXISTS (SELECT FROM event_matched m WHERE m.event = e.id))
       + (SELECT count(*) FROM enforcement WHERE trigger_ref = 'shop.order_placed' AND event > $1 AND status = 'created' AND error IS NULL),
       count(*) FILTER (WHERE w.status NOT IN ('completed', 'failed', 'cancelled', 'timeout', 'abandoned')),
       count(*) FILTER (WHERE w.status = 'completed'),
       count(*) FILTER (WHERE w.status IN ('failed', 'cancelled', 'timeout', 'abandoned')),
       (SELECT count(*) FROM inquiry WHERE execution > $2 AND status = 'pending'),
       (SELECT count(*) FROM inquiry WHERE execution > $2 AND status = 'responded')
FROM workflow_execution w
WHERE w.execution > $2
