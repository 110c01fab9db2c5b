package triage

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/user"
	"time"

	"github.com/attune-go/attune/core/admission"
	"github.com/attune-go/attune/core/crashpoint"
	"github.com/attune-go/attune/core/outbox"
	"github.com/attune-go/attune/core/secret"
	"github.com/attune-go/attune/core/store"
)

// TargetError is the reason why a target does not exist.
type TargetError = admission.TargetError

// Kinds of target errors, for errors.Is.
var (
	ErrNoAction = admission.ErrNoAction // no action has the ref
	ErrNoQueue  = admission.ErrNoQueue  // the action has no such queue
	ErrGroup    = admission.ErrGroup    // a text is not a group of parameter values
)

// ErrLimit reports that a limit is out of range.
var ErrLimit = fmt.Errorf("a limit is a number from 1 to %d", admission.Unlimited-1)

// Config configures a Triage.
type Config struct {
	// Actor is the operator's name in the audit. Default "unknown".
	Actor string
	// Source is the operator's program in the audit. Default "attune-executor".
	Source string
	// HeartbeatStaleAfter is the age from which a heartbeat is stale. Default 90 s.
	HeartbeatStaleAfter time.Duration
	// ReportGrace is how long an ended execution may hold its slot before a repair releases it,
	// because its report may still arrive. Default 10 s.
	ReportGrace time.Duration
	// WithoutStats leaves queue_stats unchanged.
	WithoutStats bool
	// Pace is the time between the beginnings of two steps of a run. Default 50 ms: 20 a second.
	Pace time.Duration
}

func (c Config) withDefaults() Config {
	c.Actor, c.Source = cmp.Or(c.Actor, "unknown"), cmp.Or(c.Source, "attune-executor")
	c.HeartbeatStaleAfter = cmp.Or(max(c.HeartbeatStaleAfter, 0), 90*time.Second)
	c.ReportGrace = cmp.Or(max(c.ReportGrace, 0), 10*time.Second)
	c.Pace = cmp.Or(max(c.Pace, 0), DefaultPace)
	return c
}

// LocalActor returns the account and the host of the program for audits, such as ada@ops-1. It omits
// an unknown host, and returns "unknown" for an unknown account.
func LocalActor() string {
	name := "unknown"
	if account, err := user.Current(); err == nil {
		name = account.Username
	}
	host, err := os.Hostname()
	if err != nil {
		return name
	}
	return name + "@" + host
}

// Relay publishes committed messages; *outbox.Relay implements it.
type Relay = outbox.Publishing

// Triage acts for one operator. It is safe for concurrent use.
type Triage struct {
	cfg   Config
	store *store.Store
	relay Relay
	wires WorkerQueues   // nil: actions that need the broker are refused
	keys  secret.Keyring // without a key, answers with secrets are refused
}

// New makes a Triage. Without a relay the sweep of a running engine publishes the messages, within
// seconds.
func New(cfg Config, st *store.Store, relay Relay) *Triage {
	return &Triage{cfg: cfg.withDefaults(), store: st, relay: relay}
}

// Publishes reports whether it publishes its messages. Otherwise a running engine does.
func (t *Triage) Publishes() bool { return t.relay != nil }

// As returns the same Triage for another operator, such as the client of a request.
func (t *Triage) As(actor string) *Triage {
	other := *t
	other.cfg.Actor = actor
	return &other
}

// Target names the queues of an action.
type Target struct {
	Action string `json:"action"`
	// Group is the group's key, a JSON object of paths and values; empty for all queues of the
	// action.
	Group string `json:"group,omitempty"`
}

// String names the target for people.
func (t Target) String() string {
	if t.Group == "" {
		return t.Action
	}
	return t.Action + " " + t.Group
}

func (t *Triage) target(ctx context.Context, queries *store.Queries, target Target) (admission.Target, error) {
	return admission.FindTarget(ctx, queries, target.Action, target.Group)
}

// Sent counts the messages of an action.
type Sent struct {
	Messages int     `json:"messages"`
	Rows     []int64 `json:"-"` // of the outbox
}

// maxMessages bounds the messages of one outbox row.
const maxMessages = 500

// send appends messages to the outbox and passes them to the relay after the commit.
func (t *Triage) send(ctx context.Context, tx *store.Tx, messages []outbox.Message, sent *Sent) error {
	for begin := 0; begin < len(messages); begin += maxMessages {
		part := messages[begin:min(begin+maxMessages, len(messages))]
		row, err := outbox.Send(ctx, tx, t.relay, part)
		if err != nil {
			return err
		}
		sent.Messages += len(part)
		sent.Rows = append(sent.Rows, row)
	}
	return nil
}

// nudge sends the requests of the heads of queues again, so that a batch fills the queues.
func (t *Triage) nudge(ctx context.Context, tx *store.Tx, heads []admission.Head, sent *Sent) error {
	if len(heads) == 0 {
		return nil
	}
	now, err := tx.Now(ctx)
	if err != nil {
		return fmt.Errorf("read the clock: %w", err)
	}
	messages := make([]outbox.Message, len(heads))
	for i, head := range heads {
		if messages[i], err = admission.NudgeMessage(head, now, t.cfg.Source); err != nil {
			return err
		}
	}
	return t.send(ctx, tx, messages, sent)
}

// audit is the row of one action in operator_audit.
type audit struct {
	action  string // queue.pause and so on
	of      subject
	reason  string
	request any // the order and its progress
	outcome string
	failure string
}

// subject is the target of an action; the id is 0 for several things or none.
type subject struct {
	kind, name string
	id         int64
}

func queuesOf(target admission.Target) subject {
	if target.ActionID == 0 {
		return subject{kind: "queues", name: "all"}
	}
	return subject{kind: "action", id: target.ActionID, name: target.String()}
}

// The outcomes of an action.
const (
	outcomeDone        = "done"
	outcomeUnchanged   = "unchanged" // no change was needed
	outcomeNothing     = "nothing to do"
	outcomeRunning     = "running"     // more pages follow; it stays so after a crash
	outcomeInterrupted = "interrupted" // the operator stopped it after some pages
	outcomeFailed      = "failed"      // an error ended it after some pages
)

// record writes the audit of an action: a new row, whose id it sets, or with an id the progress of the action into
// its row.
func (t *Triage) record(ctx context.Context, queries *store.Queries, id *int64, a audit) error {
	request, err := json.Marshal(a.request)
	if err != nil {
		return fmt.Errorf("encode the audit of %s: %w", a.action, err)
	}
	if *id != 0 {
		err = queries.UpdateAudit(ctx,
			store.UpdateAuditParams{ID: *id, Request: request, Outcome: a.outcome, Error: a.failure})
	} else {
		row := store.InsertAuditParams{
			Actor: t.cfg.Actor, Source: t.cfg.Source, Action: a.action, TargetType: a.of.kind, Target: a.of.name,
			Reason: a.reason, Request: request, Outcome: a.outcome, Error: a.failure,
		}
		if a.of.id != 0 {
			row.TargetID = &a.of.id
		}
		*id, err = queries.InsertAudit(ctx, row)
	}
	if err != nil {
		return fmt.Errorf("audit %s: %w", a.action, err)
	}
	return nil
}

// txFunc runs in a transaction.
type txFunc = func(ctx context.Context, tx *store.Tx) error

// act runs the one transaction of an action, with its audit and its messages. A refusal is returned without the
// context that the transaction added.
func (t *Triage) act(ctx context.Context, name string, fn txFunc) error {
	err := t.store.Tx(ctx, name, func(ctx context.Context, tx *store.Tx) error {
		if err := fn(ctx, tx); err != nil {
			return err
		}
		crashpoint.Reach("triage:before-commit")
		return nil
	})
	if err == nil {
		crashpoint.Reach("triage:committed")
	}
	return plain(err)
}

// commit is act with a receipt.
func commit[R any](
	ctx context.Context, t *Triage, name string, fn func(ctx context.Context, tx *store.Tx) (*R, error),
) (done *R, err error) {
	err = t.act(ctx, name, func(ctx context.Context, tx *store.Tx) error {
		done, err = fn(ctx, tx)
		return err
	})
	if err != nil {
		return nil, err
	}
	return done, nil
}

// Changed is what a transaction has changed, as its audit tells it, with the messages about it.
type Changed struct {
	Kind, Name string // of the target
	ID         int64
	Request    any
	Unchanged  bool
	Messages   []outbox.Message
}

// Change runs the one transaction of an act, with its audit and its messages.
func (t *Triage) Change(
	ctx context.Context, action, reason string, fn func(ctx context.Context, tx *store.Tx) (*Changed, error),
) (row int64, sent Sent, err error) {
	err = t.act(ctx, action, func(ctx context.Context, tx *store.Tx) error {
		row, sent = 0, Sent{} // the transaction may be repeated
		changed, err := fn(ctx, tx)
		if err != nil {
			return err
		}
		if err := t.send(ctx, tx, changed.Messages, &sent); err != nil {
			return err
		}
		a := audit{
			action: action, of: subject{kind: changed.Kind, name: changed.Name, id: changed.ID}, reason: reason,
			request: changed.Request, outcome: outcomeDone,
		}
		if changed.Unchanged {
			a.outcome = outcomeUnchanged
		}
		return t.record(ctx, tx.Queries, &row, a)
	})
	return row, sent, err
}

// Source is the program in audits and messages.
func (t *Triage) Source() string { return t.cfg.Source }

// Read reads a plan in one snapshot, with the errors of an act.
func Read[P any](
	ctx context.Context, t *Triage, name string, fn func(ctx context.Context, tx *store.Tx) (*P, error),
) (planned *P, err error) {
	err = t.store.ReadTx(ctx, name, func(ctx context.Context, tx *store.Tx) error {
		planned, err = fn(ctx, tx)
		return err
	})
	if err != nil {
		return nil, plain(err)
	}
	return planned, nil
}

// plain returns the error of a transaction; a refusal without the context that the transaction added.
func plain(err error) error {
	if typed := refusal(err); typed != nil {
		return typed
	}
	if inner := errors.Unwrap(err); Refused(inner) {
		return inner
	}
	return err
}

// endTimeout bounds the end of an interrupted action.
const endTimeout = 5 * time.Second

// ending returns the context for the end of an action, also of an interrupted one.
func ending(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
}

// finish writes the end of an action of several pages, also of an interrupted one. It returns the failure of the
// action, or its own.
func (t *Triage) finish(ctx context.Context, name string, failure error, fn txFunc) error {
	ctx, cancel := ending(ctx)
	defer cancel()
	return cmp.Or(failure, t.store.Tx(ctx, name, fn))
}

// outcomeOf returns the outcome of an action of several pages.
func outcomeOf(ctx context.Context, err error, planned, done int) string {
	switch {
	case err != nil && ctx.Err() != nil:
		return outcomeInterrupted
	case err != nil:
		return outcomeFailed
	case done > 0:
		return outcomeDone
	case planned > 0:
		return outcomeUnchanged
	default:
		return outcomeNothing
	}
}

// failureOf is the text of an error, empty for none.
func failureOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// decide runs a transaction again, up to maxAttempts times, if rows changed between its locks and its writes.
func (t *Triage) decide(ctx context.Context, name string, fn func(ctx context.Context, tx *store.Tx) error) error {
	for attempt := 1; ; attempt++ {
		err := t.store.Tx(ctx, name, fn)
		if err == nil || attempt == maxAttempts || ctx.Err() != nil {
			return err
		}
		if store.ClassOf(err) != store.ClassRefused && !errors.Is(err, admission.ErrConflict) {
			return err
		}
	}
}

// maxAttempts bounds how often decide runs a transaction.
const maxAttempts = 5

type progressKey struct{}

// WithProgress makes actions of many steps report after each step how many rows are done, of how
// many; a total of 0 is unknown. The acting goroutine calls report, which must be quick.
func WithProgress(ctx context.Context, report func(done, total int64)) context.Context {
	return context.WithValue(ctx, progressKey{}, report)
}

func progress(ctx context.Context, done, total int) {
	if report, ok := ctx.Value(progressKey{}).(func(done, total int64)); ok {
		report(int64(done), int64(total))
	}
}
