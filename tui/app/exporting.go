package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/act"
	"github.com/attune-go/attune/tui/export"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/screen/operations"
	"github.com/attune-go/attune/tui/widget"
)

// exportTimeout ends an export that hangs.
const exportTimeout = 10 * time.Minute

// kindExport is the kind of exports in the log of operations.
const kindExport act.Kind = "export"

// exported returns the contents of an export: the marked rows, or else all matching rows, or else the thing that is
// shown.
func (m *Model) exported() (*export.Set, bool) {
	if m.marks() > 0 {
		return m.markedSet(), true
	}
	list, listed := m.screen().(screen.Listed)
	if s, ok := m.screen().(screen.Shows); ok && (!listed || m.table() != nil) {
		if thing, ok := s.Shows(); ok {
			return &export.Set{Name: thing.Name, What: thing.Name, Values: []any{thing.Value}}, true
		}
	}
	if !listed || list.Len() == 0 {
		return nil, false
	}
	return m.listSet(list), true
}

// listSet contains all rows that match the filter. Rows that are not loaded come from the database.
func (m *Model) listSet(list screen.Listed) *export.Set {
	h := &export.Set{Name: string(m.view)}
	beyond := ""
	if cut, ok := list.(screen.Cut); ok {
		beyond = cut.Beyond()
	}
	if rest := m.all(); rest != nil && (beyond != "" || m.view == keymap.InExecutions) {
		h.Rest, h.What = rest, "all "+things(m.view)+" that the filter matches, at most "+m.env.Num(export.Most)
		return h
	}
	for i := range list.Len() {
		h.Values = append(h.Values, valuesOf([]screen.Thing{list.Thing(i)})...)
	}
	if m.view == keymap.InLog && m.operations.Older() > 0 {
		h.Rest = export.Acts(m.source, m.operations.Older(), m.operations.Row())
		h.What = "all acts that are recorded, at most " + m.env.Num(export.Most)
		return h
	}
	h.What, h.Note = "the "+m.env.Num(int64(len(h.Values)))+" rows of the list", beyond
	return h
}

func things(view screen.View) string {
	if view == keymap.InDeadLetters {
		return "dead letters"
	}
	return string(view)
}

// marks is the number of marked rows in the open list.
func (m *Model) marks() int {
	table := m.table()
	if _, listed := m.screen().(screen.Listed); !listed || table == nil {
		return 0
	}
	return table.Marks()
}

// markedSet contains the marked rows. Rows that are not loaded come from the database.
func (m *Model) markedSet() *export.Set {
	rows, missing := m.markedThings()
	h := &export.Set{
		Name: string(m.view) + "-marked", What: m.env.Num(int64(m.marks())) + " marked rows", Values: valuesOf(rows),
	}
	if len(missing) == 0 {
		return h
	}
	if h.Rest = m.byKeys(missing); h.Rest != nil {
		h.Wanted = m.marks()
	} else {
		h.Note = m.env.Num(int64(len(missing))) + " marked rows are no longer in the list"
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

// exportTo writes the open view to a file. The name may begin with ~/; an empty one means the default name.
func (m *Model) exportTo(name string) (tea.Cmd, error) {
	h, ok := m.exported()
	if !ok {
		return nil, errors.New("there is nothing here to export")
	}
	if name == "" {
		path, problem := m.exportPath(h.Name, ".jsonl")
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

// openExport opens the menu of file formats.
func (m *Model) openExport() {
	if m.tooSmall() {
		return
	}
	var offers []offer
	h, ok := m.exported()
	title := "export"
	if ok {
		title = "export " + h.What
		for _, form := range []struct{ key, label, ending string }{{"j", "JSONL", ".jsonl"}, {"c", "CSV", ".csv"}} {
			path, problem := m.exportPath(h.Name, form.ending)
			help := path
			if h.Note != "" {
				help = h.Note + " · " + path
			}
			choice := widget.Choice{Key: form.key, Label: form.label, Help: help, Not: problem}
			offers = append(offers, offer{choice, func() tea.Cmd { return m.export(h, path) }})
		}
	}
	if op := m.exportUnderWay(); op != nil {
		choice := widget.Choice{Key: "x", Label: "stop", Help: op.Title + ", which is being written"}
		offers = append(offers, offer{choice, func() tea.Cmd { m.stopOperation(op); return nil }})
	}
	if len(offers) == 0 {
		m.say("There is nothing here to export.")
		return
	}
	m.openOffers(title, offers)
}

// exportUnderWay is the newest running export, or nil.
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

// exportNote is the progress of a running export.
func (m *Model) exportNote() string {
	op := m.exportUnderWay()
	if op == nil {
		return ""
	}
	done, _ := op.Progress.Read()
	return "writing " + widget.Clean(op.Title) + ": " + m.env.Num(done) + " rows · e, then x stops it   "
}

var unfit = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// exportPath is the default path of an export.
func (m *Model) exportPath(name, ending string) (path, problem string) {
	if m.opts.Exports == "" {
		return "", "no folder is known for it: :export FILE names one"
	}
	base := strings.Trim(unfit.ReplaceAllString(cmp.Or(m.opts.Context, "default")+"-"+name, "-"), "-.")
	return filepath.Join(m.opts.Exports,
		base[:min(len(base), 100)]+"-"+m.env.Now.UTC().Format("20060102T150405Z")+ending), ""
}

// export writes a file as an operation of the log. Quitting asks first while it runs.
func (m *Model) export(h *export.Set, path string) tea.Cmd {
	order := act.Order{Kind: kindExport, Target: act.Target{Name: h.What}}
	op := m.newOperation(order, "export of "+h.Name, act.Running)
	op.Ran = m.env.Clock
	return m.work(op, exportTimeout, "export", func(ctx context.Context) (*act.Receipt, error) {
		receipt, err := h.Write(ctx, path, op.Progress)
		if errors.Is(err, context.DeadlineExceeded) {
			err = fmt.Errorf("stopped after %s", exportTimeout)
		}
		return receipt, err
	})
}

// all reads every row that matches the filter of the open list; nil if all of them are loaded.
func (m *Model) all() export.Rows {
	switch m.view {
	case keymap.InExecutions:
		return export.Executions(m.source, m.executions.Query())
	case keymap.InWorkflows:
		return export.Workflows(m.source, m.workflows.Query())
	case keymap.InInquiries:
		return export.Inquiries(m.source, m.inquiries.Query())
	case keymap.InDeadLetters:
		if ask, ok := m.letters.All(); ok {
			return export.Letters(m.source, ask)
		}
	}
	return nil
}

// byKeys reads rows of the open list by their keys; nil if the database cannot.
func (m *Model) byKeys(keys []string) export.Rows {
	ids, r := numbersOf(keys), m.source
	switch m.view {
	case keymap.InExecutions:
		return export.ByID(ids, func(some []int64) export.Rows {
			return export.Executions(r, monitor.ExecutionFilter{IDs: some})
		})
	case keymap.InWorkflows:
		return export.ByID(ids, func(some []int64) export.Rows {
			return export.Workflows(r, monitor.WorkflowFilter{IDs: some})
		})
	case keymap.InInquiries:
		return export.ByID(ids, func(some []int64) export.Rows {
			return export.Inquiries(r, monitor.InquiryFilter{IDs: some})
		})
	case keymap.InDeadLetters:
		if ask, ok := m.letters.All(); ok {
			return export.LettersByID(r, ids, ask.Any)
		}
	}
	return nil
}

func numbersOf(keys []string) []int64 {
	ids := make([]int64, 0, len(keys))
	for _, key := range keys {
		if id, err := strconv.ParseInt(key, 10, 64); err == nil {
			ids = append(ids, id)
		}
	}
	return ids
}
