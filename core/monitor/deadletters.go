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

// The dead letter and the verdict on it are those of the engine.
type (
	LedgerEntry     = deadletter.Entry
	LetterVerdict   = deadletter.Verdict
	LetterExecution = deadletter.Execution
)

// What a requeue of a letter does, and what is best done with it.
const (
	RequeueRepeats = deadletter.RequeueRepeats
	RequeueSends   = deadletter.RequeueSends
	RequeueRefused = deadletter.RequeueRefused

	AdviseRequeue = deadletter.AdviseRequeue
	AdviseDiscard = deadletter.AdviseDiscard
	AdviseExport  = deadletter.AdviseExport
	AdviseWait    = deadletter.AdviseWait
	AdviseRetry   = deadletter.AdviseRetry
	AdviseNothing = deadletter.AdviseNothing
)

// DecisionOpen stands for a decision nobody has taken yet.
const DecisionOpen = deadletter.Waiting

// LetterKind names what a message is about in one word of at most nine letters:
// dispatch and cancel for what is sent to a worker, else by its type.
func LetterKind(kind, routingKey string) string {
	if _, ok := message.WorkerOfKey(routingKey); ok {
		if kind == message.TypeExecutionCancelRequested {
			return "cancel"
		}
		return "dispatch"
	}
	if word, ok := letterKinds[kind]; ok {
		return word
	}
	return "unknown"
}

var letterKinds = map[string]string{
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
	// From is the key that the page was read from: rows have smaller ids. Zero
	// means from the newest.
	From int64         `json:"from,omitempty"`
	List []LedgerEntry `json:"list"`
	// Next continues the list, also of a page without rows; zero at its end.
	Next int64 `json:"next,omitempty"`
	// Bounded is true when the search stopped at its bound before the page was
	// full: older matches may exist beyond Next.
	Bounded bool `json:"bounded,omitempty"`
	// Open counts what waits for a person, whatever the filter.
	Open Count `json:"open"`
}

// LetterBody is the body of a letter in the form in which people can read it.
type LetterBody struct {
	// Format is json, text, binary or empty.
	Format string          `json:"format"`
	JSON   json.RawMessage `json:"json,omitempty"`
	Text   string          `json:"text,omitempty"`
	Base64 []byte          `json:"base64,omitempty"`
	// Size is the length of what is kept; Cut says that only its beginning is here.
	Size int64 `json:"size"`
	Cut  bool  `json:"cut,omitempty"`
}

// LedgerDetail is everything about one dead letter.
type LedgerDetail struct {
	Reading
	LedgerEntry
	Fingerprint string          `json:"fingerprint,omitempty"`
	XDeath      json.RawMessage `json:"x_death"`
	Headers     json.RawMessage `json:"headers"`
	// Evidence is what was known when the letter was decided.
	Evidence json.RawMessage `json:"evidence"`
	Body     LetterBody      `json:"body"`
	// ExecutionNow is the execution as it is now; nil if there is none.
	ExecutionNow *LetterExecution `json:"execution_now"`
	Updated      time.Time        `json:"updated"`
}

// LedgerStats says how many messages died and how much work was lost over a
// time, in groups.
type LedgerStats struct {
	Reading
	// Window is the time that is looked back, Unit the length of one entry of
	// ByTime: hour or day.
	Window time.Duration `json:"window_ns"`
	Unit   string        `json:"unit"`
	// Queue is the dead-letter queue on the broker; nil where it was not asked or
	// did not answer.
	Queue *BrokerQueue `json:"queue"`
	// Open counts letters that wait for a person, Oldest since when.
	Open   Count      `json:"open"`
	Oldest *time.Time `json:"oldest"`
	// PerMinute is the pace of the last RatePace.
	PerMinute float64 `json:"per_minute"`
	// Latency is how long the latest letters took from death to ledger; nil when
	// none says when it died.
	Latency *time.Duration `json:"latency_ns"`
	Letters Count          `json:"letters"`
	Lost    Count          `json:"lost_work"`

	ByReason []LedgerTally `json:"by_reason"`
	ByAction []LedgerTally `json:"by_action"`
	ByWorker []LedgerTally `json:"by_worker"`
	ByCause  []LedgerTally `json:"by_cause"`
	ByTime   []LedgerTally `json:"by_time"`
}

// LedgerTally is one group of a statistic: the letters by what was decided, and
// the work that was lost by what came of it.
type LedgerTally struct {
	Name string `json:"name"`
	// WorkerName is the name behind the id of a worker that still exists.
	WorkerName string           `json:"worker_name,omitempty"`
	Letters    int64            `json:"letters"`
	Open       int64            `json:"open"`
	Decisions  map[string]int64 `json:"decisions"`
	Lost       int64            `json:"lost_work"`
	Outcomes   map[string]int64 `json:"outcomes"`
	// MeanAge is how old the lost work was on average when it was decided about.
	MeanAge *time.Duration `json:"mean_age_ns"`
	Newest  time.Time      `json:"newest"`
}

const (
	// LedgerRecent is how many dead letters at most are listed beside the counts.
	LedgerRecent = 200
	// ledgerBound is where counting the letters of a day stops.
	ledgerBound = 2_000
	// RatePace is the time over which the pace of dead letters is measured.
	RatePace = 5 * time.Minute
)

// DeadLetters reads the depth of the dead-letter queue from the broker and what
// became of handled ones from the ledger. The two sources are read side by side
// and neither hides the other's answer; the error is set only when both fail.
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
	if databaseErr != nil && brokerErr != nil {
		return d, errors.Join(databaseErr, brokerErr)
	}
	return d, nil
}

func (d *DeadLetters) ledger(ctx context.Context, tx *store.Tx, s Shape) (err error) {
	if !s.ledger {
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
	l := &Ledger{
		Open: numbers.open, Oldest: numbers.oldest, PerMinute: numbers.perMinute,
	}
	groups, err := tx.MonitorLedgerGroups(ctx, ledgerBound)
	if err != nil {
		return fmt.Errorf("group the dead-letter ledger: %w", err)
	}
	for _, g := range groups {
		l.LastDay = Count{Value: g.Total, AtLeast: g.Total >= ledgerBound}
		l.ByReason = append(l.ByReason,
			LedgerGroup{Reason: g.Reason, Decision: decision(g.Decision), Count: g.N, Newest: g.Newest})
	}
	if l.Recent, err = recentLetters(ctx, tx); err != nil {
		return err
	}
	if err := judgeLeases(ctx, tx, s, l.Recent); err != nil {
		return err
	}
	d.Ledger = l
	return nil
}

// recentLetters lists who waits for a person, then the newest of the others.
func recentLetters(ctx context.Context, tx *store.Tx) ([]LedgerEntry, error) {
	search := letterSearch{ViewLetterIDsParams: store.ViewLetterIDsParams{
		OnlyOpen: true, Before: math.MaxInt64, Scan: LedgerRecent, Page: LedgerRecent, Decisions: []string{},
	}}
	open, err := search.ids(ctx, tx)
	if err != nil {
		return nil, err
	}
	list, err := readLetters(ctx, tx, open.Ids)
	if err != nil || len(list) == LedgerRecent {
		return list, err
	}
	search.OnlyOpen, search.OnlyDecided = false, true
	search.Scan, search.Page = 2*LedgerRecent, int64(LedgerRecent-len(list))
	decided, err := search.ids(ctx, tx)
	if err != nil {
		return nil, err
	}
	rest, err := readLetters(ctx, tx, decided.Ids)
	return append(list, rest...), err
}

// ledgerNumbers are depth, age and pace of the ledger.
type ledgerNumbers struct {
	open      Count
	oldest    *time.Time
	perMinute float64
	latency   *time.Duration
}

func readLedgerNumbers(ctx context.Context, tx *store.Tx) (ledgerNumbers, error) {
	row, err := tx.ViewLetterNumbers(ctx, ledgerBound, RatePace.Seconds())
	if err != nil {
		return ledgerNumbers{}, fmt.Errorf("measure the dead-letter ledger: %w", err)
	}
	n := ledgerNumbers{
		open:      Count{Value: row.Waiting, AtLeast: row.Waiting >= ledgerBound},
		perMinute: float64(row.Lately) / RatePace.Minutes(),
	}
	if row.Waiting > 0 {
		n.oldest = &row.Oldest
	}
	if row.LatencySeconds >= 0 {
		n.latency = new(inSeconds(row.LatencySeconds))
	}
	return n, nil
}

func inSeconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// decision names a decision for people; none means that a person has to decide.
func decision(taken string) string {
	if taken == "" {
		return DecisionOpen
	}
	return taken
}
