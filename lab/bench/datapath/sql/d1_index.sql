-- The index of the published schema for its counts.
CREATE INDEX IF NOT EXISTS d1_entry ON execution_admission_entry (state_id, status, queue_order)
