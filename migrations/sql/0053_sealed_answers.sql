-- Lets an answer be kept without its secrets. Services that know nothing of secrets
-- write answers as they were given; the statement that draws from an answer puts
-- markers in place of what its question marks as secret. Nobody else sets settled, so
-- everybody else still changes nothing of an inquiry that has ended (invariant S16).

-- +goose Up
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION attune_keep_ended_inquiry() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    IF OLD.settled OR NOT NEW.settled THEN
        NEW.response := OLD.response;
    END IF;
    NEW.status       := OLD.status;
    NEW.responded_at := OLD.responded_at;
    RETURN NEW;
END
$$;
-- +goose StatementEnd

-- +goose Down
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION attune_keep_ended_inquiry() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    NEW.status       := OLD.status;
    NEW.response     := OLD.response;
    NEW.responded_at := OLD.responded_at;
    RETURN NEW;
END
$$;
-- +goose StatementEnd
