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

	"github.com/attune-go/attune/tui/act"
	"github.com/attune-go/attune/tui/carry"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/palette"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/screen/operations"
	"github.com/attune-go/attune/tui/widget"
)

// The bounds of an export.
const (
	// exportMost is how many rows there are in one file at most.
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
	// values are what is held already, rest reads what is not; nil where there is
	// nothing. note says what is missing nevertheless.
	values []any
	rest   whole
	note   string
	// wanted is how many rows there should be, where that is known: of those that were
	// marked some may be gone.
	wanted int
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
	return m.listHaul(list), true
}

// listHaul is all that the filter of a list matches. What the view does not hold is
// read from the database; where it holds everything, that is written in its order.
func (m *Model) listHaul(list screen.Listed) *haul {
	h := &haul{name: string(m.view)}
	beyond := ""
	if cut, ok := list.(screen.Cut); ok {
		beyond = cut.Beyond()
	}
	if rest := m.all(); rest != nil && (beyond != "" || m.view == keymap.InExecutions) {
		h.rest, h.what = rest, "all "+things(m.view)+" that the filter matches, at most "+m.env.Num(exportMost)
		return h
	}
	for i := range list.Len() {
		h.values = append(h.values, valuesOf([]screen.Thing{list.Thing(i)})...)
	}
	if h.rest = m.olderActs(); h.rest != nil {
		h.what = "all acts that are recorded, at most " + m.env.Num(exportMost)
		return h
	}
	h.what, h.note = "the "+m.env.Num(int64(len(h.values)))+" rows of the list", beyond
	return h
}

// things are what a list that is read in pages lists.
func things(view screen.View) string {
	if view == keymap.InDeadLetters {
		return "dead letters"
	}
	return string(view)
}

// marks is how many rows of the open list are marked.
func (m *Model) marks() int {
	table := m.table()
	if _, listed := m.screen().(screen.Listed); !listed || table == nil {
		return 0
	}
	return table.Marks()
}

// markedHaul is the marked rows. What is marked by the filter without being listed is
// read.
func (m *Model) markedHaul() *haul {
	rows, missing := m.markedThings()
	h := &haul{name: string(m.view) + "-marked", what: m.env.Num(int64(m.marks())) + " marked rows", values: valuesOf(rows)}
	if len(missing) == 0 {
		return h
	}
	if h.rest = m.those(missing); h.rest != nil {
		h.wanted = m.marks()
	} else {
		h.note = m.env.Num(int64(len(missing))) + " marked rows are no longer in the list"
	}
	return h
}

func valuesOf(things []screen.Thing) []any {
	values := make([]any, 0, len(things))
	for i := range things {
		if acts, several := things[i].Value.(operations.Bundle); several {
			for j := range acts {
				values = append(values, acts[j])
			}
			continue
		}
		values = append(values, things[i].Value)
	}
	return values
}

// each gives everything that is to be written to a function, and says what is missing
// in it.
func (h *haul) each(ctx context.Context, add func(value any) error) (note string, err error) {
	n, cut := 0, false
	give := func(value any) error {
		n++
		return add(value)
	}
	for _, value := range h.values {
		if err := give(value); err != nil {
			return "", err
		}
	}
	if h.rest == nil {
		return h.note, nil
	}
	bounded, err := h.rest(ctx, func(rows []fetched, more bool) (bool, error) {
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
		room := exportMost - n
		cut = len(rows) > room || len(rows) == room && more
		for i := range rows[:min(len(rows), room)] {
			if err := give(rows[i].value); err != nil {
				return false, err
			}
		}
		return !cut, nil
	})
	switch {
	case err != nil:
		return "", err
	case cut:
		return fmt.Sprintf("cut at %d rows; narrow the filter for the rest", exportMost), nil
	case bounded:
		return "the search stopped at its bound; older matches may exist", nil
	case n < h.wanted:
		return fmt.Sprintf("%d of the marked rows are gone", h.wanted-n), nil
	}
	return h.note, nil
}

// exportCommand writes what the view has to a file that is named.
func (m *Model) exportCommand() command {
	entry := palette.Entry{
		Name: "export", Arg: "[FILE]", Key: m.keyOf(keymap.Export),
		Help: "write the marked rows, or all that match; .csv makes CSV",
	}
	return command{entry, m.exportTo}
}

// exportTo writes the view to a file. A relative name is one in the folder in which the dashboard was started, and
// ~ is the folder of the user. Without a name the file goes where the key puts it.
func (m *Model) exportTo(name string) (tea.Cmd, error) {
	h, ok := m.haul()
	if !ok {
		return nil, errors.New("there is nothing here to export")
	}
	if name == "" {
		path, problem := m.exportPath(h.name, ".jsonl")
		if problem != "" {
			return nil, errors.New(problem)
		}
		return m.export(h, path), nil
	}
	if rest, ok := strings.CutPrefix(name, "~/"); ok {
		for _, entry := range m.opts.Environ {
			if home, ok := strings.CutPrefix(entry, "HOME="); ok {
				name = filepath.Join(home, rest)
			}
		}
	}
	path, err := filepath.Abs(name)
	if err != nil {
		return nil, fmt.Errorf("%q names no file: %w", name, err)
	}
	return m.export(h, path), nil
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

// export writes a file beside the dashboard, as an operation of the log. It counts as under way, so that leaving
// asks first, and reports when it is written.
func (m *Model) export(h *haul, path string) tea.Cmd {
	m.lastOperation++
	op := &act.Operation{
		ID: m.lastOperation, Order: act.Order{Kind: kindExport, Target: act.Target{Name: h.what}},
		Title: "export of " + h.name, State: act.Running,
		Began: m.env.Clock, Ran: m.env.Clock, Progress: &act.Progress{},
	}
	m.remember(op)
	return m.work(op, exportTime, "export", func(ctx context.Context) (*act.Receipt, error) {
		receipt, err := writeHaul(ctx, h, path, op.Progress)
		if errors.Is(err, context.DeadlineExceeded) {
			err = fmt.Errorf("stopped after %s", exportTime)
		}
		return receipt, err
	})
}

// writeHaul writes a haul into a new file, in the form that its name asks for.
func writeHaul(ctx context.Context, h *haul, path string, progress *act.Progress) (*act.Receipt, error) {
	file, err := carry.Create(path)
	if err != nil {
		return nil, err
	}
	out := &sheet{file: file, csv: strings.EqualFold(filepath.Ext(path), ".csv"), progress: progress}
	note, err := h.each(ctx, out.add)
	if err != nil {
		return unfinished(err, file.Leave(), out.rows)
	}
	if out.rows == 0 {
		file.Leave()
		return &act.Receipt{Text: "Nothing matches: no file was written.", Lines: warning(note)}, nil
	}
	if err := file.Finish(); err != nil {
		return nil, err
	}
	rows := "rows"
	if out.rows == 1 {
		rows = "row"
	}
	text := fmt.Sprintf("%d %s, %d bytes, secrets masked.", out.rows, rows, file.Size())
	return &act.Receipt{Text: text, Next: path, Lines: warning(note)}, nil
}

// warning is a note as a line of a receipt.
func warning(note string) []act.Line {
	if note == "" {
		return nil
	}
	return []act.Line{{Tone: act.Warn, Text: note}}
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

func (s *sheet) add(value any) error {
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
