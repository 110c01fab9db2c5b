-- Filling is not measured: no triggers, no keys to check.
SET session_replication_role = replica
