-- The secrets of an execution or an enforcement go when it goes, whoever deletes it.
-- The table names its rows by type and number, so that no foreign key can see to it.
--
-- Secrets that earlier repetitions have under the type execution, where nobody looks
-- for them, get their name.

-- +goose Up
-- No transaction holds two busy tables: each part is committed, and a repetition, Down too, passes over it.
-- First, because the triggers keep writers of executions away.
UPDATE execution_secret_value v SET entity_type = 'execution_config'
WHERE v.entity_type = 'execution' AND NOT EXISTS (
    SELECT FROM execution_secret_value o
    WHERE o.entity_type = 'execution_config' AND o.entity_id = v.entity_id AND o.json_path = v.json_path);

-- +goose StatementBegin
CREATE OR REPLACE FUNCTION attune_secrets_go_along() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    IF TG_TABLE_NAME = 'enforcement' THEN
        DELETE FROM execution_secret_value v USING gone g
        WHERE v.entity_type = 'enforcement_config' AND v.entity_id = g.id;
    ELSE
        DELETE FROM execution_secret_value v USING gone g
        WHERE v.entity_type = ANY (ARRAY['execution_config', 'execution_result']) AND v.entity_id = g.id;
    END IF;
    RETURN NULL;
END
$$;
-- +goose StatementEnd
CREATE OR REPLACE TRIGGER attune_secrets_go_along
    AFTER DELETE ON execution REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION attune_secrets_go_along();
COMMIT AND CHAIN;
CREATE OR REPLACE TRIGGER attune_secrets_go_along
    AFTER DELETE ON enforcement REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION attune_secrets_go_along();

-- +goose Down
DROP TRIGGER IF EXISTS attune_secrets_go_along ON enforcement;
COMMIT AND CHAIN;
DROP TRIGGER IF EXISTS attune_secrets_go_along ON execution;
DROP FUNCTION IF EXISTS attune_secrets_go_along();
