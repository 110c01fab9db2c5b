package monitor

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/attune-go/attune/core/deadletter"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/store"
)

// The engine's types of dead letters.
type (
	// LedgerEntry is a dead letter in the ledger.
	LedgerEntry = deadletter.Entry
	// DeadLetterVerdict is the judgement of a dead letter.
	DeadLetterVerdict = deadletter.Verdict
	// DeadLetterExecution is the execution of a dead letter.
	DeadLetterExecution = deadletter.Execution
)

// The effects of a requeue, and the advice on a dead letter.
const (
	RequeueRepeats = deadletter.RequeueRepeats
	RequeueSends   = deadletter.RequeueSends
	RequeueRefused = deadletter.RequeueRefused

	AdviseRequeue = deadletter.AdviseRequeue
	AdviseDiscard = deadletter.AdviseDiscard
	AdviseExport  = deadletter.AdviseExport
	AdviseWait    = deadletter.AdviseWait
	AdviseRetry   = deadletter.AdviseRetry
	AdviseSend    = deadletter.AdviseSend
	AdviseFix     = deadletter.AdviseFix
	AdviseNothing = deadletter.AdviseNothing
)

// DecisionOpen stands for a missing decision.
const DecisionOpen = deadletter.Waiting

// DeadLetterKind names the message in one word of at most nine letters: dispatch or cancel for a
// worker's message, else by its type.
func DeadLetterKind(kind, routingKey string) string {
	if _, ok := message.WorkerOfKey(routingKey); ok {
		if kind == message.TypeExecutionCancelRequested {
			return "cancel"
		}
		return "dispatch"
	}
	if word, ok := deadLetterKinds[kind]; ok {
		return word
	}
	return "unknown"
}

var deadLetterKinds = map[string]string{
	message.TypeEventCreated: "event", message.TypeEnforcementCreated: "enforce",
	message.TypeExecutionRequested:     "request",
	message.TypeExecutionStatusChanged: "status", message.TypeExecutionCompleted: "completed",
	message.TypeExecutionCancelRequested: "cancel", message.TypeInquiryCreated: "inquiry",
	message.TypeInquiryResponded:    "answer",
	message.TypeNotificationCreated: "notify", message.TypeRuleCreated: "rule", message.TypeRuleEnabled: "rule",
	message.TypeRuleDisabled: "rule", message.TypePackRegistered: "pack", message.TypePackDeleted: "pack",
}

// LedgerPage is one page of dead letters, the newest first.
type LedgerPage struct {
	Reading
	Filter DeadLetterFilter `json:"filter"`
	// From is the cursor of this page: ids are smaller; 0 is the newest.
	From int64         `json:"from,omitempty"`
	List []LedgerEntry `json:"list"`
	// Next is the cursor of the next page, which an empty page can have too; 0 at the end.
	Next int64 `json:"next,omitempty"`
	// Bounded is true when the search stopped at its bound, so that older matches may exist.
	Bounded bool `json:"bounded,omitempty"`
	// Open counts undecided dead letters, whatever the filter.
	Open Count `json:"open"`
}

// DeadLetterBody is the body of a dead letter in a readable form.
type DeadLetterBody struct {
	// Format is json, text, binary or empty.
	Format string          `json:"format"`
	JSON   json.RawMessage `json:"json,omitempty"`
	Text   string          `json:"text,omitempty"`
	Base64 []byte          `json:"base64,omitempty"`
	// Size is the length of the stored body. Cut says that the ledger holds only its beginning.
	Size int64 `json:"size"`
	Cut  bool  `json:"cut,omitempty"`
}

// LedgerDetail is everything about one dead letter.
type LedgerDetail struct {
	Reading
	LedgerEntry
	DeadLetterDocuments
	Body DeadLetterBody `json:"body"`
	// ExecutionNow is the present state of the execution, if it exists.
	ExecutionNow *DeadLetterExecution `json:"execution_now"`
}

// DeadLetterDocuments are what no list of dead letters has.
type DeadLetterDocuments struct {
	Fingerprint string          `json:"fingerprint,omitempty"`
	XDeath      json.RawMessage `json:"x_death"`
	Headers     json.RawMessage `json:"headers"`
	// Evidence is what was known at the decision.
	Evidence json.RawMessage `json:"evidence"`
	Updated  time.Time       `json:"updated"`
}

// LedgerStats groups dead letters and lost work of a time.
type LedgerStats struct {
	Reading
	// Window is the time covered, Unit the length of an entry of ByTime: hour or day.
	Window time.Duration `json:"window_ns"`
	Unit   string        `json:"unit"`
	// Queue is the dead-letter queue on the broker; nil without an answer.
	Queue *BrokerQueue `json:"queue"`
	// Open counts undecided dead letters, Oldest is when the first of them arrived.
	Open   Count      `json:"open"`
	Oldest *time.Time `json:"oldest"`
	// PerMinute is the rate of the last RatePace.
	PerMinute float64 `json:"per_minute"`
	// Latency is how long the latest dead letters took from death to ledger; nil if unknown.
	Latency     *time.Duration `json:"latency_ns"`
	DeadLetters Count          `json:"letters"`
	Lost        Count          `json:"lost_work"`

	ByReason []LedgerTally `json:"by_reason"`
	ByAction []LedgerTally `json:"by_action"`
	ByWorker []LedgerTally `json:"by_worker"`
	ByCause  []LedgerTally `json:"by_cause"`
	ByTime   []LedgerTally `json:"by_time"`
}

// LedgerTally is one group: its dead letters by decision, its lost work by outcome.
type LedgerTally struct {
	Name string `json:"name"`
	// WorkerName is the name of an existing worker.
	WorkerName  string           `json:"worker_name,omitempty"`
	DeadLetters int64            `json:"letters"`
	Open        int64            `json:"open"`
	Decisions   map[string]int64 `json:"decisions"`
	Lost        int64            `json:"lost_work"`
	Outcomes    map[string]int64 `json:"outcomes"`
	// MeanAge is the mean age of lost work at its decision.
	MeanAge *time.Duration `json:"mean_age_ns"`
	Newest  time.Time      `json:"newest"`
}

const (
	// LedgerRecent bounds the dead letters listed beside the counts.
	LedgerRecent = 200
	// ledgerBound is where counting the dead letters of a day stops.
	ledgerBound = 2_000
	// RatePace is the time over which the rate of dead letters is measured.
	RatePace = 5 * time.Minute
)

// DeadLetters reads the dead-letter queue from the broker and the ledger from the database, side by
// side. It fails only when both fail.
func (m *Monitor) DeadLetters(ctx context.Context) (*DeadLetters, error) {
	d := &DeadLetters{}
	var b *Broker
	brokerErr, databaseErr := m.both(ctx, "dead letters", &d.Reading, func(reader BrokerReader) (err error) {
		b, err = reader.ReadBroker(ctx)
		return err
	}, d.ledger)
	if q, ok := b.Queue(DeadLetterQueue); ok && brokerErr == nil {
		d.Queue = &q
	} else {
		d.QueueMissing = brokerErr == nil
	}
	switch {
	case d.Ledger == nil:
	case brokerErr != nil:
		routesUnknown(d.Ledger.Recent, brokerErr)
	default:
		m.assessRoutes(ctx, d.Ledger.Recent)
	}
	if databaseErr != nil && brokerErr != nil {
		return d, errors.Join(databaseErr, brokerErr)
	}
	return d, nil
}

func (d *DeadLetters) ledger(ctx context.Context, tx *store.Tx, s Shape) (err error) {
	if !s.Ours {
		return nil
	}
	switch holder, err := tx.SessionLockHolder(ctx, deadletter.LockName(DeadLetterQueue)); {
	case err == nil:
		d.Running = cmp.Or(holder.Holder, "another session")
	case !errors.Is(err, sql.ErrNoRows):
		return fmt.Errorf("find the operator who acts on dead letters: %w", err)
	}
	numbers, err := readLedgerNumbers(ctx, tx)
	if err != nil {
		return err
	}
	l := &Ledger{Open: numbers.open, Oldest: numbers.oldest, PerMinute: numbers.perMinute}
	type group struct {
		LedgerGroup
		Total int64
	}
	groups, err := store.Rows[group](ctx, tx, store.MonitorLedgerGroups, ledgerBound)
	if err != nil {
		return fmt.Errorf("group the dead-letter ledger: %w", err)
	}
	for _, g := range groups {
		l.LastDay = upTo(g.Total, ledgerBound)
		l.ByReason = append(l.ByReason, g.LedgerGroup)
	}
	if l.Recent, err = recentDeadLetters(ctx, tx); err != nil {
		return err
	}
	if err := assessLeases(ctx, tx, s, l.Recent); err != nil {
		return err
	}
	d.Ledger = l
	return nil
}

// recentDeadLetters lists undecided dead letters, then the newest of the others.
func recentDeadLetters(ctx context.Context, tx *store.Tx) ([]LedgerEntry, error) {
	search := deadLetterSearch{ViewDeadLetterIDsParams: store.ViewDeadLetterIDsParams{
		OnlyOpen: true, Before: math.MaxInt64, Scan: LedgerRecent, Page: LedgerRecent, Decisions: []string{},
	}}
	list, _, err := search.read(ctx, tx)
	if err != nil || len(list) == LedgerRecent {
		return list, err
	}
	search.OnlyOpen, search.OnlyDecided = false, true
	search.Scan, search.Page = 2*LedgerRecent, int64(LedgerRecent-len(list))
	rest, _, err := search.read(ctx, tx)
	return append(list, rest...), err
}

// ledgerNumbers are depth, age and rate of the ledger.
type ledgerNumbers struct {
	open      Count
	oldest    *time.Time
	perMinute float64
	latency   *time.Duration
}

func readLedgerNumbers(ctx context.Context, tx *store.Tx) (ledgerNumbers, error) {
	row, err := tx.ViewDeadLetterNumbers(ctx, ledgerBound, RatePace.Seconds())
	if err != nil {
		return ledgerNumbers{}, fmt.Errorf("measure the dead-letter ledger: %w", err)
	}
	n := ledgerNumbers{
		open: upTo(row.Waiting, ledgerBound), perMinute: float64(row.Lately) / RatePace.Minutes(),
	}
	if row.Waiting > 0 {
		n.oldest = &row.Oldest
	}
	if row.LatencySeconds >= 0 {
		n.latency = new(Seconds(row.LatencySeconds))
	}
	return n, nil
}
