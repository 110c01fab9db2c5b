package inquiry

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/attune-go/attune/core/secret"
	"github.com/attune-go/attune/core/store"
)

// Announced is an answer that another service has stored, as its message names it.
type Announced struct {
	Inquiry int64
	By      *int64 // identity, nil if unknown
}

// Responses settles the inquiries of InquiryResponded, which other services send after they have stored the answer. The
// row decides, not the message: settled inquiries and rows without an answer stay as they are.
type Responses struct {
	Store   *store.Store
	Relay   Relay // may be nil
	Metrics *Metrics
	// Source is the source_service of messages. Default "attune-executor".
	Source string
	// Keys seal the secrets of the answers. Without a key the answers stay as they are.
	Keys secret.Keyring
}

// Settle settles all in one transaction, and returns those of unknown inquiries.
func (r *Responses) Settle(ctx context.Context, all []Announced) (missing []int64, err error) {
	ids := make([]int64, 0, len(all))
	var named, identities []int64
	for _, h := range all {
		ids = append(ids, h.Inquiry)
		if h.By != nil {
			named, identities = append(named, h.Inquiry), append(identities, *h.By)
		}
	}
	err = r.Store.Once(ctx, "settle answered inquiries", func(ctx context.Context, tx *store.Tx) error {
		missing = slices.Clone(ids)
		rows, err := tx.InquiryExecutions(ctx, ids)
		if err != nil {
			return fmt.Errorf("find the executions of %d inquiries: %w", len(ids), err)
		}
		executions := make([]int64, len(rows))
		for i, row := range rows {
			executions[i] = row.Execution
			missing = slices.DeleteFunc(missing, func(id int64) bool { return id == row.ID })
		}
		if err := lockExecutions(ctx, tx, executions); err != nil {
			return err
		}
		if len(named) > 0 {
			if err := tx.NoteResponders(ctx, named, identities); err != nil {
				return fmt.Errorf("record the responders of %d inquiries: %w", len(named), err)
			}
		}
		done, err := settle(ctx, tx, ids, cmp.Or(r.Source, "attune-executor"), r.Keys)
		if err != nil {
			return err
		}
		return publish(ctx, tx, r.Relay, done.messages)
	})
	if err != nil {
		return nil, err
	}
	r.Metrics.responses.Add(float64(len(ids) - len(missing)))
	return missing, nil
}
