package act

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/outbox"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/triage"
)

// The acts that switch rules.
const (
	EnableRule  Kind = "rule.enable"
	DisableRule Kind = "rule.disable"
)

var (
	_ = declare(EnableRule, Act{
		Label: "enable", Help: "its events fire it again",
		Command: Command{
			Group: "rule", Use: "enable REF", Takes: TakesRef, Subject: oneRule,
			Short: "Enable a rule: it fires for the next events of its trigger",
			Long: "Enable a rule: it fires for the next events of its trigger. Events that came while it was disabled\n" +
				"stay as they are. An apply sets it as its file says, if the file has the key enabled.",
			Example: "  attune-executor rule enable shop.deliver --reason 'the shop is back'",
			Reason:  "the reason, for the audit", Sends: true,
		},
		Route: Route{Path: "rules/{ref}/enable", Answer: RuleReceipt{}}, plan: (*Operator).planRule,
	})
	_ = declare(DisableRule, Act{
		Label: "disable", Help: "no event fires it until it is enabled",
		Command: Command{
			Group: "rule", Use: "disable REF", Takes: TakesRef, Subject: oneRule,
			Short: "Disable a rule: no event fires it until it is enabled",
			Long: "Disable a rule: no event fires it until it is enabled. Executions that it has started go on. An\n" +
				"apply sets it as its file says, if the file has the key enabled.",
			Example: "  attune-executor rule disable shop.deliver --reason 'it orders twice'",
			Reason:  "the reason, for the audit", Sends: true,
		},
		Route: Route{Path: "rules/{ref}/disable", Answer: RuleReceipt{}}, plan: (*Operator).planRule,
	})
)

const oneRule = "the ref of a rule, such as shop.deliver"

// RuleReceipt is the result of a switch of a rule.
type RuleReceipt struct {
	triage.Sent

	Rule    string `json:"rule"`
	Trigger string `json:"trigger"`
	Enabled bool   `json:"enabled"`
	Changed bool   `json:"changed"` // it was not so already
	Audit   int64  `json:"audit_id"`
}

// planRule plans to enable or disable a rule.
func (o *Operator) planRule(ctx context.Context, request Request, plan *Plan) error {
	ref, enable := request.Target.Ref, request.Kind == EnableRule
	word := request.Kind.Verb() + "d"
	plan.Title = capital(request.Kind.Verb()) + " rule " + ref
	plan.Run = does(func(ctx context.Context, reason string) (*RuleReceipt, error) {
		return o.switchRule(ctx, request.Kind, ref, reason)
	}, func(r *RuleReceipt) *Receipt {
		receipt := &Receipt{
			Text: fmt.Sprintf("Rule %s is %s.", ref, word), Unchanged: !r.Changed, Audits: audits(r.Audit),
			Sent: r.Sent,
		}
		switch {
		case !r.Changed:
			receipt.Text = fmt.Sprintf("Rule %s is %s already.", ref, word)
		case enable:
			receipt.Next = "it fires for the next events of " + r.Trigger
		default:
			receipt.Next = "events of " + r.Trigger + " do not fire it any more"
		}
		return receipt
	})
	if request.Direct {
		return nil
	}
	rule, err := triage.Read(ctx, o.triage, "plan an act on a rule",
		func(ctx context.Context, tx *store.Tx) (*monitor.Rule, error) { return monitor.ReadRule(ctx, tx, ref) })
	if err != nil {
		return err
	}
	plan.Lines.Add(Plain, "Events of %s fire it, with %s.", rule.TriggerRef, rule.ActionRef)
	if rule.Enabled == enable {
		return nothing("it is " + word + " already")
	}
	plan.Lines.Add(Note, "Executions that it has started go on.")
	return nil
}

// switchRule enables or disables a rule, and tells the sensors.
func (o *Operator) switchRule(ctx context.Context, kind Kind, ref, reason string) (*RuleReceipt, error) {
	var receipt RuleReceipt
	row, sent, err := o.triage.Change(ctx, string(kind), reason,
		func(ctx context.Context, tx *store.Tx) (*triage.Changed, error) {
			rule, err := tx.SwitchRule(ctx, ref, kind == EnableRule)
			switch {
			case errors.Is(err, sql.ErrNoRows):
				return nil, monitor.ErrNotFound
			case err != nil:
				return nil, fmt.Errorf("switch rule %s: %w", ref, err)
			}
			receipt = RuleReceipt{
				Rule: ref, Trigger: rule.TriggerRef, Enabled: kind == EnableRule, Changed: rule.Changed,
			}
			changed := &triage.Changed{
				Kind: "rule", Name: "rule " + ref, ID: rule.ID, Request: receipt, Unchanged: !rule.Changed,
			}
			if !rule.Changed {
				return changed, nil
			}
			now, err := tx.Now(ctx)
			if err != nil {
				return nil, fmt.Errorf("read the clock: %w", err)
			}
			var told outbox.Message
			if receipt.Enabled {
				told, err = outbox.Encode(message.TypeRuleEnabled, message.RuleEnabled{
					RuleID: rule.ID, RuleRef: ref, TriggerRef: rule.TriggerRef, TriggerParams: rule.TriggerParams,
				}, now, o.triage.Source())
			} else {
				told, err = outbox.Encode(message.TypeRuleDisabled, message.RuleDisabled{
					RuleID: rule.ID, RuleRef: ref, TriggerRef: rule.TriggerRef,
				}, now, o.triage.Source())
			}
			changed.Messages = []outbox.Message{told}
			return changed, err
		})
	receipt.Audit, receipt.Sent = row, sent
	if err != nil {
		return nil, err
	}
	return &receipt, nil
}
