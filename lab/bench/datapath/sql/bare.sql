-- This measurement writes no history.
ALTER TABLE execution DISABLE TRIGGER attune_history_insert;
ALTER TABLE execution DISABLE TRIGGER attune_history_update;
