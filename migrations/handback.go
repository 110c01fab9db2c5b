package migrations

import (
	"context"
	"errors"
	"fmt"
)

// ErrHalfWay refuses to remove the files of an adopted schema that is neither at the newest version nor handed
// back: the other executor could not continue its executions.
var ErrHalfWay = errors.New(
	"the schema is not at the newest version: run attune-executor migrate up first, then migrate down")

// handedBack is the comment on attune_schema_origin between the hand-back and the end of the removal.
const handedBack = "handed back"

// takeOver is the file that gives the queues to the engine.
const takeOver = 110

// handBack runs Options.HandBack before the removal of the first file. An interrupted removal continues
// without it.
func (s *session) handBack(ctx context.Context) error {
	state, _, err := s.state(ctx)
	if err != nil {
		return err
	}
	if !state.Current() {
		var done bool
		err = s.conn.QueryRowContext(ctx,
			`SELECT coalesce(obj_description('attune_schema_origin'::regclass, 'pg_class'), '') = $1`,
			handedBack).Scan(&done)
		if err != nil {
			return fmt.Errorf("read whether the schema is handed back: %w", err)
		}
		if done || state.Version < takeOver {
			return nil
		}
		return ErrHalfWay
	}
	if err := s.opts.HandBack(ctx); err != nil {
		return err
	}
	return s.markHandedBack(ctx, "'"+handedBack+"'")
}

// markHandedBack writes the comment, or removes it with NULL.
func (s *session) markHandedBack(ctx context.Context, comment string) error {
	if _, err := s.conn.ExecContext(ctx, "COMMENT ON TABLE attune_schema_origin IS "+comment); err != nil {
		return fmt.Errorf("record the hand-back: %w", err)
	}
	return nil
}

// HandsBack reports whether Down to a version hands the schema back to the executor of the installation.
func (s State) HandsBack(to int64) bool {
	return s.Origin == OriginAdopted && to < takeOver && s.Version >= takeOver
}
