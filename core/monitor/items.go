package monitor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/core/placement"
	"github.com/attune-go/attune/core/store"
)

// Item is the common part of policies, actions, triggers and packs.
type Item struct {
	ID          int64  `json:"id"`
	Ref         string `json:"ref"`
	PackRef     string `json:"pack_ref,omitempty"` // empty for a global policy
	Label       string `json:"label"`
	Description string `json:"description,omitempty"`
	// File is where `apply` last read it from, as FILE:LINE:COLUMN, while operator_audit keeps that;
	// empty if another program wrote it.
	File    string    `json:"file,omitempty"`
	Adhoc   bool      `json:"is_adhoc,omitempty"` // made by hand, not from a file
	Created time.Time `json:"created"`
	Updated time.Time `json:"updated"`
}

func (i Item) ref() string { return i.Ref }

// ItemPage is one page of items by ref.
type ItemPage[T any] struct {
	Reading
	List []T `json:"list"`
	// Next is the cursor of the next page; empty at the end.
	Next string `json:"next,omitempty"`
}

// PolicyItem is a policy.
type PolicyItem struct {
	Item
	// Scope is action, pack or global.
	Scope     string `json:"scope"`
	ActionRef string `json:"action_ref,omitempty"`
	Kind      string `json:"kind"`
	Threshold int64  `json:"threshold"`
	Method    string `json:"method"`
	// Limit is the limit in words.
	Limit string `json:"limit"`
	// NewerRef is the newer concurrency policy of the same scope that replaces this one, if any.
	NewerRef            string   `json:"superseded_by,omitempty"`
	WindowSeconds       int64    `json:"window_seconds,omitempty"`
	Burst               int64    `json:"burst,omitempty"`
	Parameters          []string `json:"parameters,omitempty"`
	MaxQueueLength      int64    `json:"max_queue_length,omitempty"`
	QueueTimeoutSeconds int64    `json:"queue_timeout_seconds,omitempty"`
	RetryPlace          string   `json:"retry_place,omitempty"`
	AdaptiveMin         int64    `json:"adaptive_min,omitempty"`
	AdaptiveLatencyMS   int64    `json:"adaptive_latency_ms,omitempty"`
	Tags                []string `json:"tags,omitempty"`
}

// PolicyDetail is a policy with the queues that it limits.
type PolicyDetail struct {
	Reading
	PolicyItem
	// Queues are the queues in use, the busiest first. Scopes are the counters of a shared limit,
	// one for each group.
	Queues     []Queue `json:"queues"`
	MoreQueues bool    `json:"more_queues,omitempty"`
	Scopes     []Scope `json:"scopes,omitempty"`
	MoreScopes bool    `json:"more_scopes,omitempty"`
}

// ActionItem is an action.
type ActionItem struct {
	Item
	Runtime     string `json:"runtime,omitempty"`
	WorkflowRef string `json:"workflow_ref,omitempty"` // if it runs a workflow
	// Threshold is the limit of the action's own concurrency policy; 0 without one.
	Threshold int64 `json:"threshold,omitempty"`
}

// RuleLink is a rule with its trigger and action.
type RuleLink struct {
	Ref        string `json:"ref"`
	TriggerRef string `json:"trigger_ref"`
	ActionRef  string `json:"action_ref"`
	Enabled    bool   `json:"enabled"`
}

// ActionDetail is everything about one action.
type ActionDetail struct {
	Reading
	ActionItem
	EntryPoint              string          `json:"entry_point,omitempty"`
	ParamSchema             json.RawMessage `json:"param_schema"`
	OutSchema               json.RawMessage `json:"out_schema"`
	ParameterDelivery       string          `json:"parameter_delivery"`
	ParameterFormat         string          `json:"parameter_format"`
	OutputFormat            string          `json:"output_format"`
	TimeoutSeconds          int64           `json:"timeout_seconds,omitempty"`
	ScheduledTimeoutSeconds int64           `json:"scheduled_timeout_seconds,omitempty"`
	MaxRetries              int64           `json:"max_retries"`
	placement.Spec          `db:"-"`
	// Rules and Workflows use the action.
	Rules     []RuleLink `json:"rules"`
	Workflows []string   `json:"workflows"`
	// Policies limit its executions.
	Policies []PolicyLine `json:"policies"`
	// Holds sums up its queues; nil where the schema records none.
	Holds *ActionTotals `json:"queues"`
}

// TriggerItem is a trigger.
type TriggerItem struct {
	Item
	Enabled bool `json:"enabled"`
	Rules   int  `json:"rule_count"`
}

// TriggerDetail is everything about one trigger.
type TriggerDetail struct {
	Reading
	TriggerItem
	SensorRef   string          `json:"sensor_ref,omitempty"`
	Webhook     bool            `json:"webhook_enabled"`
	ParamSchema json.RawMessage `json:"param_schema"`
	OutSchema   json.RawMessage `json:"out_schema"`
	Rules       []RuleLink      `json:"rules" db:"-"`
}

// PackItem is a pack with the number of its items.
type PackItem struct {
	Item
	Version  string `json:"version"`
	Actions  int    `json:"action_count"`
	Triggers int    `json:"trigger_count"`
	Rules    int    `json:"rule_count"`
	Policies int    `json:"policy_count"`
}

// PackDetail is everything about one pack except the values of its configuration, which may be
// secret.
type PackDetail struct {
	Reading
	PackItem
	Tags         []string        `json:"tags"`
	Standard     bool            `json:"is_standard"`
	Dependencies []string        `json:"dependencies"`
	ConfSchema   json.RawMessage `json:"conf_schema"`
	Actions      []ActionItem    `json:"actions"  db:"-"`
	Triggers     []TriggerItem   `json:"triggers" db:"-"`
	Rules        []RuleLink      `json:"rules"    db:"-"`
	Policies     []PolicyItem    `json:"policies" db:"-"`
}

const (
	pageOfItems = 200
	// boundOfLinks bounds the rules and workflows of one item.
	boundOfLinks = 200
	// policyQueues bounds the queues and counters of one policy.
	policyQueues = 20
)

// The rows of items have the fields of their pages.
type (
	policyRow struct {
		PolicyItem
		ActionID, PackID int64
	}
	actionRow struct {
		ActionDetail
		PackID    int64
		Placement []byte
	}
)

// readItems reads one item by ref, or a page behind a cursor, of all packs or of one.
func readItems[R any](ctx context.Context, tx *store.Tx, query, ref, pack, after string) ([]R, error) {
	return store.Rows[R](ctx, tx, query, after, ref, pack, pageOfItems)
}

func listItems[R any, T interface{ ref() string }](
	ctx context.Context, m *Monitor, what, query, pack, cursor string, one func(R) T,
) (*ItemPage[T], error) {
	page := &ItemPage[T]{}
	err := m.Read(ctx, what, &page.Reading, func(ctx context.Context, tx *store.Tx, s Shape) error {
		if !s.Ours {
			return ErrUnmigrated
		}
		rows, err := readItems[R](ctx, tx, query, "", pack, cursor)
		if err != nil {
			return fmt.Errorf("read a page of %s: %w", what, err)
		}
		page.List, page.Next = each(rows, one), ""
		if len(rows) == pageOfItems {
			page.Next = page.List[len(rows)-1].ref()
		}
		return nil
	})
	return page, err
}

// showItem reads one item and its parts; ErrNotFound if there is none.
func showItem[R any](
	ctx context.Context, m *Monitor, what, ref string, reading *Reading, query string,
	rest func(ctx context.Context, tx *store.Tx, row R) error,
) error {
	return m.Read(ctx, what+" "+ref, reading, func(ctx context.Context, tx *store.Tx, s Shape) error {
		if !s.Ours {
			return ErrUnmigrated
		}
		if ref == "" {
			return ErrNotFound
		}
		rows, err := readItems[R](ctx, tx, query, ref, "", "")
		if err != nil {
			return fmt.Errorf("read %s %s: %w", what, ref, err)
		}
		if len(rows) == 0 {
			return ErrNotFound
		}
		return rest(ctx, tx, rows[0])
	})
}

// Policies reads one page of policies by ref, with a pack only those of the pack and its actions.
// ErrUnmigrated says that this engine has not migrated the database.
func (m *Monitor) Policies(ctx context.Context, pack, cursor string) (*ItemPage[PolicyItem], error) {
	return listItems(ctx, m, "policies", store.ViewPolicyItems, pack, cursor, policyItem)
}

// Actions reads one page of actions, as Policies does.
func (m *Monitor) Actions(ctx context.Context, pack, cursor string) (*ItemPage[ActionItem], error) {
	return listItems(ctx, m, "actions", store.ViewActionItems, pack, cursor, actionItem)
}

// Triggers reads one page of triggers, as Policies does.
func (m *Monitor) Triggers(ctx context.Context, pack, cursor string) (*ItemPage[TriggerItem], error) {
	return listItems(ctx, m, "triggers", store.ViewTriggerItems, pack, cursor, triggerItem)
}

// Packs reads one page of packs, as Policies does.
func (m *Monitor) Packs(ctx context.Context, pack, cursor string) (*ItemPage[PackItem], error) {
	return listItems(ctx, m, "packs", store.ViewPackItems, pack, cursor,
		func(r PackDetail) PackItem { return r.PackItem })
}

func actionItem(r actionRow) ActionItem { return r.ActionItem }

func triggerItem(r TriggerDetail) TriggerItem { return r.TriggerItem }

func policyItem(r policyRow) PolicyItem {
	p := r.PolicyItem
	p.Limit = PolicyLine{
		Kind: p.Kind, Threshold: p.Threshold, Window: time.Duration(p.WindowSeconds) * time.Second, Burst: p.Burst,
		Parameters: p.Parameters, Method: p.Method,
	}.Title()
	return p
}

// Policy reads one policy and its queues; ErrNotFound if there is none.
func (m *Monitor) Policy(ctx context.Context, ref string) (*PolicyDetail, error) {
	d := &PolicyDetail{}
	err := showItem(ctx, m, "policy", ref, &d.Reading, store.ViewPolicyItems,
		func(ctx context.Context, tx *store.Tx, r policyRow) error {
			d.PolicyItem = policyItem(r)
			ids, err := tx.ViewPolicyQueueIDs(ctx, r.ActionID, r.PackID, policyQueues+1)
			if err != nil {
				return fmt.Errorf("find the queues of policy %s: %w", ref, err)
			}
			d.MoreQueues = len(ids) > policyQueues
			if d.Queues, err = m.QueuesByID(ctx, tx, ids[:min(len(ids), policyQueues)]); err != nil {
				return err
			}
			if ids, err = tx.ViewPolicyScopeIDs(ctx, r.ID, policyQueues+1); err != nil {
				return fmt.Errorf("find the counters of policy %s: %w", ref, err)
			}
			d.MoreScopes = len(ids) > policyQueues
			d.Scopes, err = scopesByID(ctx, tx, ids[:min(len(ids), policyQueues)], d.At)
			return err
		})
	return d, err
}

// Action reads everything about one action; ErrNotFound if there is none.
func (m *Monitor) Action(ctx context.Context, ref string) (*ActionDetail, error) {
	d := &ActionDetail{}
	err := showItem(ctx, m, "action", ref, &d.Reading, store.ViewActionItems,
		func(ctx context.Context, tx *store.Tx, r actionRow) error {
			p, err := ReadPolicies(ctx, tx, r.ID, r.PackID, r.ParamSchema)
			if err != nil {
				return err
			}
			r.Reading = d.Reading
			*d = r.ActionDetail
			d.Spec = placement.ReadSpec(r.Placement)
			d.ParamSchema, d.OutSchema = publicSchema(d.ParamSchema), publicSchema(d.OutSchema)
			if d.Policies, err = p.Lines(ctx, tx, nil, nil, d.At); err != nil {
				return err
			}
			totals, err := tx.ViewActionTotals(ctx, r.ID)
			if err != nil {
				return fmt.Errorf("sum up the queues of action %s: %w", ref, err)
			}
			d.Holds = new(ActionTotals(totals))
			if d.Workflows, err = tx.ViewWorkflowsUsing(ctx, ref, boundOfLinks); err != nil {
				return fmt.Errorf("find the workflows that use action %s: %w", ref, err)
			}
			d.Rules, err = rulesAround(ctx, tx, store.ViewRulesAroundParams{Action: ref})
			return err
		})
	return d, err
}

func rulesAround(ctx context.Context, tx *store.Tx, of store.ViewRulesAroundParams) ([]RuleLink, error) {
	of.Bound = boundOfLinks
	rows, err := tx.ViewRulesAround(ctx, of)
	if err != nil {
		return nil, fmt.Errorf("list the rules of %s: %w", of.Action+of.Trigger+of.Pack, err)
	}
	return each(rows, func(r store.ViewRulesAroundRow) RuleLink { return RuleLink(r) }), nil
}

// Trigger reads everything about one trigger; ErrNotFound if there is none.
func (m *Monitor) Trigger(ctx context.Context, ref string) (*TriggerDetail, error) {
	d := &TriggerDetail{}
	err := showItem(ctx, m, "trigger", ref, &d.Reading, store.ViewTriggerItems,
		func(ctx context.Context, tx *store.Tx, r TriggerDetail) (err error) {
			r.Reading = d.Reading
			*d = r
			d.ParamSchema, d.OutSchema = publicSchema(d.ParamSchema), publicSchema(d.OutSchema)
			d.Rules, err = rulesAround(ctx, tx, store.ViewRulesAroundParams{Trigger: ref})
			return err
		})
	return d, err
}

// Pack reads everything about one pack, with the first 200 of each kind of item; ErrNotFound if
// there is none.
func (m *Monitor) Pack(ctx context.Context, ref string) (*PackDetail, error) {
	d := &PackDetail{}
	err := showItem(ctx, m, "pack", ref, &d.Reading, store.ViewPackItems,
		func(ctx context.Context, tx *store.Tx, r PackDetail) error {
			r.Reading = d.Reading
			*d = r
			d.ConfSchema = publicSchema(d.ConfSchema)
			actions, ofActions := readItems[actionRow](ctx, tx, store.ViewActionItems, "", ref, "")
			triggers, ofTriggers := readItems[TriggerDetail](ctx, tx, store.ViewTriggerItems, "", ref, "")
			policies, ofPolicies := readItems[policyRow](ctx, tx, store.ViewPolicyItems, "", ref, "")
			err := errors.Join(ofActions, ofTriggers, ofPolicies)
			if err != nil {
				return fmt.Errorf("list what pack %s holds: %w", ref, err)
			}
			d.Actions, d.Triggers, d.Policies = each(actions, actionItem), each(triggers, triggerItem),
				each(policies, policyItem)
			d.Rules, err = rulesAround(ctx, tx, store.ViewRulesAroundParams{Pack: ref})
			return err
		})
	return d, err
}

// publicSchema hides the defaults of secrets.
func publicSchema(raw []byte) json.RawMessage {
	if !bytes.Contains(raw, []byte(`"secret"`)) {
		return raw
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var document any
	if decoder.Decode(&document) != nil {
		return json.RawMessage(tooLong)
	}
	hideDefaults(document)
	text, err := json.Marshal(document)
	if err != nil {
		return json.RawMessage(tooLong)
	}
	return text
}

func hideDefaults(part any) {
	switch part := part.(type) {
	case []any:
		for _, one := range part {
			hideDefaults(one)
		}
	case map[string]any:
		if _, given := part["default"]; given && part["secret"] == true {
			part["default"] = "(secret)"
		}
		for _, one := range part {
			hideDefaults(one)
		}
	}
}

// hintRefs bounds the search for the nearest ref.
const hintRefs = 5_000

// UnknownActionError says that no action has the ref.
type UnknownActionError struct {
	Ref     string
	Nearest string // empty if none is similar
}

// Error names the ref and the nearest one.
func (e *UnknownActionError) Error() string {
	text := "there is no action " + e.Ref
	if e.Nearest != "" {
		text += "; the nearest is " + e.Nearest
	}
	return text
}

// ErrUnmigrated says that the database does not record what was requested.
var ErrUnmigrated = errors.New(
	"this database has not been migrated by this engine, which alone records that: run `attune-executor migrate up`")

// FindAction finds an action by ref or id. One that does not exist is an *UnknownActionError.
func FindAction(ctx context.Context, tx *store.Tx, ref string, id int64) (store.ViewActionRow, error) {
	rows, err := tx.ViewAction(ctx, ref, id)
	if err != nil {
		return store.ViewActionRow{}, fmt.Errorf("read action %s: %w", ref, err)
	}
	if len(rows) > 0 {
		return rows[0], nil
	}
	refs, err := tx.ActionRefs(ctx, hintRefs)
	if err != nil {
		refs = nil // a failed hint is no second error
	}
	return store.ViewActionRow{}, &UnknownActionError{Ref: ref, Nearest: phrase.Nearest(ref, refs)}
}

// QueueStats is the row of queue_stats of an action.
type QueueStats struct {
	ActionID    int64  `json:"action_id"`
	ActionRef   string `json:"action_ref"`
	QueueLength int64  `json:"queue_length"`
	ActiveCount int64  `json:"active_count"`
	// MaxConcurrent is nil without a limit, which the table writes as admission.Unlimited.
	MaxConcurrent    *int64     `json:"max_concurrent"`
	OldestEnqueuedAt *time.Time `json:"oldest_enqueued_at"`
	TotalEnqueued    int64      `json:"total_enqueued"`
	TotalCompleted   int64      `json:"total_completed"`
	LastUpdated      time.Time  `json:"last_updated"`
}

// QueueStats reads the published statistics of an action. An unknown action is an
// *UnknownActionError. One without any execution so far is ErrNotFound.
func (m *Monitor) QueueStats(ctx context.Context, ref string) (*QueueStats, error) {
	var out *QueueStats
	err := m.Read(ctx, "queue statistics of "+ref, &Reading{}, func(ctx context.Context, tx *store.Tx, _ Shape) error {
		a, err := FindAction(ctx, tx, ref, 0)
		if err != nil {
			return err
		}
		rows, err := store.Rows[QueueStats](ctx, tx, store.ViewQueueStats, a.ID)
		if err != nil {
			return fmt.Errorf("read the queue statistics of action %s: %w", ref, err)
		}
		if len(rows) == 0 {
			return fmt.Errorf("queue statistics of action %s: %w", ref, ErrNotFound)
		}
		out = &rows[0]
		return nil
	})
	return out, err
}
