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

	"github.com/attune-go/attune/core/deadletter"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/store"
)

// DeadLetterFilter selects dead letters. The zero value selects all.
type DeadLetterFilter struct {
	// Open keeps undecided dead letters, Decided the others.
	Open    bool `json:"open,omitempty"`
	Decided bool `json:"decided,omitempty"`
	// Decisions keeps these; DecisionOpen is the same as Open.
	Decisions []string `json:"decisions,omitempty"`
	Reason    string   `json:"reason,omitempty"`
	// Action keeps actions whose ref matches; a star matches anything.
	Action string `json:"action,omitempty"`
	// Worker keeps the messages to one worker, by id or name.
	Worker string `json:"worker,omitempty"`
	// Type keeps one message type, such as ExecutionRequested.
	Type      string `json:"type,omitempty"`
	Execution int64  `json:"execution,omitempty"`
	// MaxAge keeps dead letters stored within it, MinAge ones stored before.
	MaxAge time.Duration `json:"max_age_ns,omitempty"`
	MinAge time.Duration `json:"min_age_ns,omitempty"`
	// IDs selects these and ignores the rest of the filter.
	IDs []int64 `json:"ids,omitempty"`
	// Limit bounds a page; 0 means DefaultPage.
	Limit int `json:"limit,omitempty"`
}

// DeadLetterDecisions lists the decisions of the handler and of operators.
var DeadLetterDecisions = deadletter.Decisions

// ErrFilter matches errors about an invalid filter.
var ErrFilter = errors.New("the filter")

// checkWords refuses unknown words, so that a mistyped one is never applied.
func checkWords(what string, words, allowed []string) error {
	for _, word := range words {
		if !slices.Contains(allowed, word) {
			return fmt.Errorf("%w names an unknown %s %q: use one of %s", ErrFilter, what, word,
				strings.Join(allowed, ", "))
		}
	}
	return nil
}

// Check refuses an invalid filter, so that a mistyped one is never applied.
func (f *DeadLetterFilter) Check() error {
	if f.Open && f.Decided {
		return fmt.Errorf("%w keeps nothing: open and decided exclude each other", ErrFilter)
	}
	if err := checkWords("decision", f.Decisions, DeadLetterDecisions); err != nil {
		return err
	}
	if f.Limit < 0 || f.Execution < 0 || f.MaxAge < 0 || f.MinAge < 0 {
		return fmt.Errorf("%w has a negative number", ErrFilter)
	}
	return nil
}

// LedgerList reads one page of matching dead letters below the cursor, the newest first; 0 is the
// newest. A filtered search reads a bounded number of rows and says so.
func (m *Monitor) LedgerList(ctx context.Context, filter DeadLetterFilter, cursor int64) (*LedgerPage, error) {
	page, err := m.ledgerList(ctx, filter, cursor)
	m.assessRoutes(ctx, page.List)
	return page, err
}

// ledgerList is LedgerList with verdicts that do not know the broker.
func (m *Monitor) ledgerList(ctx context.Context, filter DeadLetterFilter, cursor int64) (*LedgerPage, error) {
	page := &LedgerPage{Filter: filter, From: cursor, List: []LedgerEntry{}}
	if err := filter.Check(); err != nil {
		return page, err
	}
	err := m.Read(ctx, "dead letters", &page.Reading, func(ctx context.Context, tx *store.Tx, s Shape) error {
		if !s.Ours {
			return ErrUnmigrated
		}
		numbers, err := readLedgerNumbers(ctx, tx)
		if err != nil {
			return err
		}
		page.Open = numbers.open
		if len(filter.IDs) > 0 {
			list, err := readDeadLetters(ctx, tx, filter.IDs)
			page.List = append(page.List, list...)
			return errors.Join(err, assessLeases(ctx, tx, s, page.List))
		}
		search, err := newDeadLetterSearch(ctx, tx, filter, cursor)
		if err != nil || search == nil {
			return err
		}
		list, row, err := search.read(ctx, tx)
		if err != nil {
			return err
		}
		page.List = list
		search.finish(page, row)
		return assessLeases(ctx, tx, s, page.List)
	})
	return page, err
}

// deadLetterSearch is a filter prepared for the database.
type deadLetterSearch struct{ store.ViewDeadLetterIDsParams }

// newDeadLetterSearch resolves names; nil when no row can match.
func newDeadLetterSearch(ctx context.Context, tx *store.Tx, f DeadLetterFilter, cursor int64) (*deadLetterSearch,
	error,
) {
	q := &deadLetterSearch{store.ViewDeadLetterIDsParams{
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

// decisions sets the decisions. An undecided dead letter has none in the database: alone it uses its own
// index.
func (q *deadLetterSearch) decisions(words []string) {
	taken := slices.DeleteFunc(slices.Clone(words), func(word string) bool { return word == DecisionOpen })
	switch {
	case len(words) == 0:
	case len(taken) == 0:
		q.OnlyOpen = true
	case len(taken) == len(words):
		q.Decisions = taken
	default:
		taken = append(taken, "") // the empty word is no decision
		q.Decisions = taken
	}
}

// plain reports whether every row matches.
func (q *deadLetterSearch) plain() bool {
	return !q.OnlyDecided && len(q.Decisions) == 0 && q.Reason == "" && q.Pattern == "" && q.Worker == 0 &&
		q.MessageType == "" &&
		q.NewerSeconds <= 0 && q.OlderSeconds <= 0 && (q.Execution == 0 || !q.OnlyOpen)
}

// read reads a page of dead letters, which is never nil, and how far the search came.
func (q *deadLetterSearch) read(
	ctx context.Context, tx *store.Tx,
) (list []LedgerEntry, row store.ViewDeadLetterIDsRow, err error) {
	if row, err = tx.ViewDeadLetterIDs(ctx, q.ViewDeadLetterIDsParams); err != nil {
		return nil, row, fmt.Errorf("search dead letters: %w", err)
	}
	list, err = readDeadLetters(ctx, tx, row.Ids)
	return append([]LedgerEntry{}, list...), row, err
}

// finish sets the cursor of the next page and whether the search was cut short.
func (q *deadLetterSearch) finish(page *LedgerPage, row store.ViewDeadLetterIDsRow) {
	full := int64(len(row.Ids)) >= q.Page
	more := row.LookedAt >= q.Scan
	switch {
	case full:
		page.Next = row.Ids[len(row.Ids)-1]
	case more && (q.NewerSeconds <= 0 || !row.Past):
		page.Next, page.Bounded = row.Last, true
	}
	if full && row.LookedAt <= q.Page && !more {
		page.Next = 0 // all rows were read and are on this page
	}
}

type deadLetterRow struct {
	LedgerEntry
	HasProperties, Cut, ExistsNow, ActionGone bool
	AttemptNow, RepeatedBy                    int64
	Parent                                    *int64
	ParentStatus                              string
}

// entry adds the kind and the verdict, which does not know the body.
func (r *deadLetterRow) entry() LedgerEntry {
	e := r.LedgerEntry
	e.What, e.NotKept = DeadLetterKind(e.Type, e.RoutingKey), deadletter.NotKept(r.HasProperties, e.NotKept)
	facts := deadletter.Facts{Entry: &e, Cut: r.Cut}
	if _, known := message.RouteOf(e.Type); !known {
		facts.Unreadable = fmt.Sprintf("the message type %.100q is unknown", e.Type)
	}
	if r.ExistsNow {
		facts.Execution = &DeadLetterExecution{
			ID: *e.Execution, Status: e.StatusNow, ActionRef: e.ActionRef, Attempt: r.AttemptNow,
			ActionGone: r.ActionGone, Parent: r.Parent, ParentStatus: r.ParentStatus, RepeatedBy: r.RepeatedBy,
		}
	}
	e.Verdict = deadletter.Evaluate(facts)
	return e
}

func readDeadLetters(ctx context.Context, tx *store.Tx, ids []int64) ([]LedgerEntry, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	rows, err := store.Rows[deadLetterRow](ctx, tx, store.ViewDeadLetters, ids)
	if err != nil {
		return nil, fmt.Errorf("read %d dead letters: %w", len(ids), err)
	}
	list := make([]LedgerEntry, len(rows))
	for i := range rows {
		list[i] = rows[i].entry()
	}
	return list, nil
}

// assessLeases advises against a retry if another execution leases the work item.
func assessLeases(ctx context.Context, tx *store.Tx, s Shape, list []LedgerEntry) error {
	var ids []int64
	for i := range list {
		if v := &list[i].Verdict; v.Requeue == RequeueRepeats && v.Possible() {
			ids = append(ids, *list[i].Execution)
		}
	}
	if !s.workQueues || len(ids) == 0 {
		return nil
	}
	leases, err := tx.ViewDeadLetterLeases(ctx, ids)
	if err != nil {
		return fmt.Errorf("read the items of work of %d executions: %w", len(ids), err)
	}
	for i := range list {
		at := slices.IndexFunc(leases, func(l store.ViewDeadLetterLeasesRow) bool {
			return list[i].Execution != nil && l.Execution == *list[i].Execution
		})
		if at < 0 || !list[i].Verdict.Possible() {
			continue
		}
		holder := "elsewhere"
		if leases[at].Holder != 0 {
			holder = fmt.Sprintf("to execution %d", leases[at].Holder)
		}
		list[i].Verdict = DeadLetterVerdict{
			Requeue: RequeueRepeats, Advice: AdviseDiscard,
			Why: fmt.Sprintf("its item of work %d is leased %s", leases[at].Item, holder),
		}
	}
	return nil
}
