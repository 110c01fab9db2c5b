-- What holds in a database at any moment. Each query returns no row unless its promise is broken.
-- A row names the broken row (subject) and the fault (detail). A grace of two minutes is given where
-- a sweep repairs the writes of other programs. queue_drift, worker_drift, scope_drift, stats_drift
-- and ended_drift are the queries by which a repair finds what to correct (core/store/queries/control.sql).

-- name: active_count
-- guards: S3, S6: a queue's counter is the number of executions that hold its slots
SELECT 'admission state ' || d.id AS subject,
       format('active_count is %s, %s executions hold a slot', d.active_count, d.active) AS detail
FROM queue_drift d WHERE d.active_count <> d.active;

-- name: holder_place
-- guards: S3, S6: a slot is held of a queue and at a worker whose counters exist
SELECT 'execution ' || h.execution AS subject,
       format('holds a slot of admission state %s at worker %s, and one of them does not exist', h.state_id, coalesce(h.worker::text, 'none')) AS detail
FROM execution_holder h
WHERE NOT EXISTS (SELECT FROM execution_admission_state s WHERE s.id = h.state_id)
   OR h.worker IS NOT NULL AND NOT EXISTS (SELECT FROM worker_load l WHERE l.worker = h.worker);

-- name: queued_count
-- guards: S17: a queue's length is the number of its entries
SELECT 'admission state ' || d.id AS subject,
       format('queued_count is %s, %s entries wait', d.queued_count, d.queued) AS detail
FROM queue_drift d WHERE d.queued_count <> d.queued;

-- name: lane_count
-- guards: S23: the counts of the lanes are the numbers of their entries, and no entry waits below its lane's head
SELECT 'admission state ' || d.id AS subject,
       format('lanes high %s and low %s, entries %s and %s; heads %s, %s and %s, first entries %s, %s and %s',
              d.queued_high, d.queued_low, d.high, d.low, d.head_high, d.head_order, d.head_low, d.first_high, d.head, d.first_low) AS detail
FROM queue_drift d
WHERE (d.queued_high, d.queued_low, d.head_high, d.head_order, d.head_low)
   <> (d.high, d.low, d.first_high, d.head, d.first_low);

-- name: queue_order
-- guards: S4: the next place in a queue is behind every place that was given
SELECT 'admission state ' || d.id AS subject,
       format('next_queue_order is %s, the last entry needs %s', d.next_queue_order, d.next_order) AS detail
FROM queue_drift d WHERE d.next_queue_order <> d.next_order;

-- name: worker_load
-- guards: S6: a worker's load is the number of slot holders handed to it
SELECT 'worker ' || d.worker AS subject,
       format('assigned is %s, %s executions handed to it hold a slot', d.assigned, d.held) AS detail
FROM worker_drift d;

-- name: scope_count
-- guards: S3: a pack's or the global counter is the number of slots taken from it
SELECT 'admission scope ' || d.id AS subject,
       format('active_count is %s, %s slots are taken', d.active_count, d.taken) AS detail
FROM scope_drift d;

-- name: scope_holder
-- guards: S6: who holds a slot of a shared limit holds one of its queue, all or none
SELECT 'execution ' || t.execution AS subject,
       format('%s, holds a slot of admission scope %s and none of a queue', e.status, t.scope_id) AS detail
FROM execution_slot t JOIN execution e ON e.id = t.execution
WHERE NOT EXISTS (SELECT FROM execution_holder h WHERE h.execution = e.id);

-- name: holder_execution
-- guards: S6: the execution of a holder exists, and the holder has its worker and its attempt
SELECT 'execution ' || h.execution AS subject,
       format('holds a slot of admission state %s as attempt %s at worker %s; %s', h.state_id, h.attempt, coalesce(h.worker::text, 'none'),
              CASE WHEN e.id IS NULL THEN 'it does not exist' ELSE format('it is attempt %s at worker %s', e.attempt, coalesce(e.worker::text, 'none')) END) AS detail
FROM execution_holder h LEFT JOIN execution e ON e.id = h.execution
WHERE e.id IS NULL OR h.attempt <> e.attempt OR h.worker <> coalesce(e.worker, 0);

-- name: lost_holder
-- guards: S6: what a deleted execution held is given back within one sweep
SELECT 'execution ' || l.execution AS subject,
       format('deleted at %s, held a slot of admission state %s', l.at, l.state_id) AS detail
FROM lost_holder l
WHERE l.at < now() - interval '2 minutes';

-- name: queue_stats
-- guards: queue_stats can be derived: its counts are the sums over the queues of the action
SELECT 'action ' || d.action_id AS subject,
       format('queue_length %s and active_count %s, the queues say %s and %s', d.queue_length, d.active_count, d.queued, d.active) AS detail
FROM stats_drift d WHERE d.kept;

-- name: terminal_holder
-- guards: S6: a terminal execution gives its slot back within one sweep
SELECT 'execution ' || d.id AS subject,
       format('%s for two minutes and still holds a slot of admission state %s', d.status, d.state_id) AS detail
FROM ended_drift d WHERE d.state_id <> 0;

-- name: holder_status
-- guards: S6: who holds a slot was handed to a worker
SELECT 'execution ' || e.id AS subject,
       format('status %s, worker %s, holds a slot of admission state %s',
              e.status, coalesce(e.worker::text, 'none'), h.state_id) AS detail
FROM execution_holder h JOIN execution e ON e.id = h.execution
WHERE e.status IN ('requested', 'scheduling');

-- name: status_holder
-- guards: S6: who was handed to a worker holds a slot
SELECT 'execution ' || e.id AS subject,
       format('status %s on worker %s without a slot', e.status, e.worker) AS detail
FROM execution e
WHERE e.worker IS NOT NULL AND e.status IN ('scheduled', 'running', 'canceling')
  AND NOT EXISTS (SELECT FROM execution_holder h WHERE h.execution = e.id);

-- name: scheduled_worker
-- guards: S1: a scheduled execution has a worker
SELECT 'execution ' || e.id AS subject, 'scheduled without a worker' AS detail
FROM execution e
WHERE e.status = 'scheduled' AND e.worker IS NULL;

-- name: entry_status
-- guards: S6: only a requested execution waits in a queue
SELECT 'execution ' || e.id AS subject,
       format('waits in admission state %s with status %s', q.state_id, e.status) AS detail
FROM execution_admission_entry q JOIN execution e ON e.id = q.execution_id
WHERE e.status <> 'requested'
  AND (e.status NOT IN ('completed', 'failed', 'cancelled', 'timeout', 'abandoned')
       OR coalesce(e.finished_at, e.updated) < now() - interval '2 minutes');

-- name: entry_holder
-- guards: S6: no execution holds a slot and waits for one
SELECT 'execution ' || e.id AS subject,
       format('waits in admission state %s and holds a slot of %s', q.state_id, h.state_id) AS detail
FROM execution_admission_entry q JOIN execution e ON e.id = q.execution_id JOIN execution_holder h ON h.execution = e.id;

-- name: idle_slot
-- guards: L3: a free slot with a waiter is filled
SELECT 'admission state ' || s.id AS subject,
       format('%s of %s slots taken, %s wait, the first since %s',
              s.active_count, s.max_concurrent, s.queued_count, min(q.enqueued_at)) AS detail
FROM execution_admission_state s JOIN execution_admission_entry q ON q.state_id = s.id
WHERE s.active_count < s.max_concurrent AND NOT s.paused
  AND s.updated < now() - interval '2 minutes'
  AND NOT EXISTS (SELECT FROM admission_blocked b WHERE b.state_id = s.id)
GROUP BY s.id
HAVING min(q.enqueued_at) < now() - interval '2 minutes';

-- name: outbox_age
-- guards: L5: the outbox drains
SELECT 'outbox row ' || o.id AS subject,
       format('unpublished for %s seconds after %s attempts: %s',
              floor(extract(epoch FROM now() - o.created)), o.attempts, coalesce(o.last_error, 'no error recorded')) AS detail
FROM outbox o
WHERE o.created < now() - interval '60 seconds';

-- name: live_per_enforcement
-- guards: S10: an enforcement has one live top-level execution
SELECT 'enforcement ' || e.enforcement AS subject,
       format('executions %s are all live', string_agg(e.id::text, ', ' ORDER BY e.id)) AS detail
FROM execution e
WHERE e.enforcement IS NOT NULL AND e.parent IS NULL
  AND e.status NOT IN ('completed', 'failed', 'cancelled', 'timeout', 'abandoned')
GROUP BY e.enforcement HAVING count(*) > 1;

-- name: live_attempts
-- guards: S19: an attempt starts only after the one before it ended
SELECT 'execution ' || coalesce(e.original_execution, e.id) AS subject,
       format('attempts %s are all live', string_agg(e.id::text, ', ' ORDER BY e.id)) AS detail
FROM execution e
WHERE e.status NOT IN ('completed', 'failed', 'cancelled', 'timeout', 'abandoned')
GROUP BY coalesce(e.original_execution, e.id) HAVING count(*) > 1;

-- name: inquiry_holder
-- guards: S16: while a question is open no slot is held
SELECT 'inquiry ' || i.id AS subject,
       format('pending while execution %s holds a slot of admission state %s', e.id, h.state_id) AS detail
FROM inquiry i JOIN execution e ON e.id = i.execution JOIN execution_holder h ON h.execution = e.id
WHERE i.status = 'pending';

-- name: inquiry_overdue
-- guards: S16, L2: an unanswered inquiry ends at its timeout
SELECT 'inquiry ' || i.id AS subject, format('open although its time was over at %s', i.timeout_at) AS detail
FROM inquiry i
WHERE i.status = 'pending' AND i.timeout_at < now() - interval '1 minute';

-- name: inquiry_unsettled
-- guards: S16, L1: what follows from the end of a question is drawn
SELECT 'inquiry ' || i.id AS subject,
       format('%s since %s, and nothing was drawn from it; execution %s is %s', i.status, i.updated, e.id, e.status) AS detail
FROM inquiry i JOIN execution e ON e.id = i.execution
WHERE i.status <> 'pending' AND NOT i.settled AND i.updated < now() - interval '1 minute';

-- name: stale_claim
-- guards: L2: a claim that was not finished is taken back
SELECT 'execution ' || e.id AS subject, format('scheduling since %s', e.updated) AS detail
FROM execution e
WHERE e.status = 'scheduling' AND e.updated < now() - interval '2 minutes';

-- name: forgotten_request
-- guards: L2: a requested execution waits in a queue or is taken up
SELECT 'execution ' || e.id AS subject, format('requested since %s, in no queue', e.updated) AS detail
FROM execution e
WHERE e.status = 'requested' AND e.updated < now() - interval '10 minutes'
  AND NOT EXISTS (SELECT FROM execution_admission_entry q WHERE q.execution_id = e.id)
  AND NOT EXISTS (SELECT FROM execution_retry t WHERE t.execution = e.id AND t.waiting);

-- name: overdue_retry
-- guards: L2: a retry begins when its time has come
SELECT 'execution ' || t.execution AS subject, format('repeats %s and was due at %s', t.failed, t.due) AS detail
FROM execution_retry t JOIN execution e ON e.id = t.execution
WHERE t.waiting AND e.status = 'requested' AND t.due < now() - interval '2 minutes';

-- name: repeated_once
-- guards: S19: an execution is repeated after it has ended, and not after its end was asked for
SELECT 'execution ' || t.failed AS subject, format('%s, and repeated by %s (%s)', e.status, t.execution, t.reason) AS detail
FROM execution_retry t JOIN execution e ON e.id = t.failed
WHERE e.status NOT IN ('completed', 'failed', 'cancelled', 'timeout', 'abandoned')
   OR (t.reason <> 'manual_retry' AND (e.status IN ('completed', 'cancelled')
       OR (t.created < now() - interval '1 minute' -- one made in the moment of the request is stopped by a sweep
           AND EXISTS (SELECT FROM execution_cancel c WHERE c.execution = t.failed AND c.at < t.created)
           AND EXISTS (SELECT FROM execution r WHERE r.id = t.execution AND r.status <> 'cancelled'))));

-- name: undecided_return
-- guards: L4: an execution whose dispatch was returned is placed elsewhere
SELECT 'execution ' || u.execution AS subject, format('its dispatch to worker %s was returned at %s', u.worker, u.at) AS detail
FROM undelivered_dispatch u JOIN execution e ON e.id = u.execution
WHERE u.at < now() - interval '10 minutes' AND e.status = 'scheduled' AND e.worker = u.worker AND e.attempt = u.attempt;

-- name: workflow_end
-- guards: S12, L2: a workflow's state ends with its parent execution
SELECT 'workflow execution ' || w.id AS subject,
       format('%s, but its execution %s is %s', w.status, e.id, e.status) AS detail
FROM workflow_execution w JOIN execution e ON e.id = w.execution
WHERE e.status IN ('completed', 'failed', 'cancelled', 'timeout', 'abandoned')
  AND w.status NOT IN ('completed', 'failed', 'cancelled', 'timeout', 'abandoned')
  AND coalesce(e.finished_at, e.updated) < now() - interval '2 minutes';

-- name: workflow_hang
-- guards: S12, L2: a workflow waits for something: a child, a person, or to be resumed
SELECT 'workflow execution ' || w.id AS subject, format('%s since %s, and waits for nothing', w.status, w.updated) AS detail
FROM workflow_execution w JOIN execution e ON e.id = w.execution
WHERE w.open AND NOT w.paused AND w.updated < now() - interval '5 minutes'
  AND e.status NOT IN ('completed', 'failed', 'cancelled', 'timeout', 'abandoned')
  AND NOT EXISTS (SELECT FROM workflow_task_dispatch d WHERE d.workflow_execution = w.id AND NOT d.settled);

-- name: workflow_forgotten
-- guards: S11, L2: completed tasks of a workflow advance it
SELECT 'workflow execution ' || w.id AS subject,
       format('task %s is %s since %s, and nothing followed', d.task_name, e.status, coalesce(e.finished_at, e.updated)) AS detail
FROM workflow_execution w
JOIN workflow_task_dispatch d ON d.workflow_execution = w.id AND NOT d.settled
JOIN execution e ON e.id = d.execution_id
WHERE w.open AND e.status IN ('completed', 'failed', 'cancelled', 'timeout', 'abandoned')
  AND coalesce(e.finished_at, e.updated) < now() - interval '5 minutes'
  AND NOT EXISTS (SELECT FROM inquiry q WHERE q.execution = e.id AND q.status = 'pending');

-- name: workflow_versions
-- guards: S11: the decisions about a workflow have no gap
SELECT 'workflow execution ' || w.id AS subject, format('version %s, with %s decisions on record', w.version, count(l.version)) AS detail
FROM workflow_execution w LEFT JOIN workflow_log l ON l.workflow_execution = w.id
WHERE w.state IS NOT NULL
GROUP BY w.id HAVING w.version <> count(l.version) OR w.version <> coalesce(max(l.version), 0);

-- name: task_once
-- guards: S10: a workflow has one child for each task and item, not counting retries
SELECT 'workflow execution ' || c.workflow AS subject, format('task %s, item %s: %s children', c.task, c.item, c.n) AS detail
FROM (SELECT (e.workflow_task ->> 'workflow_execution')::bigint AS workflow, e.workflow_task ->> 'task_name' AS task,
             e.workflow_task ->> 'task_index' AS item, count(*) AS n
      FROM execution e
      WHERE jsonb_typeof(e.workflow_task) = 'object' AND e.retry_count = 0
      GROUP BY 1, 2, 3) c
WHERE c.n > 1;

-- name: lost_once
-- guards: S9: of what a worker did not do one replica decides, and once
SELECT 'execution ' || l.execution AS subject,
       format('attempt %s was decided %s times: %s', l.attempt, count(*), string_agg(l.outcome, ', ' ORDER BY l.id)) AS detail
FROM lost_work l
GROUP BY l.execution, l.attempt HAVING count(*) > 1;

-- name: work_of_the_gone
-- guards: L4: work at a worker that is gone is decided
SELECT 'execution ' || e.id AS subject, format('%s at worker %s, which was last heard of at %s', e.status, w.id, w.heartbeat_seen) AS detail
FROM execution e JOIN worker w ON w.id = e.worker
WHERE e.status IN ('scheduled', 'running', 'canceling')
  AND coalesce(w.heartbeat_seen, '-infinity') < now() - interval '10 minutes';

-- name: undecided_letter
-- guards: S20, L4: an execution whose dispatch was dead-lettered is placed elsewhere, or ended
SELECT 'execution ' || d.execution AS subject, format('its dispatch to worker %s is dead letter %s, of %s', d.worker, d.id, d.created) AS detail
FROM dead_letter d JOIN execution e ON e.id = d.execution
WHERE d.decision IS NULL AND d.created < now() - interval '10 minutes'
  AND e.status = 'scheduled' AND e.worker = d.worker AND e.attempt = d.attempt;

-- name: forgotten_event
-- guards: L1: every event is compared with the rules
SELECT 'event ' || e.id AS subject, format('of trigger %s, of %s, was never compared with the rules', e.trigger_ref, e.created) AS detail
FROM event e
WHERE e.created < now() - interval '10 minutes' AND e.created > now() - interval '20 hours'
  AND e.created >= (SELECT m.since FROM event_matching m WHERE m.one)
  AND NOT EXISTS (SELECT FROM event_matched d WHERE d.event = e.id);

-- name: forgotten_enforcement
-- guards: L1: every rule that an event has fired gets its execution, or the reason why not
SELECT 'enforcement ' || f.id AS subject, format('of rule %s, of %s, was never taken up', f.rule_ref, f.created) AS detail
FROM enforcement f
WHERE f.status = 'created' AND f.created < now() - interval '10 minutes'
  AND f.created >= (SELECT m.since FROM event_matching m WHERE m.one);
