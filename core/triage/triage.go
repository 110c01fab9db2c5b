package triage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/attune-go/attune/core/admission"
	"github.com/attune-go/attune/core/outbox"
	"github.com/attune-go/attune/core/secret"
	"github.com/attune-go/attune/core/store"
)

// TargetError says in one sentence why there is nothing to act on.
type TargetError = admission.TargetError

// Kinds of target errors, to be told apart by errors.Is.
var (
	ErrNoAction = admission.ErrNoAction // no action has the reference
	ErrNoQueue  = admission.ErrNoQueue  // there is no queue to act on
	ErrGroup    = admission.ErrGroup    // a text is not a group of parameter values
)

// ErrLimit says that a limit is not a number of executions.
var ErrLimit = errors.New("a limit is at least 1")

// Config is what acts depend on.
type Config struct {
	// Actor is who acts, as the audit names them. Default "unknown".
	Actor string
	// Source is the program through which they act. Default "attune-executor".
	Source string
	// HeartbeatStaleAfter is the age of a heartbeat from which a worker is not
	// live. Default 90 s.
	HeartbeatStaleAfter time.Duration
	// ReportGrace is how long an execution may have ended without its slot being
	// given back before a repair does: its report may be on its way. Default 10 s.
	ReportGrace time.Duration
	// WithoutStats leaves queue_stats alone.
	WithoutStats bool
}

func (c Config) withDefaults() Config {
	if c.Actor == "" {
		c.Actor = "unknown"
	}
	if c.Source == "" {
		c.Source = "attune-executor"
	}
	if c.HeartbeatStaleAfter <= 0 {
		c.HeartbeatStaleAfter = 90 * time.Second
	}
	if c.ReportGrace <= 0 {
		c.ReportGrace = 10 * time.Second
	}
	return c
}

// Relay publishes what was committed; *outbox.Relay is one.
type Relay = outbox.Publishing

// Triage acts for one operator. It is safe for concurrent use.
type Triage struct {
	cfg   Config
	store *store.Store
	relay Relay
	wires WorkerQueues   // nil: what needs the broker is refused
	keys  secret.Keyring // without a key what holds secrets is refused
}

// New makes a Triage. Without a relay the messages are left to the sweep of a
// running engine, which takes them within seconds.
func New(cfg Config, st *store.Store, relay Relay) *Triage {
	return &Triage{cfg: cfg.withDefaults(), store: st, relay: relay}
}

// Target names what an act is about.
type Target struct {
	Action string `json:"action"`
	// Group is the group's key, a JSON object of paths and values; empty: all
	// queues of the action.
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

// Sent is the messages of an act.
type Sent struct {
	Messages int     `json:"messages"`
	Rows     []int64 `json:"-"` // of the outbox
}

// maxMessages bounds one outbox row, so that a relay publishes in pieces.
const maxMessages = 500

// send appends messages to the outbox and hands them to the relay after the
// commit.
func (t *Triage) send(ctx context.Context, tx *store.Tx, messages []outbox.Message, sent *Sent) error {
	for begin := 0; begin < len(messages); begin += maxMessages {
		part := messages[begin:min(begin+maxMessages, len(messages))]
		row, err := outbox.Hand(ctx, tx, t.relay, part)
		if err != nil {
			return err
		}
		sent.Messages += len(part)
		sent.Rows = append(sent.Rows, row)
	}
	return nil
}

// nudge sends the requests for the heads of queues again, so that a batch
// fills them.
func (t *Triage) nudge(ctx context.Context, tx *store.Tx, heads []admission.Head, sent *Sent) error {
	if len(heads) == 0 {
		return nil
	}
	now, err := tx.ControlNow(ctx)
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

// audit is what operator_audit keeps of one action.
type audit struct {
	action  string // queue.pause and so on
	of      subject
	reason  string
	request any // what was asked, and how far it has come
	outcome string
	failure string
}

// subject is what an action was about; without an id, several things or none.
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

// The outcomes of an act.
const (
	outcomeDone        = "done"
	outcomeUnchanged   = "unchanged" // it was so already
	outcomeNothing     = "nothing to do"
	outcomeRunning     = "running"     // pages are done, more follow; also after a crash
	outcomeInterrupted = "interrupted" // pages are done, the caller gave up
	outcomeFailed      = "failed"      // pages are done, then an error came
)

// record writes the audit of an action: a new row whose id it sets, or, where the id is set already, how far
// the action has come since.
func (t *Triage) record(ctx context.Context, queries *store.Queries, id *int64, a audit) error {
	if *id != 0 {
		return t.amend(ctx, queries, *id, a)
	}
	request, err := json.Marshal(a.request)
	if err != nil {
		return fmt.Errorf("encode the audit of %s: %w", a.action, err)
	}
	row := store.InsertAuditParams{
		Actor: t.cfg.Actor, Source: t.cfg.Source, Action: a.action, TargetType: a.of.kind, Target: a.of.name,
		Reason: a.reason, Request: request, Outcome: a.outcome, Error: a.failure,
	}
	if a.of.id != 0 {
		row.TargetID = &a.of.id
	}
	if *id, err = queries.InsertAudit(ctx, row); err != nil {
		return fmt.Errorf("audit %s: %w", a.action, err)
	}
	return nil
}

func (t *Triage) amend(ctx context.Context, queries *store.Queries, id int64, a audit) error {
	request, err := json.Marshal(a.request)
	if err != nil {
		return fmt.Errorf("encode the audit of %s: %w", a.action, err)
	}
	arg := store.UpdateAuditParams{ID: id, Request: request, Outcome: a.outcome, Error: a.failure}
	if err := queries.UpdateAudit(ctx, arg); err != nil {
		return fmt.Errorf("audit %s: %w", a.action, err)
	}
	return nil
}

// auditPatience bounds how long an interrupted action is still written down.
const auditPatience = 5 * time.Second

// ending is the context for what is due also after the caller gave up.
func ending(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), auditPatience)
}

// outcomeOf judges how an action of several pages ended: of what was planned so much was done.
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

// decide runs a transaction that is decided anew on newer facts when rows changed between its locks and its
// writes, up to maxAttempts times.
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

// progressKey is where a context carries who is told.
type progressKey struct{}

// WithProgress has acts of many steps tell after each of them how many rows are
// done, of how many; a total of 0 is unknown. tell is called by the goroutine that
// acts and must be quick.
func WithProgress(ctx context.Context, tell func(done, total int64)) context.Context {
	return context.WithValue(ctx, progressKey{}, tell)
}

// Progress tells whoever a context was given for, by WithProgress, how far an act
// of many acts has come.
func Progress(ctx context.Context, done, total int64) { progress(ctx, int(done), int(total)) }

// progress tells how far an act has come, if anybody wants to know.
func progress(ctx context.Context, done, total int) {
	if tell, ok := ctx.Value(progressKey{}).(func(done, total int64)); ok {
		tell(int64(done), int64(total))
	}
}
