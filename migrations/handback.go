package migrations

import (
	"context"
	"errors"
	"fmt"
)

// ErrHalfWay refuses to remove the files of an adopted schema that is not at the
// newest version and has not been handed back: what waits and runs in it could
// not be told to the other executor.
var ErrHalfWay = errors.New(
	"the schema is not at the newest version: run attune-executor migrate up first, then migrate down")

// handedBack is the comment on the table of the origin while the hand-back is
// done and the removal is not.
const handedBack = "handed back"

// firstTakeOver is the file from which on the queues are the engine's.
const firstTakeOver = 39

// handBack runs Options.HandBack once before the first file of an adopted schema
// is removed. A removal that was interrupted goes on without it.
func (s *session) handBack(ctx context.Context) error {
	state, _, err := s.state(ctx)
	if err != nil {
		return err
	}
	if !state.Current() {
		done, err := s.isHandedBack(ctx)
		if err != nil || done || state.Version < firstTakeOver {
			return err
		}
		return ErrHalfWay
	}
	if err := s.opts.HandBack(ctx); err != nil {
		return err
	}
	return s.markHandedBack(ctx, "'"+handedBack+"'")
}

func (s *session) isHandedBack(ctx context.Context) (done bool, err error) {
	err = s.conn.QueryRowContext(ctx,
		`SELECT coalesce(obj_description('attune_schema_origin'::regclass, 'pg_class'), '') = $1`,
		handedBack).Scan(&done)
	if err != nil {
		return false, fmt.Errorf("look whether the schema was handed back: %w", err)
	}
	return done, nil
}

// markHandedBack writes the mark, or takes it away with NULL.
func (s *session) markHandedBack(ctx context.Context, comment string) error {
	if _, err := s.conn.ExecContext(ctx, "COMMENT ON TABLE attune_schema_origin IS "+comment); err != nil {
		return fmt.Errorf("note the hand-back: %w", err)
	}
	return nil
}

// HandsBack reports whether Down to a version leaves the schema to the executor
// of the installation.
func (s State) HandsBack(to int64) bool {
	return s.Origin == OriginAdopted && to < firstAdditive && s.Version >= firstAdditive
}
