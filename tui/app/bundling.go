package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"

	"github.com/attune-go/attune/core/alerting"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/act"
	"github.com/attune-go/attune/tui/carry"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/palette"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/screen/operations"
)

// carryCommands take things out of the dashboard.
func (m *Model) carryCommands() []command {
	return []command{
		{palette.Entry{Name: "export", Arg: "[FILE]", Key: m.keyOf(keymap.Export), Help: "write the marked rows, or all that match; .csv makes CSV"}, m.exportTo},
		{palette.Entry{Name: "bundle", Arg: "[FILE]", Help: "put all that is known of this moment into one archive"}, m.bundleTo},
	}
}

// exportTo writes the view to a file. Without a name it goes where the key puts it.
func (m *Model) exportTo(name string) (tea.Cmd, error) {
	h, ok := m.haul()
	if !ok {
		return nil, errors.New("there is nothing here to export")
	}
	path, err := m.pathOf(name, h.name, ".jsonl")
	if err != nil {
		return nil, err
	}
	return m.export(h, path), nil
}

// pathOf is the path that a name means, from the folder in which the dashboard was
// started or that of the user.
func (m *Model) pathOf(name, otherwise, ending string) (string, error) {
	if name == "" {
		path, problem := m.exportPath(otherwise, ending)
		if problem != "" {
			return "", errors.New(problem)
		}
		return path, nil
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
		return "", fmt.Errorf("%q names no file: %w", name, err)
	}
	return path, nil
}

// bundleTo writes an archive of the view, what is marked, and how the installation
// is. What was revealed is masked first.
func (m *Model) bundleTo(name string) (tea.Cmd, error) {
	path, err := m.pathOf(name, "bundle", ".tar.gz")
	if err != nil {
		return nil, err
	}
	m.hideSecrets()
	b := m.incident(strings.TrimSuffix(filepath.Base(path), ".tar.gz"))
	return m.write("bundle", "bundle", func(ctx context.Context, progress *act.Progress) (*act.Receipt, error) {
		return b.write(ctx, path, progress)
	}), nil
}

// incident is what goes into an archive: what is known at one moment.
type incident struct {
	folder string
	at     time.Time
	source Reader
	frame  string
	about  about
	lists  []incidentList
	// marked are the marked rows; nil where there are none.
	marked *haul
	docs   []incidentDoc
	// checks and alerts are read where they were not.
	checks *monitor.Checks
	alerts *alerting.Alerts
	notes  []string
}

type incidentList struct {
	name   string
	values []any
}

type incidentDoc struct {
	name  string
	value any
}

// about says what a bundle is of.
type about struct {
	At        time.Time      `json:"at"`
	Context   string         `json:"context"`
	View      screen.View    `json:"view"`
	Shown     string         `json:"shown,omitempty"`
	Filter    string         `json:"filter,omitempty"`
	Database  string         `json:"database"`
	Broker    string         `json:"broker"`
	Schema    string         `json:"schema"`
	Dashboard string         `json:"dashboard"`
	Go        string         `json:"go"`
	Platform  string         `json:"platform"`
	RabbitMQ  string         `json:"rabbitmq,omitempty"`
	Engine    []string       `json:"engine,omitempty"`
	Skew      string         `json:"clock_skew"`
	Poll      string         `json:"poll"`
	Paused    bool           `json:"paused"`
	Feeds     []feedDocument `json:"feeds"`
}

// incident gathers what the dashboard knows now.
func (m *Model) incident(folder string) *incident {
	d := m.env.Data
	b := &incident{folder: folder, at: m.env.Now, source: m.source, frame: ansi.Strip(m.View()), about: m.about(), checks: d.Checks, alerts: d.Alerts}
	if m.marks() > 0 {
		b.marked = m.markedHaul()
	}
	b.lists = append(b.lists, m.viewList(b))
	var done []any
	for _, op := range m.env.Session {
		done = append(done, operations.Taken(op, m.skew))
	}
	b.lists = append(b.lists, incidentList{"operations.jsonl", done})
	if d.Overview != nil {
		b.docs = append(b.docs, incidentDoc{"overview.json", d.Overview})
	}
	if d.Broker != nil {
		b.docs = append(b.docs, incidentDoc{"broker.json", d.Broker})
	}
	if d.Audit != nil {
		b.docs = append(b.docs, incidentDoc{"audit.json", d.Audit})
	}
	return b
}

// viewList is what the open view holds.
func (m *Model) viewList(b *incident) incidentList {
	view := incidentList{name: "view.jsonl"}
	list, listed := m.screen().(screen.Listed)
	if s, ok := m.screen().(screen.Shows); ok && (!listed || m.table() != nil) {
		if thing, ok := s.Shows(); ok {
			view.values = []any{thing.Value}
			return view
		}
	}
	if !listed {
		return view
	}
	for i := range list.Len() {
		view.values = append(view.values, list.Thing(i).Value)
	}
	if cut, ok := list.(screen.Cut); ok && cut.Beyond() != "" {
		b.notes = append(b.notes, "view.jsonl holds what the view had read: "+cut.Beyond()+".")
	}
	return view
}

func (m *Model) about() about {
	a := about{
		At: m.env.Now, Context: m.opts.Context, View: m.view, Database: m.opts.Origin.Database, Broker: m.opts.Origin.Broker, Schema: m.opts.Origin.Schema,
		Dashboard: m.opts.Version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
		Skew: m.skew.String(), Poll: m.refreshEvery.String(), Paused: m.paused,
	}
	if s, ok := m.screen().(screen.Showing); ok {
		a.Shown = s.Shown()
	}
	if f, ok := m.screen().(screen.Filterable); ok {
		a.Filter = f.Filter()
	}
	if b := m.env.Data.Broker; b != nil {
		a.RabbitMQ = b.Version
	}
	if o := m.env.Data.Overview; o != nil && o.Replicas != nil {
		for _, r := range o.Replicas.List {
			a.Engine = append(a.Engine, r.Host+" "+r.Version)
		}
	}
	for _, feed := range screen.Feeds {
		if fresh := m.env.Data.Fresh(feed); !fresh.At.IsZero() || fresh.Err != nil {
			a.Feeds = append(a.Feeds, feedOf(feed, fresh))
		}
	}
	return a
}

// write reads what is missing and writes the archive.
func (b *incident) write(ctx context.Context, path string, progress *act.Progress) (*act.Receipt, error) {
	b.complete(ctx)
	parts, err := b.parts()
	if err != nil {
		return nil, err
	}
	progress.Set(int64(len(parts)), int64(len(parts)))
	size, err := carry.Archive(path, b.folder, b.at, parts)
	if err != nil {
		return nil, err
	}
	receipt := &act.Receipt{Text: fmt.Sprintf("%d files, %d bytes, secrets masked.", len(parts), size), Next: path}
	for _, note := range b.notes {
		receipt.Lines = append(receipt.Lines, act.Line{Tone: act.Warn, Text: note})
	}
	return receipt, nil
}

// complete reads the checks and the alerts where they were not in sight. What cannot
// be read is said.
func (b *incident) complete(ctx context.Context) {
	b.readMarked(ctx)
	ctx, cancel := context.WithTimeout(ctx, 2*fetchTimeout)
	defer cancel()
	var err error
	if b.checks == nil {
		if b.checks, err = b.source.Checks(ctx); err != nil {
			b.checks = nil
			b.notes = append(b.notes, "The checks could not be made: "+reason(err).Error())
		}
	}
	if b.alerts == nil {
		if b.alerts, err = b.source.Alerts(ctx); err != nil {
			b.alerts = nil
			b.notes = append(b.notes, "The alerts could not be read: "+reason(err).Error())
		}
	}
	if b.checks != nil {
		b.docs = append(b.docs, incidentDoc{"checks.json", b.checks})
	}
	if b.alerts != nil {
		b.docs = append(b.docs, incidentDoc{"alerts.json", b.alerts})
	}
}

// readMarked puts the marked rows into a list, those first that were read already.
func (b *incident) readMarked(ctx context.Context) {
	if b.marked == nil {
		return
	}
	list := incidentList{name: "marked.jsonl"}
	note, err := b.marked.each(ctx, func(value any) error {
		list.values = append(list.values, value)
		return nil
	})
	if err != nil {
		note = "not all marked rows could be read: " + err.Error()
	}
	if note != "" {
		b.notes = append(b.notes, "marked.jsonl: "+note)
	}
	b.lists = append(b.lists, list)
}

// parts writes all of it down.
func (b *incident) parts() ([]carry.Part, error) {
	names := []string{"about.json: when, where, versions, and how each source answered", "frame.txt: the screen"}
	var parts []carry.Part
	for _, list := range b.lists {
		text, err := jsonLines(list.values)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", list.name, err)
		}
		parts = append(parts, carry.Part{Name: list.name, Body: text})
		names = append(names, fmt.Sprintf("%s: %d lines", list.name, len(list.values)))
	}
	for _, doc := range append([]incidentDoc{{"about.json", b.about}}, b.docs...) {
		text, err := carry.JSON(doc.value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", doc.name, err)
		}
		parts = append(parts, carry.Part{Name: doc.name, Body: pretty(text)})
		if doc.name != "about.json" {
			names = append(names, doc.name)
		}
	}
	said := "What the dashboard knew of " + b.about.Context + " at " + b.at.UTC().Format("2006-01-02 15:04:05Z") + ".\nSecrets are masked.\n\n" +
		strings.Join(names, "\n") + "\n"
	said += "\n" + strings.Join(b.notes, "\n")
	return append([]carry.Part{{Name: "README.txt", Body: carry.Plain(said) + "\n"}, {Name: "frame.txt", Body: carry.Plain(b.frame) + "\n"}}, parts...), nil
}

// pretty indents a document that was written as one line.
func pretty(line string) string {
	var out bytes.Buffer
	if json.Indent(&out, []byte(line), "", "  ") != nil {
		return line + "\n"
	}
	return out.String() + "\n"
}
