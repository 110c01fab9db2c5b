package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
)

// The bounds of reading all of a list.
const (
	// wholePage is how many rows are read at once, wholePageTime how long that may take.
	wholePage     = 1_000
	wholePageTime = 10 * time.Second
)

// fetched is a row of a list as it was read, with the key that it has there.
type fetched struct {
	key   string
	value any
}

// whole reads all of a list from the database, page after page, also what no view
// holds. What takes the rows is told whether more come, and says whether it wants
// them. It is bounded when the search has stopped before it had looked at everything.
// It holds the question as it was asked, and touches nothing of the model.
type whole func(ctx context.Context, take func(rows []fetched, more bool) (goOn bool, err error)) (bounded bool, err error)

// page reads the rows of a list beyond a cursor, and says where the next page begins.
type page[C comparable] func(ctx context.Context, cursor C) (rows []fetched, next C, bounded bool, err error)

// through reads page after page, each in its own time, until there are no more or
// what takes them has enough. The zero cursor ends, and begins where none is given.
func through[C comparable](from C, read page[C]) whole {
	return func(ctx context.Context, take func([]fetched, bool) (bool, error)) (bool, error) {
		var none C
		for cursor := from; ; {
			rows, next, bounded, err := inTime(ctx, cursor, read)
			if err != nil {
				return false, err
			}
			more := next != none && next != cursor
			goOn, err := take(rows, more)
			if err != nil || !goOn || !more {
				return bounded && next == none, err
			}
			cursor = next
		}
	}
}

func inTime[C comparable](ctx context.Context, cursor C, read page[C]) ([]fetched, C, bool, error) {
	of, cancel := context.WithTimeout(ctx, wholePageTime)
	defer cancel()
	rows, next, bounded, err := read(of, cursor)
	switch {
	case err == nil:
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		err = fmt.Errorf("no answer within %s", wholePageTime)
	default:
		err = reason(err)
	}
	return rows, next, bounded, err
}

// after reads one list and then another.
func after(first, second whole) whole {
	return func(ctx context.Context, take func([]fetched, bool) (bool, error)) (bool, error) {
		enough := false
		bounded, err := first(ctx, func(rows []fetched, _ bool) (bool, error) {
			goOn, err := take(rows, true)
			enough = !goOn
			return goOn, err
		})
		if err != nil || enough {
			return bounded, err
		}
		also, err := second(ctx, take)
		return bounded || also, err
	}
}

// rowsOf are those rows of a page that are wanted.
func rowsOf[T any](list []T, row func(*T) (key int64, value any, wanted bool)) []fetched {
	rows := make([]fetched, 0, len(list))
	for i := range list {
		if key, value, wanted := row(&list[i]); wanted {
			rows = append(rows, fetched{strconv.FormatInt(key, 10), value})
		}
	}
	return rows
}

// all reads every row of the open list that its filter matches, in the way in which
// the database has them; nil where the view holds all that there is.
func (m *Model) all() whole {
	r := m.source
	switch m.view {
	case keymap.InExecutions:
		return allExecutions(r, m.executions.Query())
	case keymap.InWorkflows:
		return allWorkflows(r, m.workflows.Query())
	case keymap.InInquiries:
		return allInquiries(r, m.inquiries.Query())
	case keymap.InDeadLetters:
		if ask, ok := m.letters.All(); ok {
			return allLetters(r, ask)
		}
	}
	return nil
}

// boundText says how far a search has come that stopped before it had looked at
// everything.
func (m *Model) boundText() string {
	if q := m.executions.Query(); m.view == keymap.InExecutions && q.ByParams() {
		end := "newest"
		if q.Oldest {
			end = "oldest"
		}
		return "only the " + end + " " + m.env.Num(monitor.ChoiceBound) + " were looked at: narrow it with status:, age< or id:a..b"
	}
	return "the search stopped at its bound; older matches may exist"
}

func allExecutions(r Reader, filter monitor.ExecutionFilter) whole {
	filter.Limit = wholePage
	looked := int64(0)
	return through(0, func(ctx context.Context, cursor int64) ([]fetched, int64, bool, error) {
		p, err := settled(r.Executions(ctx, filter, cursor))
		if err != nil {
			return nil, 0, false, err
		}
		if cursor == 0 {
			looked = 0
		}
		if looked += p.Looked; looked >= monitor.ChoiceBound && p.Next != 0 {
			p.Next, p.Bounded = 0, true
		}
		return rowsOf(p.List, func(x *monitor.Execution) (int64, any, bool) { return x.ID, *x, true }), p.Next, p.Bounded, nil
	})
}

func allWorkflows(r Reader, filter monitor.WorkflowFilter) whole {
	filter.Limit = wholePage
	return through(0, func(ctx context.Context, cursor int64) ([]fetched, int64, bool, error) {
		p, err := settled(r.Workflows(ctx, filter, cursor))
		if err != nil {
			return nil, 0, false, err
		}
		return rowsOf(p.List, func(w *monitor.Workflow) (int64, any, bool) { return w.Execution, *w, true }), p.Next, p.Bounded, nil
	})
}

func allInquiries(r Reader, filter monitor.InquiryFilter) whole {
	filter.Limit = wholePage
	return through("", func(ctx context.Context, cursor string) ([]fetched, string, bool, error) {
		p, err := settled(r.Inquiries(ctx, filter, cursor))
		if err != nil {
			return nil, "", false, err
		}
		return rowsOf(p.List, func(i *monitor.Inquiry) (int64, any, bool) { return i.ID, *i, true }), p.Next, p.Bounded, nil
	})
}

// allLetters reads those that wait and then the others, as the list has them.
func allLetters(r Reader, ask screen.AllLetters) whole {
	part := func(open bool) whole {
		filter := ask.Filter
		filter.Open, filter.Decided, filter.Limit = open, !open, wholePage
		return through(0, func(ctx context.Context, cursor int64) ([]fetched, int64, bool, error) {
			p, err := settled(r.LedgerList(ctx, filter, cursor))
			if err != nil {
				return nil, 0, false, err
			}
			return rowsOf(p.List, ask.Row), p.Next, p.Bounded, nil
		})
	}
	switch {
	case !ask.Decided:
		return part(true)
	case !ask.Waiting:
		return part(false)
	default:
		return after(part(true), part(false))
	}
}

// errEnough ends an export of dead letters before its end.
var errEnough = errors.New("no more rows are wanted")

// lettersInFull reads dead letters by their ids with all that the ledger has, as many at
// once as fit in memory.
func lettersInFull(r Reader, ids []int64) whole {
	return func(ctx context.Context, take func([]fetched, bool) (bool, error)) (bool, error) {
		for some := range slices.Chunk(ids, wholePage) {
			_, err := r.ExportLetters(ctx, monitor.DeadLetterFilter{IDs: some}, 0, func(l *monitor.ExportedLetter) error {
				goOn, err := take([]fetched{{strconv.FormatInt(l.ID, 10), *l}}, true)
				if err == nil && !goOn {
					err = errEnough
				}
				return err
			})
			switch {
			case errors.Is(err, errEnough):
				return false, nil
			case err != nil:
				return false, reason(err)
			}
		}
		return false, nil
	}
}

// olderActs reads the acts that are recorded below those that the log holds; nil where
// it holds all.
func (m *Model) olderActs() whole {
	if m.view != keymap.InLog || m.operations.Older() == 0 {
		return nil
	}
	r, row := m.source, m.operations.Row()
	return through(m.operations.Older(), func(ctx context.Context, below int64) ([]fetched, int64, bool, error) {
		p, err := settled(r.Audit(ctx, below))
		if err != nil {
			return nil, 0, false, err
		}
		return rowsOf(p.List, row), p.Next, false, nil
	})
}

// those reads rows of the open list by their keys, also such as no view holds; nil
// where rows cannot be read so.
func (m *Model) those(keys []string) whole {
	ids, r := numbersOf(keys), m.source
	switch m.view {
	case keymap.InExecutions:
		return eachOf(ids, func(some []int64) whole { return allExecutions(r, monitor.ExecutionFilter{IDs: some}) })
	case keymap.InWorkflows:
		return eachOf(ids, func(some []int64) whole { return allWorkflows(r, monitor.WorkflowFilter{IDs: some}) })
	case keymap.InInquiries:
		return eachOf(ids, func(some []int64) whole { return allInquiries(r, monitor.InquiryFilter{IDs: some}) })
	case keymap.InDeadLetters:
		ask, ok := m.letters.All()
		if !ok {
			return nil
		}
		return eachOf(ids, func(some []int64) whole {
			return through(0, func(ctx context.Context, _ int64) ([]fetched, int64, bool, error) {
				p, err := settled(r.LedgerList(ctx, monitor.DeadLetterFilter{IDs: some}, 0))
				if err != nil {
					return nil, 0, false, err
				}
				return rowsOf(p.List, ask.Any), 0, false, nil
			})
		})
	default:
		return nil
	}
}

// eachOf reads rows by their ids, some at a time.
func eachOf(ids []int64, read func(some []int64) whole) whole {
	var all whole
	for some := range slices.Chunk(ids, wholePage) {
		if one := read(some); all == nil {
			all = one
		} else {
			all = after(all, one)
		}
	}
	return all
}

// numbersOf are the keys that are numbers.
func numbersOf(keys []string) []int64 {
	ids := make([]int64, 0, len(keys))
	for _, key := range keys {
		if id, err := strconv.ParseInt(key, 10, 64); err == nil {
			ids = append(ids, id)
		}
	}
	return ids
}
