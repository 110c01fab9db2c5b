-- Filling is not measured, so triggers and foreign keys are off.
SET session_replication_role = replica
