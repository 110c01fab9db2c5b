-- Nobody keeps a history of this measurement.
ALTER TABLE execution DISABLE TRIGGER attune_history_insert;
ALTER TABLE execution DISABLE TRIGGER attune_history_update;
