package inquiry

import (
	"context"
	"fmt"

	"github.com/attune-go/attune/core/jsonvalue"
	"github.com/attune-go/attune/core/secret"
	"github.com/attune-go/attune/core/store"
)

// sealed are answers with markers in place of their secrets: responses[i] answers inquiries[i].
type sealed struct {
	inquiries []int64
	responses []string
}

// sealAnswers seals the secrets of unsettled answers, which another service has stored in the clear. It locks the
// inquiries, so that no answer comes before they are settled. Without a key the answers stay as they are, since they
// are accepted already.
func sealAnswers(ctx context.Context, tx *store.Tx, ids []int64, keys secret.Keyring) (sealed, error) {
	done := sealed{inquiries: []int64{}, responses: []string{}}
	if !keys.Ready() {
		return done, nil
	}
	rows, err := tx.LockUnsettledInquiries(ctx, ids)
	if err != nil {
		return done, fmt.Errorf("lock %d inquiries: %w", len(ids), err)
	}
	var secrets store.InsertSecretValuesParams
	for _, row := range rows {
		if !row.Marked {
			continue
		}
		given := &response{public: row.Response}
		if err := jsonvalue.Decode(row.Response, &given.value); err != nil {
			return done, fmt.Errorf("read the answer to inquiry %d: %w", row.ID, err)
		}
		if err := given.seal(row.ResponseSchema, keys); err != nil {
			return done, fmt.Errorf("seal the answer to inquiry %d: %w", row.ID, err)
		}
		if len(given.sealed) == 0 {
			continue
		}
		done.inquiries, done.responses = append(done.inquiries, row.ID), append(done.responses, string(given.public))
		for _, one := range given.sealed {
			store.AddSecret(&secrets, secret.OfResult, row.Execution, one)
		}
	}
	if len(done.inquiries) == 0 {
		return done, nil
	}
	if err := tx.InsertSecretValues(ctx, secrets); err != nil {
		return done, fmt.Errorf("store the secrets of %d answers: %w", len(done.inquiries), err)
	}
	return done, nil
}
