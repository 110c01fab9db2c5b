// Package export writes data of the dashboard to files and to the clipboard of the terminal.
//
// A Set contains rows that a view has loaded and rows that it reads from the database, page by page. It uses no
// view, so that it can run beside the dashboard.
//
// Secrets are masked as on the screen. Characters that control a terminal are escaped, or left out in plain text.
// Files have mode 0600 and never overwrite others; an incomplete file has the suffix .part.
package export

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/attune-go/attune/core/act"
	"github.com/attune-go/attune/core/explain"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/screen"
)

const (
	// Page is the number of rows in one read; pageTimeout ends the read.
	Page        = 1_000
	pageTimeout = 10 * time.Second
)

// Reader reads rows; *monitor.Monitor is one.
type Reader interface {
	Executions(ctx context.Context, filter monitor.ExecutionFilter, cursor int64) (*monitor.Executions, error)
	Workflows(ctx context.Context, filter monitor.WorkflowFilter, cursor int64) (*monitor.Workflows, error)
	Inquiries(ctx context.Context, filter monitor.InquiryFilter, cursor string) (*monitor.InquiryPage, error)
	LedgerList(ctx context.Context, filter monitor.DeadLetterFilter, cursor int64) (*monitor.LedgerPage, error)
	ExportDeadLetters(
		ctx context.Context, filter monitor.DeadLetterFilter, limit int, each func(*monitor.ExportedDeadLetter) error,
	) (int, error)
	WholeAudit(ctx context.Context, below int64) (*monitor.Audit, error)
}

// Row is a row with its key in the list.
type Row struct {
	Key   string
	Value any
}

// Rows reads a whole list from the database, page by page. It calls take with each page and whether more follow,
// until take returns false. It returns true if the search stopped at its bound before the end.
type Rows func(ctx context.Context, take func(rows []Row, more bool) (goOn bool, err error)) (bounded bool, err error)

// page reads the rows after a cursor, and returns the cursor of the next page.
type page[C comparable] func(ctx context.Context, cursor C) (rows []Row, next C, bounded bool, err error)

// through reads page by page. The zero cursor is the first page, and as next cursor the end.
func through[C comparable](from C, read page[C]) Rows {
	return func(ctx context.Context, take func([]Row, bool) (bool, error)) (bool, error) {
		var none C
		for cursor := from; ; {
			rows, next, bounded, err := readPage(ctx, cursor, read)
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

func readPage[C comparable](ctx context.Context, cursor C, read page[C]) ([]Row, C, bool, error) {
	of, cancel := context.WithTimeout(ctx, pageTimeout)
	defer cancel()
	rows, next, bounded, err := read(of, cursor)
	switch {
	case err == nil:
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		err = fmt.Errorf("no answer within %s", pageTimeout)
	default:
		err = explain.Trouble(monitor.SourceDatabase, err).Because(err)
	}
	return rows, next, bounded, err
}

// after reads one list and then another.
func after(first, second Rows) Rows {
	return func(ctx context.Context, take func([]Row, bool) (bool, error)) (bool, error) {
		enough := false
		bounded, err := first(ctx, func(rows []Row, _ bool) (bool, error) {
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

func rowsOf[T any](list []T, row func(*T) (key int64, value any, wanted bool)) []Row {
	rows := make([]Row, 0, len(list))
	for i := range list {
		if key, value, wanted := row(&list[i]); wanted {
			rows = append(rows, Row{strconv.FormatInt(key, 10), value})
		}
	}
	return rows
}

// One reads a single value.
func One[T any](read func(ctx context.Context) (*T, error), value func(*T) any) Rows {
	return through(0, func(ctx context.Context, _ int) ([]Row, int, bool, error) {
		one, err := screen.Answered(read(ctx))
		if err != nil {
			return nil, 0, false, err
		}
		return []Row{{Value: value(one)}}, 0, false, nil
	})
}

// Executions reads the executions that a filter matches, however many it has to search. It reports to progress, if that
// is not nil, how many were searched, and of about how many.
func Executions(r Reader, filter monitor.ExecutionFilter, progress *act.Progress) Rows {
	filter.Limit, filter.InOrder = Page, true
	looked := int64(0)
	return through(0, func(ctx context.Context, cursor int64) ([]Row, int64, bool, error) {
		p, err := screen.Answered(r.Executions(ctx, filter, cursor))
		if err != nil {
			return nil, 0, false, err
		}
		if cursor == 0 {
			looked = 0
		}
		if looked += p.Looked; progress != nil {
			progress.Set(looked, looked+p.Left)
		}
		return rowsOf(p.List,
			func(x *monitor.Execution) (int64, any, bool) { return x.ID, *x, true }), p.Next, p.Bounded, nil
	})
}

// Workflows reads the workflows that a filter matches.
func Workflows(r Reader, filter monitor.WorkflowFilter) Rows {
	filter.Limit = Page
	return through(0, func(ctx context.Context, cursor int64) ([]Row, int64, bool, error) {
		p, err := screen.Answered(r.Workflows(ctx, filter, cursor))
		if err != nil {
			return nil, 0, false, err
		}
		return rowsOf(p.List,
			func(w *monitor.Workflow) (int64, any, bool) { return w.Execution, *w, true }), p.Next, p.Bounded, nil
	})
}

// Inquiries reads the inquiries that a filter matches.
func Inquiries(r Reader, filter monitor.InquiryFilter) Rows {
	filter.Limit = Page
	return through("", func(ctx context.Context, cursor string) ([]Row, string, bool, error) {
		p, err := screen.Answered(r.Inquiries(ctx, filter, cursor))
		if err != nil {
			return nil, "", false, err
		}
		return rowsOf(p.List,
			func(i *monitor.Inquiry) (int64, any, bool) { return i.ID, *i, true }), p.Next, p.Bounded, nil
	})
}

// DeadLetters reads waiting dead letters first and decided ones after them, in the order of the list.
func DeadLetters(r Reader, ask screen.LedgerExport) Rows {
	part := func(open bool) Rows {
		filter := ask.Filter
		filter.Open, filter.Decided, filter.Limit = open, !open, Page
		return through(0, func(ctx context.Context, cursor int64) ([]Row, int64, bool, error) {
			p, err := screen.Answered(r.LedgerList(ctx, filter, cursor))
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

// errEnough stops ExportDeadLetters.
var errEnough = errors.New("no more rows are wanted")

// DeadLettersInFull reads dead letters by their ids with their messages.
func DeadLettersInFull(r Reader, ids []int64) Rows {
	return func(ctx context.Context, take func([]Row, bool) (bool, error)) (bool, error) {
		for some := range slices.Chunk(ids, Page) {
			_, err := r.ExportDeadLetters(ctx, monitor.DeadLetterFilter{IDs: some}, 0,
				func(l *monitor.ExportedDeadLetter) error {
					goOn, err := take([]Row{{strconv.FormatInt(l.ID, 10), *l}}, true)
					if err == nil && !goOn {
						err = errEnough
					}
					return err
				})
			switch {
			case errors.Is(err, errEnough):
				return false, nil
			case err != nil:
				return false, explain.Trouble(monitor.SourceDatabase, err).Because(err)
			}
		}
		return false, nil
	}
}

// Acts reads the recorded acts of operators below an id.
func Acts(r Reader, below int64, row func(*monitor.AuditEntry) (key int64, value any, wanted bool)) Rows {
	return through(below, func(ctx context.Context, below int64) ([]Row, int64, bool, error) {
		p, err := screen.Answered(r.WholeAudit(ctx, below))
		if err != nil {
			return nil, 0, false, err
		}
		return rowsOf(p.List, row), p.Next, false, nil
	})
}

// DeadLettersByID reads dead letters by their ids. The filter of the list does not matter.
func DeadLettersByID(r Reader, ids []int64, row func(*monitor.LedgerEntry) (key int64, value any, wanted bool)) Rows {
	return ByID(ids, func(some []int64) Rows {
		return through(0, func(ctx context.Context, _ int64) ([]Row, int64, bool, error) {
			p, err := screen.Answered(r.LedgerList(ctx, monitor.DeadLetterFilter{IDs: some}, 0))
			if err != nil {
				return nil, 0, false, err
			}
			return rowsOf(p.List, row), 0, false, nil
		})
	})
}

// ByID reads rows by their ids, a page of ids at a time.
func ByID(ids []int64, read func(some []int64) Rows) Rows {
	var all Rows
	for some := range slices.Chunk(ids, Page) {
		if one := read(some); all == nil {
			all = one
		} else {
			all = after(all, one)
		}
	}
	return all
}
