package inquiry

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/attune-go/attune/core/secret"
	"github.com/attune-go/attune/core/store"
)

// sealed are answers with markers in place of their secrets: the answer of inquiries[i]
// is responses[i].
type sealed struct {
	inquiries []int64
	responses []string
}

// sealAnswers seals the secrets of answers that another service has written as they
// were given, and from which nothing was drawn yet. It locks the inquiries, so that no
// answer comes between this and what is drawn from it. Without a key answers stay as
// they are: they were taken already, and somebody waits for them.
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
		given, err := sealRow(row, keys)
		if err != nil {
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

func sealRow(row store.LockUnsettledInquiriesRow, keys secret.Keyring) (*response, error) {
	given := &response{public: row.Response}
	decoder := json.NewDecoder(bytes.NewReader(row.Response))
	decoder.UseNumber()
	if err := decoder.Decode(&given.value); err != nil {
		return nil, fmt.Errorf("read it: %w", err)
	}
	return given, given.seal(row.ResponseSchema, keys)
}
