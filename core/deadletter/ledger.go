package deadletter

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/attune-go/attune/core/crashpoint"
	"github.com/attune-go/attune/core/store"
)

// storeTimeout bounds one transaction, so that a stalled connection is given up.
const storeTimeout = 30 * time.Second

// store decides about dead letters from the current rows and stores them in one transaction, except
// dead letters for a batch. It leaves existing ledger rows unchanged.
func (h *Handler) store(ctx context.Context, deadLetters []*Message) (outcome, error) {
	var out outcome
	var stored []*Message
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	err := h.deps.Store.Once(ctx, "dead letters", func(ctx context.Context, tx *store.Tx) (err error) {
		out = outcome{}
		single, counted, err := group(ctx, tx, deadLetters)
		if err != nil {
			return err
		}
		stored, out.undecided, err = record(ctx, tx, single, func(l *Message) verdict {
			v := l.decide()
			if v.released {
				out.ended = append(out.ended, l.Execution)
			}
			return v
		})
		stored = append(stored, counted...)
		if err == nil && len(stored) > 0 {
			crashpoint.Reach("dead-letter:before-commit")
		}
		return err
	})
	if err != nil {
		return outcome{}, fmt.Errorf("store %d dead letters: %w", len(deadLetters), err)
	}
	for _, l := range stored {
		h.report(ctx, l)
	}
	return out, nil
}

// record writes the dead letters that are not in the ledger, with the verdict of decide, and
// returns them. It returns the ones that a batch must decide without writing them.
func record(
	ctx context.Context, tx *store.Tx, deadLetters []*Message, decide func(*Message) verdict,
) (written, undecided []*Message, err error) {
	known, err := known(ctx, tx, deadLetters)
	if err != nil {
		return nil, nil, err
	}
	if err := readSeen(ctx, tx, deadLetters); err != nil {
		return nil, nil, err
	}
	p := tx.Pipeline()
	var tried []*Message
	var rows []*store.Result[int64]
	for _, l := range deadLetters {
		if slices.Contains(known, l.fingerprint) && !l.separate() {
			continue
		}
		v := decide(l)
		if v.needsBatch {
			undecided = append(undecided, l)
			continue
		}
		l.decision, l.detail, l.tried = v.decision, v.detail, true
		tried = append(tried, l)
		rows = append(rows, store.Many[int64](p, store.RecordDeadLetter, l.columns(v)...))
		known = append(known, l.fingerprint)
	}
	if p.Len() == 0 {
		return nil, undecided, nil
	}
	if err := p.Send(ctx); err != nil {
		return nil, nil, err
	}
	for i, l := range tried {
		if ids := rows[i].Rows(); len(ids) == 1 { // none: another replica wrote it first
			l.row = ids[0]
			written = append(written, l)
		}
	}
	return written, undecided, nil
}

// separate gives a dead letter whose fingerprint is in the ledger one of its own, if the broker delivers it for the
// first time and it has no id: then it is another one with the same content. It reports whether it did.
func (l *Message) separate() bool {
	if l.delivery.MessageID != "" || l.delivery.Redelivered || l.batched || l.tried {
		return false
	}
	l.fingerprint += " " + uuid.NewString()
	return true
}

// known lists the fingerprints that are in the ledger.
func known(ctx context.Context, tx *store.Tx, deadLetters []*Message) ([]string, error) {
	prints := make([]string, len(deadLetters))
	for i, l := range deadLetters {
		prints[i] = l.fingerprint
	}
	known, err := tx.KnownDeadLetters(ctx, prints)
	if err != nil {
		return nil, fmt.Errorf("find dead letters in the ledger: %w", err)
	}
	return known, nil
}

// readSeen reads the executions and workers of dead letters.
func readSeen(ctx context.Context, tx *store.Tx, deadLetters []*Message) error {
	var ids, workers []int64
	for _, l := range deadLetters {
		l.seen = seen{}
		if l.Execution != 0 {
			ids = append(ids, l.Execution)
		}
		if l.worker != 0 {
			workers = append(workers, l.worker)
		}
	}
	executions := map[int64]*execution{}
	if len(ids) > 0 {
		rows, err := tx.ReadDeadLetterExecutions(ctx, ids)
		if err != nil {
			return fmt.Errorf("read the executions of dead letters: %w", err)
		}
		for _, row := range rows {
			e := execution(row)
			executions[row.ID] = &e
			if row.Worker != 0 {
				workers = append(workers, row.Worker)
			}
		}
	}
	about := map[int64]*store.ReadDeadLetterWorkersRow{}
	if len(workers) > 0 {
		rows, err := tx.ReadDeadLetterWorkers(ctx, workers)
		if err != nil {
			return fmt.Errorf("read the workers of dead letters: %w", err)
		}
		for i := range rows {
			about[rows[i].ID] = &rows[i]
		}
	}
	for _, l := range deadLetters {
		l.seen.execution = executions[l.Execution]
		worker := l.worker
		if worker == 0 && l.seen.execution != nil {
			worker = l.seen.execution.Worker
		}
		l.seen.worker = about[worker]
	}
	return nil
}
