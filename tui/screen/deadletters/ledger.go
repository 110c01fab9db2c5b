package deadletters

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/filter"
	"github.com/attune-go/attune/tui/screen"
)

const (
	// maxOlder bounds how many letters are kept beyond the newest.
	maxOlder = 5_000
	// nearEnd is how near the end of what was read the cursor is when more is read.
	nearEnd = monitor.DefaultPage / 4
)

// older are letters of the ledger beyond those that every poll reads: those that wait
// further down, then the others, each page below the one before. They are read as the
// operator comes near the end, and answer the filter that was in place then.
type older struct {
	letters map[int64]*monitor.LedgerEntry
	// decided is true once all that wait were read, ended once all were.
	decided, ended bool
	// next is below which letter the next page begins; zero: where the polls end.
	next int64
	// bounded says that a search stopped at its bound and found nothing: the next one
	// is for the operator to ask for.
	bounded bool
}

// restart forgets what was read beyond the newest, since it answers another question.
func (v *DeadLetters) restart() {
	waiting, _ := v.kinds()
	v.older = older{letters: map[int64]*monitor.LedgerEntry{}, decided: !waiting}
}

// kinds says which of the letters are wanted: those that wait, and those that do not.
func (v *DeadLetters) kinds() (waiting, decided bool) {
	wanted := v.narrowed().Decisions
	waiting = len(wanted) == 0 || wanted[0] == monitor.DecisionOpen
	return waiting, !v.Problems() && (len(wanted) == 0 || !waiting)
}

// Ask is what is to be read of the ledger: the next page when the end of what was
// read is near, otherwise the letters in sight again; false when the polls read all
// that there is to be seen.
func (v *DeadLetters) Ask() (f monitor.DeadLetterFilter, cursor int64, ok bool) {
	if v.recent() == nil {
		return f, 0, false
	}
	f = v.asked()
	if v.wanting() {
		f.Open, f.Decided = !v.older.decided, v.older.decided
		return f, v.below(), true
	}
	if at := v.Table().Offset(); v.Order() == (screen.Order{}) && at >= 0 && at < v.Len() {
		r := v.VisibleRows()[at]
		if _, further := v.older.letters[r.ID]; further {
			f.Open, f.Decided = r.Open(), !r.Open()
			return f, r.ID + 1, true
		}
	}
	return f, 0, false
}

// asked is what the database is asked for, of those that wait or of the others.
func (v *DeadLetters) asked() monitor.DeadLetterFilter {
	f := v.narrowed()
	if slices.Contains(f.Decisions, monitor.DecisionOpen) {
		f.Decisions = nil // it is what Open asks for
	}
	return f
}

// recent is what every poll reads of the ledger, or nil.
func (v *DeadLetters) recent() []monitor.LedgerEntry {
	if d := v.env.Data.DeadLetters; d != nil && d.Ledger != nil {
		return d.Ledger.Recent
	}
	return nil
}

// wanting reports whether another page is to be read.
func (v *DeadLetters) wanting() bool {
	return !v.older.ended && !v.older.bounded && len(v.older.letters) < maxOlder &&
		len(v.recent()) >= monitor.LedgerRecent && v.Len()-v.Table().Cursor() < nearEnd
}

// below is where the next page begins: below the last of its kind that was read.
func (v *DeadLetters) below() int64 {
	if v.older.next != 0 {
		return v.older.next
	}
	last := int64(0)
	for _, l := range v.recent() {
		if l.Open() != v.older.decided {
			last = l.ID
		}
	}
	return last
}

// take puts a page of the ledger into the list.
func (v *DeadLetters) take(page *monitor.LedgerPage) {
	if page == nil || !page.Filter.Open && !page.Filter.Decided || !v.sameFilter(page.Filter) {
		return // nothing was asked, or something else than is wanted now
	}
	o := &v.older
	continues := page.From == v.below() && page.Filter.Decided == o.decided && !o.ended
	v.forget(page)
	for i := range page.List {
		if _, known := o.letters[page.List[i].ID]; known || continues {
			o.letters[page.List[i].ID] = &page.List[i]
		}
	}
	if !continues {
		return
	}
	o.bounded = page.Bounded && len(page.List) == 0
	if o.next = page.Next; page.Next != 0 {
		return
	}
	_, decided := v.kinds()
	o.ended = o.decided || !decided
	o.decided = true
}

// forget drops letters that waited and are not in a page that should have them: they
// were decided meanwhile.
func (v *DeadLetters) forget(page *monitor.LedgerPage) {
	if !page.Filter.Open || page.Bounded {
		return
	}
	still := make(map[int64]bool, len(page.List))
	for i := range page.List {
		still[page.List[i].ID] = true
	}
	for id, l := range v.older.letters {
		if l.Open() && id < page.From && id >= page.Next && !still[id] {
			delete(v.older.letters, id)
		}
	}
}

// sameFilter reports whether a page answers the filter in place.
func (v *DeadLetters) sameFilter(of monitor.DeadLetterFilter) bool {
	want := v.narrowed()
	return of.Reason == want.Reason && of.Action == want.Action && of.Worker == want.Worker &&
		of.Execution == want.Execution &&
		of.MaxAge == want.MaxAge && (of.Open || slices.Equal(of.Decisions, want.Decisions))
}

// gatherOlder adds what was read beyond the newest, those that wait first. What a poll
// no longer reads because newer ones have come is kept once further pages were read, so
// that no gap opens between them.
func (v *DeadLetters) gatherOlder(add func(*monitor.LedgerEntry)) {
	paged := v.older.next != 0 || v.older.ended || len(v.older.letters) > 0
	seen := map[int64]bool{}
	for i := range v.all {
		l := v.all[i].LedgerEntry
		seen[l.ID] = true
		if paged {
			v.older.letters[l.ID] = l
		}
	}
	further := make([]*monitor.LedgerEntry, 0, len(v.older.letters))
	for id, l := range v.older.letters {
		if !seen[id] {
			further = append(further, l)
		}
	}
	slices.SortFunc(further, func(x, y *monitor.LedgerEntry) int {
		return cmp.Or(boolInt(!x.Open())-boolInt(!y.Open()), cmp.Compare(y.ID, x.ID))
	})
	for _, l := range further {
		add(l)
	}
}

// more says whether the ledger goes on below what was read; empty when it does not.
func (v *DeadLetters) more() string {
	switch {
	case v.older.ended || len(v.recent()) < monitor.LedgerRecent:
		return ""
	case v.env.Data.Fresh(screen.FeedLedger).Err != nil:
		return "more below, which cannot be read: " + v.env.Data.Fresh(screen.FeedLedger).Err.Error()
	case len(v.older.letters) >= maxOlder:
		return "no more than " + v.env.Num(maxOlder) + " are listed; a filter narrows them"
	case v.older.bounded:
		return "the search stopped at its bound; G goes on"
	default:
		return "more below"
	}
}

// narrowed is what the database is asked to leave out: no more than the filter does.
func (v *DeadLetters) narrowed() monitor.DeadLetterFilter {
	var f monitor.DeadLetterFilter
	q := v.Query()
	if q.Empty() || len(q.Any) > 1 {
		return f
	}
	for i := range q.Any[0] {
		t := &q.Any[0][i]
		if t.Not || t.Regex != nil || len(t.Values) != 1 {
			continue
		}
		v.narrow(&f, t)
	}
	return f
}

// narrow takes one term over, if the database reads it as the list does.
func (v *DeadLetters) narrow(f *monitor.DeadLetterFilter, t *filter.Term) {
	value := t.Values[0]
	switch t.Field {
	case "reason":
		if !strings.Contains(value, "*") {
			f.Reason = strings.ToLower(value)
		}
	case "action":
		f.Action = value
	case "from", "worker":
		if slices.ContainsFunc(v.recent(), func(l monitor.LedgerEntry) bool { return l.WorkerName == value }) {
			f.Worker = value
		}
	case "execution":
		if id, err := strconv.ParseInt(value, 10, 64); err == nil {
			f.Execution = id
		}
	case "decision":
		if word := strings.ToLower(value); slices.Contains(monitor.LetterDecisions, word) {
			f.Decisions = []string{word}
		}
	case "age":
		if t.Op == filter.Less || t.Op == filter.LessEqual {
			f.MaxAge = time.Duration(t.Number * float64(time.Second))
		}
	}
}
