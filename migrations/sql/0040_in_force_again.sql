-- A shared limit can be out of force for a while: its policy is given another
-- kind or other parameters, or a newer one stands in its place. Who begins
-- meanwhile holds no slot of it. So its row says at which count of changes it
-- has counted who runs; at any other it counts them once more.

-- +goose Up
ALTER TABLE admission_epoch ADD COLUMN IF NOT EXISTS policies bigint NOT NULL DEFAULT 1;
ALTER TABLE admission_scope ADD COLUMN IF NOT EXISTS counted_at bigint NOT NULL DEFAULT 0;
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION attune_policies_changed() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    UPDATE admission_epoch SET epoch = epoch + 1, policies = policies + 1;
    RETURN NULL;
END
$$;
-- +goose StatementEnd
CREATE OR REPLACE TRIGGER attune_rules_changed AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON policy
    FOR EACH STATEMENT EXECUTE FUNCTION attune_policies_changed();
CREATE OR REPLACE TRIGGER attune_pack_changed AFTER UPDATE OF pack ON action
    FOR EACH ROW WHEN (OLD.pack IS DISTINCT FROM NEW.pack) EXECUTE FUNCTION attune_policies_changed();

-- +goose Down
DROP TRIGGER attune_pack_changed ON action;
CREATE OR REPLACE TRIGGER attune_rules_changed AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON policy
    FOR EACH STATEMENT EXECUTE FUNCTION attune_rules_changed();
DROP FUNCTION attune_policies_changed();
ALTER TABLE admission_scope DROP COLUMN counted_at;
ALTER TABLE admission_epoch DROP COLUMN policies;
