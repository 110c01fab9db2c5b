package eventing

import (
	"cmp"
	"context"
	"fmt"

	"github.com/attune-go/attune/core/rule"
	"github.com/attune-go/attune/core/secret"
	"github.com/attune-go/attune/core/store"
)

// event is one event of a batch.
type event struct {
	row      store.ReadEventsRow
	event    rule.Event
	err      error // its payload cannot be read
	rules    int   // with how many it was compared
	matched  int
	failed   int      // rules whose expression could not be evaluated
	failures []string // the reasons of the first of them
	fires    []*fire
}

func newEvent(row store.ReadEventsRow) *event {
	e := &event{row: row}
	e.event, e.err = rule.NewEvent(row.ID, row.TriggerRef, row.Payload, row.Created)
	return e
}

// candidate is one rule, read once a batch.
type candidate struct {
	row        store.FindRulesRow
	conditions *rule.Conditions // nil if they cannot be read
	params     *rule.Params
	unreadable error // why its conditions cannot be read
	unfillable error // why its parameters cannot be
	unsure     int   // for how many events its expression could not be evaluated
	wrong      int   // for how many it could not be carried out
	why        error // the last reason of either
}

// fire is a rule that an event fires.
type fire struct {
	event   *event
	rule    *candidate
	err     error // why it cannot be carried out
	config  []byte
	note    string // what was odd about it
	secrets []secret.Sealed
}

func (f *fire) mode() string {
	if f.rule.conditions == nil {
		return rule.All
	}
	return f.rule.conditions.Mode()
}

func newCandidate(row store.FindRulesRow) *candidate {
	c := &candidate{row: row}
	c.conditions, c.unreadable = rule.ParseConditions(row.Ref, row.Conditions)
	c.params, c.unfillable = rule.ParseParams(row.Ref, row.ActionParams)
	return c
}

// rules are the candidates of a batch by all that leads to them.
type rules struct {
	byID      map[int64]*candidate
	byRef     map[string]*candidate
	byTrigger map[string][]*candidate
}

// of lists the rules that an event is compared with. One that is made for a rule
// never fires another, also when that rule is gone.
func (r rules) of(e *event) []*candidate {
	var one *candidate
	switch {
	case e.row.Rule != nil:
		one = r.byID[*e.row.Rule]
	case e.row.RuleRef != "":
		one = r.byRef[e.row.RuleRef]
	default:
		return r.byTrigger[e.row.TriggerRef]
	}
	if one == nil {
		return nil
	}
	return []*candidate{one}
}

func (b *batch) find(ctx context.Context) (rules, error) {
	var triggers, refs []string
	var ids []int64
	seen := map[string]bool{}
	for _, e := range b.events {
		switch {
		case e.row.Rule != nil:
			ids = append(ids, *e.row.Rule)
		case e.row.RuleRef != "":
			refs = append(refs, e.row.RuleRef)
		case !seen[e.row.TriggerRef]:
			seen[e.row.TriggerRef] = true
			triggers = append(triggers, e.row.TriggerRef)
		}
	}
	rows, err := b.tx.FindRules(ctx, triggers, ids, refs)
	if err != nil {
		return rules{}, fmt.Errorf("find the rules of %d triggers: %w", len(triggers), err)
	}
	found := rules{map[int64]*candidate{}, map[string]*candidate{}, map[string][]*candidate{}}
	for _, row := range rows {
		c := newCandidate(row)
		b.rules = append(b.rules, c)
		found.byID[row.ID], found.byRef[row.Ref] = c, c
		found.byTrigger[row.TriggerRef] = append(found.byTrigger[row.TriggerRef], c)
	}
	return found, nil
}

// judge compares every event with its rules.
func (b *batch) judge(ctx context.Context) error {
	found, err := b.find(ctx)
	if err != nil {
		return err
	}
	for _, e := range b.events {
		for _, c := range found.of(e) {
			if e.row.BeforeMatching && c.row.Created.After(e.row.Created) {
				continue // it came after the event, which was not matched in time
			}
			e.rules++
			b.compare(e, c)
		}
	}
	return nil
}

// maxFailures bounds the reasons that are kept of an event.
const maxFailures = 20

// compare asks one rule. One that cannot be read fires, so that its failure is
// seen where people look for what it did.
func (b *batch) compare(e *event, c *candidate) {
	if err := cmp.Or(c.unreadable, e.err); err != nil {
		b.fire(&fire{event: e, rule: c, err: err})
		return
	}
	verdict := c.conditions.Match(e.event)
	switch {
	case verdict.Matched && int(e.row.Depth) >= b.cfg.MaxDepth:
		b.fire(&fire{event: e, rule: c, err: fmt.Errorf("%d rules led to this event, which execution %d emitted, and %d is the most"+
			" (executor.rule_depth): does the action of a rule emit the rule's own trigger?", e.row.Depth, e.row.Origin, b.cfg.MaxDepth)})
	case verdict.Matched:
		b.fire(&fire{event: e, rule: c, err: c.unfillable})
	case verdict.Err != nil:
		if e.failed++; len(e.failures) < maxFailures {
			e.failures = append(e.failures, reason(verdict.Err))
		}
		c.unsure, c.why = c.unsure+1, verdict.Err
	}
}

func (b *batch) fire(f *fire) {
	f.event.matched++
	f.event.fires = append(f.event.fires, f)
	b.fires = append(b.fires, f)
}
