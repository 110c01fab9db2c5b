package deadletters

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/filter"
	"github.com/attune-go/attune/tui/screen"
)

const (
	// maxOlder bounds the dead letters that are kept beyond the newest.
	maxOlder = 5_000
	// nearEnd is the distance of the cursor from the last row at which the next page is read.
	nearEnd = monitor.DefaultPage / 4
)

// older is the part of the ledger below the newest entries, which every poll reads: first the waiting
// dead letters, then the decided ones, page by page. It belongs to the present filter.
type older struct {
	entries map[int64]*monitor.LedgerEntry
	// decided is true once all waiting entries were read, ended once all entries were.
	decided, ended bool
	next           int64 // the next page begins below this id; zero begins where the polls end
	// bounded is true if the last search stopped at its bound with no match: G continues it.
	bounded bool
}

// restart forgets the older entries.
func (v *DeadLetters) restart() {
	waiting, _ := v.kinds()
	v.older = older{entries: map[int64]*monitor.LedgerEntry{}, decided: !waiting}
}

// kinds reports whether the filter wants waiting and decided entries.
func (v *DeadLetters) kinds() (waiting, decided bool) {
	wanted := v.narrowed().Decisions
	waiting = len(wanted) == 0 || wanted[0] == monitor.DecisionOpen
	return waiting, !v.Problems() && (len(wanted) == 0 || !waiting)
}

// Ask is the next reading of the ledger: the next page near the end of the list, or else a page of the
// older entries on the screen. It is false if the polls read every visible entry.
func (v *DeadLetters) Ask() (f monitor.DeadLetterFilter, cursor int64, ok bool) {
	if v.recent() == nil {
		return f, 0, false
	}
	f = v.request()
	if v.wantsPage() {
		f.Open, f.Decided = !v.older.decided, v.older.decided
		return f, v.nextCursor(), true
	}
	if at := v.Table().Offset(); v.Order() == (screen.Order{}) && at >= 0 && at < v.Len() {
		r := v.VisibleRows()[at]
		if _, older := v.older.entries[r.ID]; older {
			f.Open, f.Decided = r.Open(), !r.Open()
			return f, r.ID + 1, true
		}
	}
	return f, 0, false
}

// request is the filter of a reading, without the choice of waiting or decided entries.
func (v *DeadLetters) request() monitor.DeadLetterFilter {
	f := v.narrowed()
	if slices.Contains(f.Decisions, monitor.DecisionOpen) {
		f.Decisions = nil // Open asks for them
	}
	return f
}

// recent is the part of the ledger that every poll reads, or nil.
func (v *DeadLetters) recent() []monitor.LedgerEntry {
	if d := v.env.Data.DeadLetters; d != nil && d.Ledger != nil {
		return d.Ledger.Recent
	}
	return nil
}

func (v *DeadLetters) wantsPage() bool {
	return !v.older.ended && !v.older.bounded && len(v.older.entries) < maxOlder &&
		len(v.recent()) >= monitor.LedgerRecent && v.Len()-v.Table().Cursor() < nearEnd
}

// nextCursor is where the next page begins: below the last entry of its kind.
func (v *DeadLetters) nextCursor() int64 {
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

// merge takes over a page of the ledger, unless it answers another filter.
func (v *DeadLetters) merge(page *monitor.LedgerPage) {
	if page == nil || !page.Filter.Open && !page.Filter.Decided || !v.sameFilter(&page.Filter) {
		return
	}
	o := &v.older
	continues := page.From == v.nextCursor() && page.Filter.Decided == o.decided && !o.ended
	if page.Filter.Open && !page.Bounded { // waiting entries that are missing from the page were decided meanwhile
		still := make(map[int64]bool, len(page.List))
		for i := range page.List {
			still[page.List[i].ID] = true
		}
		maps.DeleteFunc(o.entries, func(id int64, l *monitor.LedgerEntry) bool {
			return l.Open() && id < page.From && id >= page.Next && !still[id]
		})
	}
	for i := range page.List {
		if _, known := o.entries[page.List[i].ID]; known || continues {
			o.entries[page.List[i].ID] = &page.List[i]
		}
	}
	if !continues {
		return
	}
	o.bounded = page.Bounded && len(page.List) == 0
	if o.next = page.Next; page.Next == 0 {
		_, decided := v.kinds()
		o.ended = o.decided || !decided
		o.decided = true
	}
}

func (v *DeadLetters) sameFilter(of *monitor.DeadLetterFilter) bool {
	want := v.narrowed()
	return of.Reason == want.Reason && of.Action == want.Action && of.Worker == want.Worker &&
		of.Execution == want.Execution && of.MaxAge == want.MaxAge &&
		(of.Open || slices.Equal(of.Decisions, want.Decisions))
}

// entries are the newest entries and then the older ones, waiting ones first. Once older pages were
// read, entries that newer ones push out of the polls are kept, so that no gap opens.
func (v *DeadLetters) entries() []*monitor.LedgerEntry {
	if v.recent() == nil {
		return nil
	}
	paged := v.older.next != 0 || v.older.ended || len(v.older.entries) > 0
	var list []*monitor.LedgerEntry
	recent := map[int64]bool{}
	for i := range v.recent() {
		l := &v.recent()[i]
		list, recent[l.ID] = append(list, l), true
		if paged {
			v.older.entries[l.ID] = l
		}
	}
	var further []*monitor.LedgerEntry
	for id, l := range v.older.entries {
		if !recent[id] {
			further = append(further, l)
		}
	}
	slices.SortFunc(further, func(x, y *monitor.LedgerEntry) int {
		switch {
		case x.Open() == y.Open():
			return cmp.Compare(y.ID, x.ID)
		case x.Open():
			return -1
		default:
			return 1
		}
	})
	return append(list, further...)
}

// more says whether the ledger goes on below the list; empty if not.
func (v *DeadLetters) more() string {
	switch err := v.env.Data.Fresh(screen.FeedLedger).Err; {
	case v.older.ended || len(v.recent()) < monitor.LedgerRecent:
		return ""
	case err != nil:
		return "more below, which cannot be read: " + err.Error()
	case len(v.older.entries) >= maxOlder:
		return "no more than " + v.env.Num(maxOlder) + " are listed; a filter narrows them"
	case v.older.bounded:
		return "the search stopped at its bound; G goes on"
	default:
		return "more below"
	}
}

// narrowed is the part of the filter that the database can apply.
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
		switch value := t.Values[0]; t.Field {
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
			if decision := strings.ToLower(value); slices.Contains(monitor.DeadLetterDecisions, decision) {
				f.Decisions = []string{decision}
			}
		case "age":
			if t.Op == filter.Less || t.Op == filter.LessEqual {
				f.MaxAge = time.Duration(t.Number * float64(time.Second))
			}
		}
	}
	return f
}
