package monitor

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/attune-go/attune/core/schema"
	"github.com/attune-go/attune/core/secret"
	"github.com/attune-go/attune/core/store"
)

// tooLong stands for a document that was cut and may hold secrets: nobody can say
// where in it they are.
const tooLong = `"(too long to be shown: it may hold secrets)"`

// redact hides what the action marks as secret, should it be in the clear: rows may
// have been written when the action did not mark it yet, or by whoever does not heed
// it.
func (d *ExecutionDetail) redact(ctx context.Context, tx *store.Tx) error {
	schemas, err := tx.ViewSchemas(ctx, d.ID)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the schemas of execution %d: %w", d.ID, err)
	}
	d.Config = redacted(d.Config, schemas.ParamSchema, "")
	d.Result = redacted(d.Result, schemas.OutSchema, "/data")
	return nil
}

// redacted hides what a schema marks as secret in the part of a document that it
// speaks of.
func redacted(document string, rules []byte, part string) string {
	if document == "" || !bytes.Contains(rules, []byte(`"secret"`)) {
		return document
	}
	marks, err := schema.Parse(rules)
	if err != nil || !marks.HasSecrets() {
		return document
	}
	decoder := json.NewDecoder(strings.NewReader(document))
	decoder.UseNumber()
	var value any
	if decoder.Decode(&value) != nil {
		return tooLong
	}
	spoken, ok := secret.At(value, part)
	if !ok {
		return document
	}
	paths := marks.SecretPaths(spoken)
	for i := range paths {
		paths[i] = part + paths[i]
	}
	public, taken := secret.Take(value, paths)
	if len(taken) == 0 {
		return document
	}
	text, err := json.Marshal(public)
	if err != nil {
		return tooLong
	}
	return string(text)
}
