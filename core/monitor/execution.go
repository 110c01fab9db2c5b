package monitor

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/attune-go/attune/core/schema"
	"github.com/attune-go/attune/core/secret"
	"github.com/attune-go/attune/core/store"
)

// ErrNotFound says that the requested thing does not exist.
var ErrNotFound = errors.New("not found")

// ReadExecution reads everything about one execution except why it waits, and of its documents at most so many
// characters each. A missing one is ErrNotFound.
func ReadExecution(ctx context.Context, tx *store.Tx, s Shape, id int64, most int32, d *ExecutionDetail) error {
	rows, err := ReadExecutions(ctx, tx, s, []int64{id})
	if err != nil {
		return err
	}
	if len(rows) == 0 {
		return ErrNotFound
	}
	d.Execution = rows[0]
	if err := d.rest(ctx, tx, most); err != nil {
		return err
	}
	if err := d.redact(ctx, tx); err != nil {
		return err
	}
	if err := d.timeline(ctx, tx, s); err != nil {
		return err
	}
	d.WorkQueue, err = LeaseLine(ctx, tx, s, id)
	return err
}

func (d *ExecutionDetail) rest(ctx context.Context, tx *store.Tx, most int32) error {
	type row struct {
		ExecutionDetail
		ChildCount int64
	}
	rows, err := store.Rows[row](ctx, tx, store.MonitorExecutionRest, most, d.ID)
	if err != nil {
		return fmt.Errorf("read the documents of execution %d: %w", d.ID, err)
	}
	for _, r := range rows {
		r.Reading, r.Execution, r.Children = d.Reading, d.Execution, upTo(r.ChildCount, childrenBound)
		*d = r.ExecutionDetail
	}
	return nil
}

// childrenBound is where the query stops counting children.
const childrenBound = 1_000

func (d *ExecutionDetail) timeline(ctx context.Context, tx *store.Tx, s Shape) error {
	if !s.history {
		return nil
	}
	rows, err := tx.MonitorTimeline(ctx, d.ID, d.Created)
	if err != nil {
		return fmt.Errorf("read the history of execution %d: %w", d.ID, err)
	}
	d.TimelineKnown = len(rows) > 0
	for _, r := range rows {
		step := Step{At: r.At, Status: r.Status, Changed: r.ChangedFields}
		if id, err := strconv.ParseInt(r.Worker, 10, 64); err == nil {
			step.Worker = &id
		}
		d.Timeline = append(d.Timeline, step)
	}
	return nil
}

// tooLong replaces a cut document that may hold secrets at unknown places.
const tooLong = `"(too long to be shown: it may hold secrets)"`

// redact hides values that the action marks as secret. A row can hold them in the clear if it is
// older than the mark, or if another program wrote it.
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

// redacted hides the secrets of a schema in one part of a document.
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
