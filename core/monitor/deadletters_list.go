package monitor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/attune-go/attune/core/attune"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/store"
)

// DeadLetterFilter selects dead letters. The zero value selects all.
type DeadLetterFilter struct {
	// Open keeps those that wait for a person, Decided the others.
	Open    bool `json:"open,omitempty"`
	Decided bool `json:"decided,omitempty"`
	// Decisions keeps these; DecisionOpen means the same as Open.
	Decisions []string `json:"decisions,omitempty"`
	Reason    string   `json:"reason,omitempty"`
	// Action keeps actions whose ref matches; a star stands for anything.
	Action string `json:"action,omitempty"`
	// Worker keeps what was on its way to one worker, given by id or by name.
	Worker string `json:"worker,omitempty"`
	// Type keeps one type of message, such as ExecutionRequested.
	Type string `json:"type,omitempty"`
	// Execution keeps the letters of one execution.
	Execution int64 `json:"execution,omitempty"`
	// MaxAge keeps what was stored within it, MinAge what was stored before.
	MaxAge time.Duration `json:"max_age_ns,omitempty"`
	MinAge time.Duration `json:"min_age_ns,omitempty"`
	// IDs asks for these letters and no others, whatever else the filter says.
	IDs []int64 `json:"ids,omitempty"`
	// Limit bounds a page; zero means DefaultPage.
	Limit int `json:"limit,omitempty"`
}

// LetterDecisions lists the decisions of the ledger, of the handler and of people.
var LetterDecisions = []string{DecisionOpen, "retried", "failed", "stale", "released", "requeued", "discarded", "purged", "sent", "put_back"}

// ErrFilter is matched by errors about a filter that means nothing.
var ErrFilter = errors.New("the filter")

// checkWords refuses words that are not allowed, so that a mistyped one is never applied as something else.
func checkWords(what string, words, allowed []string) error {
	for _, word := range words {
		if !slices.Contains(allowed, word) {
			return fmt.Errorf("%w names an unknown %s %q: use one of %s", ErrFilter, what, word, strings.Join(allowed, ", "))
		}
	}
	return nil
}

// Check says what is wrong with a filter, so that a mistyped one is never applied
// as something else.
func (f *DeadLetterFilter) Check() error {
	if f.Open && f.Decided {
		return fmt.Errorf("%w keeps nothing: open and decided exclude each other", ErrFilter)
	}
	if err := checkWords("decision", f.Decisions, LetterDecisions); err != nil {
		return err
	}
	if f.Limit < 0 || f.Execution < 0 || f.MaxAge < 0 || f.MinAge < 0 {
		return fmt.Errorf("%w has a negative number", ErrFilter)
	}
	return nil
}

// LedgerList reads one page of the dead letters that match the filter, the newest
// first, below the cursor; a cursor of zero begins at the newest. A filtered
// search looks at a bounded number of rows and says when it stopped there.
func (m *Monitor) LedgerList(ctx context.Context, filter DeadLetterFilter, cursor int64) (*LedgerPage, error) {
	page := &LedgerPage{Filter: filter, From: cursor, List: []LedgerEntry{}}
	if err := filter.Check(); err != nil {
		return page, err
	}
	err := m.Read(ctx, "dead letters", &page.Reading, func(ctx context.Context, tx *store.Tx, s Shape) error {
		if !s.ledger {
			return ErrUnmigrated
		}
		numbers, err := readLedgerNumbers(ctx, tx)
		if err != nil {
			return err
		}
		page.Open = numbers.open
		if len(filter.IDs) > 0 {
			list, err := readLetters(ctx, tx, filter.IDs)
			page.List = append(page.List, list...)
			return errors.Join(err, judgeLeases(ctx, tx, s, page.List))
		}
		search, err := newLetterSearch(ctx, tx, filter, cursor)
		if err != nil || search == nil {
			return err
		}
		row, err := search.ids(ctx, tx)
		if err != nil {
			return err
		}
		list, err := readLetters(ctx, tx, row.Ids)
		if err != nil {
			return err
		}
		page.List = append(page.List, list...)
		search.finish(page, row)
		return judgeLeases(ctx, tx, s, page.List)
	})
	return page, err
}

// letterSearch is a filter made ready for the database.
type letterSearch struct{ store.ViewLetterIDsParams }

// newLetterSearch resolves names. It is nil when nothing can match.
func newLetterSearch(ctx context.Context, tx *store.Tx, f DeadLetterFilter, cursor int64) (*letterSearch, error) {
	q := &letterSearch{store.ViewLetterIDsParams{
		OnlyOpen: f.Open, OnlyDecided: f.Decided, Decisions: []string{}, Reason: f.Reason,
		Pattern:     Pattern(f.Action, false),
		MessageType: f.Type, Execution: f.Execution, NewerSeconds: f.MaxAge.Seconds(), OlderSeconds: f.MinAge.Seconds(),
		Before: cursor, Scan: scanBound, Page: int64(cmp.Or(f.Limit, DefaultPage)),
	}}
	if q.Before <= 0 {
		q.Before = math.MaxInt64
	}
	q.decisions(f.Decisions)
	if f.Worker != "" {
		id, err := ResolveWorker(ctx, tx, f.Worker)
		if err != nil || id == 0 {
			return nil, err
		}
		q.Worker = id
	}
	if q.plain() {
		q.Scan = q.Page
	}
	return q, nil
}

// decisions narrows to decisions. What waits has none in the database, so it is
// only searched for by itself.
func (q *letterSearch) decisions(words []string) {
	taken := slices.DeleteFunc(slices.Clone(words), func(word string) bool { return word == DecisionOpen })
	switch {
	case len(words) == 0:
	case len(taken) == 0:
		q.OnlyOpen = true
	case len(taken) == len(words):
		q.Decisions = taken
	default:
		taken = append(taken, "") // the empty word stands for no decision
		q.Decisions = taken
	}
}

// plain reports whether every row that is looked at matches.
func (q *letterSearch) plain() bool {
	return !q.OnlyDecided && len(q.Decisions) == 0 && q.Reason == "" && q.Pattern == "" && q.Worker == 0 && q.MessageType == "" &&
		q.NewerSeconds <= 0 && q.OlderSeconds <= 0 && (q.Execution == 0 || !q.OnlyOpen)
}

func (q *letterSearch) ids(ctx context.Context, tx *store.Tx) (store.ViewLetterIDsRow, error) {
	row, err := tx.ViewLetterIDs(ctx, q.ViewLetterIDsParams)
	if err != nil {
		return row, fmt.Errorf("search dead letters: %w", err)
	}
	return row, nil
}

// finish says where the next page begins and whether the search was cut short.
func (q *letterSearch) finish(page *LedgerPage, row store.ViewLetterIDsRow) {
	full := int64(len(row.Ids)) >= q.Page
	more := row.LookedAt >= q.Scan
	switch {
	case full:
		page.Next = row.Ids[len(row.Ids)-1]
	case more && (q.NewerSeconds <= 0 || !row.Past):
		page.Next, page.Bounded = row.Last, true
	}
	if full && row.LookedAt <= q.Page && !more {
		page.Next = 0 // everything that there is was looked at, and is on this page
	}
}

// listVerdict is the verdict by what a list reads: of the body it knows only whether
// it has a type.
func listVerdict(e *LedgerEntry, r *store.ViewLettersRow) LetterVerdict {
	facts := LetterFacts{Entry: e, Cut: r.Cut}
	if _, known := message.RouteOf(e.Type); !known {
		facts.Unreadable = fmt.Sprintf("the message type %.100q is unknown", e.Type)
	}
	if r.ExistsNow {
		facts.Execution = &LetterExecution{
			ID: *r.Execution, Status: r.StatusNow, ActionRef: r.ActionRef, Attempt: int64(r.AttemptNow),
			ActionGone: r.ActionGone,
			Parent:     r.Parent, ParentStatus: r.ParentStatus, RepeatedBy: r.RepeatedBy,
		}
	}
	return Verdict(facts)
}

func readLetters(ctx context.Context, tx *store.Tx, ids []int64) ([]LedgerEntry, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	rows, err := tx.ViewLetters(ctx, ids)
	if err != nil {
		return nil, fmt.Errorf("read %d dead letters: %w", len(ids), err)
	}
	list := make([]LedgerEntry, len(rows))
	for i, r := range rows {
		list[i] = LedgerEntry{
			ID: r.ID, At: r.Created, Died: r.Died, What: LetterKind(r.MessageType, r.RoutingKey),
			Type:      cmp.Or(r.MessageType, "-"),
			MessageID: r.MessageID, Exchange: r.Exchange, RoutingKey: r.RoutingKey, Queue: r.Queue,
			Reason: cmp.Or(r.Reason, "-"),
			Detail: r.Detail, ActionRef: r.ActionRef, Execution: r.Execution, Attempt: wide(r.Attempt),
			WorkerID:   r.Worker,
			WorkerName: r.WorkerName, StatusThen: r.ExecutionStatus, StatusNow: r.StatusNow,
			Decision:  decision(r.Decision),
			DecidedAt: r.DecidedAt, DecidedBy: r.DecidedBy, Size: r.Size, Tries: int64(r.Tries),
			MaxTries:      wide(r.MaxTries),
			CorrelationID: r.CorrelationID, TakenFrom: r.TakenFrom,
		}
		list[i].Verdict = listVerdict(&list[i], &rows[i])
	}
	return list, nil
}

// judgeLeases advises against repeating executions whose item of work another has by now.
func judgeLeases(ctx context.Context, tx *store.Tx, s Shape, list []LedgerEntry) error {
	var ids []int64
	for i := range list {
		if v := &list[i].Verdict; v.Requeue == RequeueRepeats && v.Advice == AdviseRequeue {
			ids = append(ids, *list[i].Execution)
		}
	}
	if !s.workQueues || len(ids) == 0 {
		return nil
	}
	leases, err := tx.ViewLetterLeases(ctx, ids)
	if err != nil {
		return fmt.Errorf("read the items of work of %d executions: %w", len(ids), err)
	}
	for i := range list {
		at := slices.IndexFunc(leases, func(l store.ViewLetterLeasesRow) bool {
			return list[i].Execution != nil && l.Execution == *list[i].Execution
		})
		if at < 0 || list[i].Verdict.Advice != AdviseRequeue {
			continue
		}
		holder := "elsewhere"
		if leases[at].Holder != 0 {
			holder = fmt.Sprintf("to execution %d", leases[at].Holder)
		}
		list[i].Verdict = LetterVerdict{RequeueRepeats, AdviseDiscard, fmt.Sprintf("its item of work %d is leased %s", leases[at].Item, holder)}
	}
	return nil
}

// What a requeue of a letter does.
const (
	RequeueRepeats = "repeat"  // the execution is repeated as a new attempt
	RequeueSends   = "send"    // the original message is sent again
	RequeueRefused = "refused" // nothing: it cannot be done, or not any more
)

// What a person had best do with a letter.
const (
	AdviseRequeue = "requeue"
	AdviseDiscard = "discard" // what it asked for is over
	AdviseExport  = "export"  // nobody can read it: keep a copy, then discard
	AdviseWait    = "wait"    // the engine is about to decide
	AdviseRetry   = "retry"   // repeat a later attempt instead
	AdviseNothing = "nothing" // it is decided
)

// LetterVerdict says what requeueing a letter would do, what is best done, and
// why.
type LetterVerdict struct {
	Requeue string `json:"requeue"`
	Advice  string `json:"advice"`
	Why     string `json:"why"`
}

// LetterFacts is what the verdict on a letter depends on.
type LetterFacts struct {
	Entry *LedgerEntry
	// Unreadable says why the body is no message; empty when it is one.
	Unreadable string
	// Cut says that the ledger does not have the whole body.
	Cut bool
	// Execution is the execution as it is now; nil when there is none.
	Execution *LetterExecution
}

// Verdict judges a letter by what is known of it and of its execution now. It is
// pure; what it allows is checked again, under locks, by whoever requeues.
func Verdict(f LetterFacts) LetterVerdict {
	e := f.Entry
	dispatch := isDispatchKey(e.RoutingKey)
	if !e.Open() && (!dispatch || e.Decision != "failed" && e.Decision != "stale") {
		return LetterVerdict{RequeueRefused, AdviseNothing, decidedText(e)}
	}
	if dispatch {
		return dispatchVerdict(e, f.Execution)
	}
	switch {
	case f.Cut:
		return LetterVerdict{RequeueRefused, AdviseExport, "only the beginning of its body was kept, so it cannot be sent again"}
	case e.Exchange == "" || e.RoutingKey == "":
		return LetterVerdict{RequeueRefused, AdviseExport, "it does not say where it was sent to"}
	case f.Unreadable != "":
		return LetterVerdict{RequeueSends, AdviseExport, "nobody can read it (" + f.Unreadable + "): sent again it dies again"}
	}
	if over := overVerdict(e, f.Execution); over != "" {
		return LetterVerdict{RequeueSends, AdviseDiscard, over + ": sent again it changes nothing"}
	}
	return LetterVerdict{RequeueSends, AdviseRequeue, fmt.Sprintf("it is sent again to %s with the key %s", e.Exchange, e.RoutingKey)}
}

func isDispatchKey(key string) bool {
	worker, ok := message.WorkerOfKey(key)
	return ok && key == message.DispatchKey(worker)
}

func decidedText(e *LedgerEntry) string {
	text := "it is decided: " + e.Decision
	if e.DecidedBy != "" {
		text += " by " + e.DecidedBy
	}
	return text
}

// dispatchVerdict is about a hand-over. That is never sent again, since it could
// start the execution twice; the execution is repeated instead once it has ended.
func dispatchVerdict(e *LedgerEntry, x *LetterExecution) LetterVerdict {
	switch {
	case e.Execution == nil:
		return LetterVerdict{RequeueRefused, AdviseExport, "it is a hand-over that names no execution"}
	case x == nil:
		return LetterVerdict{RequeueRefused, AdviseDiscard, fmt.Sprintf("execution %d does not exist any more", *e.Execution)}
	case x.RepeatedBy != 0:
		return LetterVerdict{RequeueRefused, AdviseRetry, fmt.Sprintf("execution %d has been repeated already, by execution %d", x.ID, x.RepeatedBy)}
	case x.Status == string(attune.StatusScheduled) && e.Attempt != nil && *e.Attempt == x.Attempt:
		return LetterVerdict{RequeueRefused, AdviseWait, fmt.Sprintf(
			"execution %d is still scheduled with this hand-over: it is moved or ended when scheduled_timeout has passed", x.ID)}
	case !slices.Contains(attune.TerminalStatuses, attune.Status(x.Status)):
		return LetterVerdict{RequeueRefused, AdviseDiscard, fmt.Sprintf("execution %d has moved on since, it is %s", x.ID, x.Status)}
	case x.Status == string(attune.StatusCompleted):
		return LetterVerdict{RequeueRepeats, AdviseDiscard, fmt.Sprintf("execution %d completed: a requeue would run it once more", x.ID)}
	case x.ActionGone:
		return LetterVerdict{RequeueRepeats, AdviseDiscard, fmt.Sprintf("the action %s was deleted: a repetition cannot run", x.ActionRef)}
	case slices.Contains(attune.TerminalStatuses, attune.Status(x.ParentStatus)):
		return LetterVerdict{RequeueRepeats, AdviseDiscard, fmt.Sprintf(
			"its parent, execution %d, has ended (%s): nobody waits for a repetition", *x.Parent, x.ParentStatus)}
	}
	return LetterVerdict{RequeueRepeats, AdviseRequeue, fmt.Sprintf("execution %d ended as %s: it is repeated as a new execution", x.ID, x.Status)}
}

// overVerdict says that what a message asked for is over, or nothing.
func overVerdict(e *LedgerEntry, x *LetterExecution) string {
	if e.Execution == nil {
		return ""
	}
	ended := x != nil && slices.Contains(attune.TerminalStatuses, attune.Status(x.Status))
	switch e.Type {
	case message.TypeExecutionRequested:
		if x != nil && x.Status != string(attune.StatusRequested) {
			return fmt.Sprintf("execution %d has moved on since, it is %s", x.ID, x.Status)
		}
	case message.TypeExecutionCancelRequested:
		if ended {
			return fmt.Sprintf("execution %d has ended (%s)", x.ID, x.Status)
		}
	case message.TypeExecutionStatusChanged, message.TypeExecutionCompleted:
	default:
		return ""
	}
	if x == nil {
		return fmt.Sprintf("execution %d does not exist", *e.Execution)
	}
	return ""
}
