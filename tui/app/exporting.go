package app

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/act"
	"github.com/attune-go/attune/tui/carry"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/widget"
)

// The bounds of an export.
const (
	// exportPage is how many rows are read at once of a list that is longer than what
	// the view holds, exportMost how many there are in one file at most.
	exportPage = 1_000
	exportMost = 100_000
	// exportTime ends an export that does not end by itself.
	exportTime = 10 * time.Minute
)

// kindExport is the kind under which the log has what was written to files.
const kindExport act.Kind = "export"

// haul is what is to be written to a file. It is frozen: nothing that is read later
// changes it.
type haul struct {
	// name is the beginning of the file's name, what says it for people.
	name, what string
	// values are what is held already, more what reads the rest; nil where there is
	// none. note says what is missing nevertheless.
	values []any
	more   func(ctx context.Context, take func(values []any) error) (note string, err error)
	note   string
}

// haul is what an export of the open view writes: the marked rows, else all that the
// filter matches, else the one thing that is shown.
func (m *Model) haul() (*haul, bool) {
	if m.marks() > 0 {
		return m.markedHaul(), true
	}
	list, listed := m.screen().(screen.Listed)
	if s, ok := m.screen().(screen.Shows); ok && (!listed || m.table() != nil) {
		if thing, ok := s.Shows(); ok {
			return &haul{name: thing.Name, what: thing.Name, values: []any{thing.Value}}, true
		}
	}
	if !listed || list.Len() == 0 {
		return nil, false
	}
	h := &haul{name: string(m.view)}
	if m.view == keymap.InExecutions {
		h.what, h.more = "all executions that the filter matches", m.executionPages(m.executions.Query())
		return h, true
	}
	for i := range list.Len() {
		h.values = append(h.values, list.Thing(i).Value)
	}
	h.what = "the " + m.env.Num(int64(len(h.values))) + " rows of the list"
	if cut, ok := list.(screen.Cut); ok {
		h.note = cut.Beyond()
	}
	return h, true
}

// marks is how many rows of the open list are marked.
func (m *Model) marks() int {
	table := m.table()
	if _, listed := m.screen().(screen.Listed); !listed || table == nil {
		return 0
	}
	return table.Marks()
}

// markedHaul is the marked rows. Executions are marked by the filter without being
// listed, so those that are not are read.
func (m *Model) markedHaul() *haul {
	things, missing := m.markedThings()
	h := &haul{name: string(m.view) + "-marked", what: m.env.Num(int64(m.marks())) + " marked rows", values: valuesOf(things)}
	switch {
	case len(missing) == 0:
	case m.view == keymap.InExecutions:
		h.more = m.executionsOf(executionIDsOf(missing))
	default:
		h.note = m.env.Num(int64(len(missing))) + " marked rows are no longer in the list"
	}
	return h
}

// executionsOf reads executions by their ids.
func (m *Model) executionsOf(ids []int64) func(context.Context, func([]any) error) (string, error) {
	source := m.source
	return func(ctx context.Context, take func([]any) error) (string, error) {
		gone := 0
		for some := range slices.Chunk(ids, exportPage) {
			page, err := source.Executions(ctx, monitor.ExecutionFilter{IDs: some, Limit: exportPage}, 0)
			if err != nil {
				return "", reason(err)
			}
			if err := take(executionValues(page.List)); err != nil {
				return "", err
			}
			gone += len(some) - len(page.List)
		}
		if gone > 0 {
			return fmt.Sprintf("%d marked executions are gone", gone), nil
		}
		return "", nil
	}
}

func executionValues(list []monitor.Execution) []any {
	values := make([]any, len(list))
	for i := range list {
		values[i] = list[i]
	}
	return values
}

func valuesOf(things []screen.Thing) []any {
	values := make([]any, len(things))
	for i := range things {
		values[i] = things[i].Value
	}
	return values
}

// executionPages reads all executions that a filter matches, page by page.
func (m *Model) executionPages(filter monitor.ExecutionFilter) func(context.Context, func([]any) error) (string, error) {
	source := m.source
	filter.Limit = exportPage
	return func(ctx context.Context, take func([]any) error) (string, error) {
		for cursor, n := int64(0), 0; ; {
			page, err := source.Executions(ctx, filter, cursor)
			if err != nil {
				return "", reason(err)
			}
			rows := page.List[:min(len(page.List), exportMost-n)]
			if err := take(executionValues(rows)); err != nil {
				return "", err
			}
			n += len(rows)
			switch {
			case page.Next == 0 && page.Bounded:
				return "the search stopped at its bound; older matches may exist", nil
			case page.Next == 0:
				return "", nil
			case n >= exportMost:
				return fmt.Sprintf("cut at %d rows; narrow the filter for the rest", exportMost), nil
			}
			cursor = page.Next
		}
	}
}

// openExport opens the menu of the forms in which the view can be written.
func (m *Model) openExport() {
	if m.tooSmall() {
		return
	}
	var offers []offer
	h, ok := m.haul()
	title := "export"
	if ok {
		title = "export " + h.what
		for _, form := range []struct{ key, label, ending string }{{"j", "JSONL", ".jsonl"}, {"c", "CSV", ".csv"}} {
			path, problem := m.exportPath(h.name, form.ending)
			help := path
			if h.note != "" {
				help = h.note + " · " + path
			}
			choice := widget.Choice{Key: form.key, Label: form.label, Help: help, Not: problem}
			offers = append(offers, offer{choice, func() tea.Cmd { return m.export(h, path) }})
		}
	}
	if op := m.exportUnderWay(); op != nil {
		choice := widget.Choice{Key: "x", Label: "stop", Help: op.Title + ", which is being written"}
		offers = append(offers, offer{choice, func() tea.Cmd { m.stopExport(op); return nil }})
	}
	if len(offers) == 0 {
		m.say("There is nothing here to export.")
		return
	}
	m.openOffers(title, offers)
}

// exportUnderWay is the newest export that is being written, or nil.
func (m *Model) exportUnderWay() *act.Operation {
	for _, op := range slices.Backward(m.env.Session) {
		if op.Order.Kind == kindExport {
			if _, runs := m.underWay[op]; runs {
				return op
			}
		}
	}
	return nil
}

func (m *Model) stopExport(op *act.Operation) {
	if cancel, runs := m.underWay[op]; runs {
		op.Remark = "stopped by hand"
		cancel()
	}
}

// exportNote says how far an export has come.
func (m *Model) exportNote() string {
	op := m.exportUnderWay()
	if op == nil {
		return ""
	}
	done, _ := op.Progress.Read()
	return "writing " + widget.Clean(op.Title) + ": " + m.env.Num(done) + " rows · e, then x stops it   "
}

var unfit = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// exportPath is where a file goes that was given no name.
func (m *Model) exportPath(name, ending string) (path, problem string) {
	if m.opts.Exports == "" {
		return "", "no folder is known for it: :export FILE names one"
	}
	context := m.opts.Context
	if context == "" {
		context = "default"
	}
	base := strings.Trim(unfit.ReplaceAllString(context+"-"+name, "-"), "-.")
	return filepath.Join(m.opts.Exports, base[:min(len(base), 100)]+"-"+m.env.Now.UTC().Format("20060102T150405Z")+ending), ""
}

// export writes a file beside the dashboard. It counts as under way, so that leaving
// asks first, and reports when it is written.
func (m *Model) export(h *haul, path string) tea.Cmd {
	return m.write(h.name, h.what, func(ctx context.Context, progress *act.Progress) (*act.Receipt, error) {
		return writeHaul(ctx, h, path, progress)
	})
}

// write runs what writes a file as an operation of the log.
func (m *Model) write(title, what string, work func(ctx context.Context, progress *act.Progress) (*act.Receipt, error)) tea.Cmd {
	m.lastOperation++
	op := &act.Operation{
		ID: m.lastOperation, Order: act.Order{Kind: kindExport, Target: act.Target{Name: what}}, Title: "export of " + title, State: act.Running,
		Began: m.env.Clock, Ran: m.env.Clock, Progress: &act.Progress{},
	}
	m.remember(op)
	ctx, cancel := context.WithTimeout(m.ctx, exportTime)
	m.underWay[op] = cancel
	m.workers.Add(1)
	here := m.place
	here.running.Add(1)
	return func() (msg tea.Msg) {
		defer m.workers.Done()
		defer here.running.Done()
		defer cancel()
		defer func() {
			if fault := recover(); fault != nil {
				msg = runMsg{op: op, err: fmt.Errorf("the export failed: %v", fault)}
			}
		}()
		receipt, err := work(ctx, op.Progress)
		if errors.Is(err, context.DeadlineExceeded) {
			err = fmt.Errorf("stopped after %s", exportTime)
		}
		return runMsg{op: op, receipt: receipt, err: err}
	}
}

// writeHaul writes a haul into a new file, in the form that its name asks for.
func writeHaul(ctx context.Context, h *haul, path string, progress *act.Progress) (*act.Receipt, error) {
	file, err := carry.Create(path)
	if err != nil {
		return nil, err
	}
	out := &sheet{file: file, csv: strings.EqualFold(filepath.Ext(path), ".csv"), progress: progress}
	err = out.add(h.values)
	note := h.note
	if h.more != nil && err == nil {
		note, err = h.more(ctx, func(values []any) error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return out.add(values)
		})
	}
	if err != nil {
		return unfinished(err, file.Leave(), out.rows)
	}
	if err := file.Finish(); err != nil {
		return nil, err
	}
	rows := "rows"
	if out.rows == 1 {
		rows = "row"
	}
	receipt := &act.Receipt{Text: fmt.Sprintf("%d %s, %d bytes, secrets masked.", out.rows, rows, file.Size()), Next: path}
	if note != "" {
		receipt.Lines = []act.Line{{Tone: act.Warn, Text: note}}
	}
	return receipt, nil
}

// unfinished says what is left of an export that did not come to its end.
func unfinished(err error, part string, rows int) (*act.Receipt, error) {
	switch {
	case errors.Is(err, context.Canceled) && part != "":
		return &act.Receipt{Text: fmt.Sprintf("Stopped: the %d rows until then are kept.", rows), Next: part, Partly: true}, nil
	case errors.Is(err, context.Canceled):
		return &act.Receipt{Text: "Stopped: nothing was written.", Partly: true}, nil
	case part != "":
		err = fmt.Errorf("%w; the %d rows until then are in %s", err, rows, part)
	}
	return nil, err
}

// sheet writes values into a file, as lines of JSON or as CSV.
type sheet struct {
	file     *carry.File
	csv      bool
	columns  []string
	rows     int
	progress *act.Progress
}

func (s *sheet) add(values []any) error {
	for _, value := range values {
		line, err := carry.JSON(value)
		if err == nil && s.csv {
			line, err = s.record(value, line)
		} else {
			line += "\n"
		}
		if err == nil {
			err = s.file.WriteString(line)
		}
		if err != nil {
			return err
		}
		s.rows++
		s.progress.Set(int64(s.rows), 0)
	}
	return nil
}

// record is a value as a line of CSV, before the first of which stand the names of
// the columns.
func (s *sheet) record(value any, line string) (string, error) {
	head := ""
	if s.columns == nil {
		s.columns = carry.Columns(value)
		var err error
		if head, err = carry.Line(s.columns); err != nil {
			return "", err
		}
	}
	record, err := carry.Record(s.columns, line)
	if err != nil {
		return "", err
	}
	text, err := carry.Line(record)
	return head + text, err
}
