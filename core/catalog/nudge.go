package catalog

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/attune-go/attune/core/admission"
	"github.com/attune-go/attune/core/outbox"
	"github.com/attune-go/attune/core/store"
)

// maxNudges bounds the queues that an application nudges; the engine's sweeps find the others. It
// also bounds the messages of one outbox row.
const maxNudges = 300

// scopes are the actions and packs of changed policies, before and after.
type scopes struct {
	actions, packs map[int64]bool
	everything     bool
}

func newScopes() scopes { return scopes{actions: map[int64]bool{}, packs: map[int64]bool{}} }

func (s *scopes) add(action, packID *int64) {
	switch {
	case action != nil:
		s.actions[*action] = true
	case packID != nil:
		s.packs[*packID] = true
	default:
		s.everything = true
	}
}

func (s *scopes) empty() bool { return len(s.actions)+len(s.packs) == 0 && !s.everything }

// nudge requests the heads of the affected queues again: the batches that take the requests fill
// the queues by the new rules.
func (c *Catalog) nudge(ctx context.Context, tx *store.Tx, s scopes) (int, error) {
	if s.empty() {
		return 0, nil
	}
	heads, err := tx.FindWaitingHeads(ctx, store.FindWaitingHeadsParams{
		Actions: slices.Sorted(maps.Keys(s.actions)), Packs: slices.Sorted(maps.Keys(s.packs)),
		Everything: s.everything, Page: maxNudges,
	})
	if err != nil {
		return 0, fmt.Errorf("find the queues under the policies: %w", err)
	}
	if len(heads) == 0 {
		return 0, nil
	}
	messages := make([]outbox.Message, len(heads))
	for i, head := range heads {
		messages[i], err = admission.NudgeMessage(admission.Head{
			Queue: head.StateID, ExecutionID: head.ExecutionID, ActionID: &head.ActionID, ActionRef: head.ActionRef,
			Parent: head.Parent, Enforcement: head.Enforcement, Config: head.Config,
		}, head.At, source)
		if err != nil {
			return 0, err
		}
	}
	if _, err := outbox.Send(ctx, tx, c.relay, messages); err != nil {
		return 0, err
	}
	return len(messages), nil
}
