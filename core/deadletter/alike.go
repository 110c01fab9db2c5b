package deadletter

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/attune-go/attune/core/store"
)

// noRow ends the reason of a message about a row that does not exist.
const noRow = "does not exist"

// NoRow is the reason for giving up a message about a row that does not exist.
func NoRow(what string, id int64) error { return fmt.Errorf("%s %d %s", what, id, noRow) }

// Absent writes dead letters about rows that do not exist into the ledger, in one transaction. It
// returns those whose rows exist by now, and leaves them alone. The caller acknowledges the others.
// After an error none is written.
func (h *Handler) Absent(ctx context.Context, deadLetters []*Message) (exist []*Message, err error) {
	var stored []*Message
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	err = h.deps.Store.Tx(ctx, "absent rows", func(ctx context.Context, tx *store.Tx) error {
		single, counted, err := group(ctx, tx, deadLetters)
		if err != nil {
			return err
		}
		var first []*Message
		exist = nil
		for _, l := range single {
			if l.alike() == "" {
				exist = append(exist, l)
			} else {
				first = append(first, l)
			}
		}
		written, undecided, err := record(ctx, tx, first, (*Message).decide)
		stored, exist = slices.Concat(counted, written), append(exist, undecided...)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("count %d messages about rows that do not exist: %w", len(deadLetters), err)
	}
	for _, l := range stored {
		h.deps.Metrics.decided(l, time.Now())
	}
	return exist, nil
}

// alike is the group of a dead letter about a row that does not exist; empty for all other dead
// letters.
func (l *Message) alike() string {
	if !strings.HasSuffix(l.said, noRow) || l.seen.execution != nil {
		return ""
	}
	return "alike " + clean(strings.Join([]string{l.queue, l.reason, l.typed()}, " "))
}

// group counts dead letters about missing rows in one ledger row for each queue and type. It
// returns the other dead letters and the counted ones. The first of a kind is returned, to become
// that ledger row. A redelivered dead letter counts again.
func group(ctx context.Context, tx *store.Tx, deadLetters []*Message) (others, counted []*Message, err error) {
	candidates := 0
	for _, l := range deadLetters {
		if strings.HasSuffix(l.said, noRow) {
			candidates++
		}
	}
	if candidates == 0 {
		return deadLetters, nil, nil
	}
	if err := readSeen(ctx, tx, deadLetters); err != nil {
		return nil, nil, err
	}
	groups := map[string][]*Message{}
	for _, l := range deadLetters {
		if kind := l.alike(); kind != "" {
			groups[kind] = append(groups[kind], l)
		} else {
			others = append(others, l)
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(groups)) {
		alike := groups[kind]
		if err := tx.LockAlikeDeadLetters(ctx, kind); err != nil {
			return nil, nil, fmt.Errorf("lock the dead letters %q: %w", kind, err)
		}
		executions := make([]int64, len(alike))
		for i, l := range alike {
			executions[i] = l.Execution
		}
		n, err := tx.CountAlikeDeadLetters(ctx, int64(len(alike)), executions, kind)
		if err != nil {
			return nil, nil, fmt.Errorf("count %d dead letters %q: %w", len(alike), kind, err)
		}
		if n > 0 {
			counted = append(counted, alike...)
			continue
		}
		first := alike[0]
		first.fingerprint, first.others = kind, executions[1:]
		others, counted = append(others, first), append(counted, alike[1:]...)
	}
	for _, l := range counted {
		v := l.decide()
		l.decision, l.detail = v.decision, v.detail
	}
	return others, counted, nil
}
