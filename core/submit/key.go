package submit

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/attune-go/attune/core/store"
)

// Key is the Idempotency-Key of a client. A repeated request with the same key and digest creates nothing within 24
// hours, also if it comes at the same time to another replica.
type Key struct {
	Client string
	Text   string
	Digest []byte // of what is requested
}

// ErrKeyUsed reports a key with which the client has requested something else.
var ErrKeyUsed = errors.New("its Idempotency-Key came with another path or body within the last 24 hours")

// errTaken rolls back what another request with the same key has created meanwhile.
var errTaken = errors.New("another request has the same Idempotency-Key")

// once creates something, or returns what an earlier request with the key has created. create takes the key in its
// transaction.
func (s *Submitter) once(ctx context.Context, key *Key, create func() error) (earlier int64, err error) {
	for range 2 { // the row of a request that was faster is there at the second time
		row, err := s.store.RequestOfKey(ctx, key.Digest, key.Client, key.Text)
		switch {
		case err == nil && !row.Same:
			return 0, ErrKeyUsed
		case err == nil:
			return row.Subject, nil
		case !errors.Is(err, sql.ErrNoRows):
			return 0, fmt.Errorf("look up the key of a request: %w", err)
		}
		if err := create(); !errors.Is(err, errTaken) {
			return 0, err
		}
	}
	return 0, errTaken
}

// take stores the key with what was created; without a key it does nothing. It fails with errTaken.
func (k *Key) take(ctx context.Context, tx *store.Tx, subject int64) error {
	if k == nil {
		return nil
	}
	taken, err := tx.TakeRequestKey(ctx, store.TakeRequestKeyParams{
		Client: k.Client, Key: k.Text, Digest: k.Digest, Subject: subject,
	})
	if err == nil && taken == 0 {
		err = errTaken
	}
	if err != nil {
		return fmt.Errorf("store the key of %d: %w", subject, err)
	}
	return nil
}
