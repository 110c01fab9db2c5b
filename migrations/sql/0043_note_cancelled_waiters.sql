-- Who was cancelled while he waited and is deleted before anybody has taken him
-- out of his line leaves a note too: he never took a slot.

-- +goose Up
CREATE OR REPLACE TRIGGER attune_note_lost_holder BEFORE DELETE ON execution
    FOR EACH ROW WHEN (OLD.admission_state_id IS NOT NULL OR OLD.status = 'requested' OR OLD.admitted_at IS NULL)
    EXECUTE FUNCTION attune_note_lost_holder();

-- +goose Down
CREATE OR REPLACE TRIGGER attune_note_lost_holder BEFORE DELETE ON execution
    FOR EACH ROW WHEN (OLD.admission_state_id IS NOT NULL OR OLD.status = 'requested')
    EXECUTE FUNCTION attune_note_lost_holder();
