-- note is what was odd about an enforcement that could be carried out: paths of its
-- parameters that led to nothing.

-- +goose Up
ALTER TABLE enforcement ADD COLUMN IF NOT EXISTS note text;

-- +goose Down
ALTER TABLE enforcement DROP COLUMN note;
