// Package textmode tells what changes in an installation, one line for each change:
// for screen readers, for terminals that cannot be drawn on, and for logs.
//
// Nothing is drawn again and nothing is taken back. Every line begins with the
// time of the database in UTC, or with the local one while the database does not
// answer, and says what it is about before what has become of it. The first lines
// say what there is at the start; from then on silence means that nothing has
// changed. What cannot be read is told once when that begins and once when it ends,
// and is never taken for zero or for gone.
package textmode

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/attune-go/attune/core/alerting"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/widget"
)

// Reader is where the changes are read; *alerting.Reader is one.
type Reader interface {
	Overview(ctx context.Context) (*alerting.Overview, error)
	Broker(ctx context.Context) (*monitor.Broker, error)
	Queues(ctx context.Context, filter monitor.QueueFilter) (*monitor.Queues, error)
	Workers(ctx context.Context) (*monitor.Workers, error)
	DeadLetters(ctx context.Context) (*monitor.DeadLetters, error)
	Alerts(ctx context.Context) (*alerting.Alerts, error)
	Inquiries(ctx context.Context, filter monitor.InquiryFilter, cursor string) (*monitor.InquiryPage, error)
}

// Line is one change.
type Line struct {
	At time.Time `json:"at"`
	// Kind is what it is about: dashboard, database, broker, alert, worker, queue,
	// dead-letters or inquiry.
	Kind string `json:"kind"`
	// Name is which one, where there are several.
	Name string `json:"name,omitempty"`
	// Text is what has become of it.
	Text string `json:"text"`
}

// String is the line as people read it, with everything taken away that a
// terminal would obey.
func (l Line) String() string {
	text := l.At.UTC().Format(time.RFC3339) + " " + l.Kind
	if l.Name != "" {
		text += " " + l.Name
	}
	return widget.Clean(text + ": " + l.Text)
}

// Config says how changes are told.
type Config struct {
	// Context is the name of the installation.
	Context string
	// Every is the interval between two looks, Timeout ends one that hangs.
	Every, Timeout time.Duration
	// JSON writes one object a line instead of a sentence.
	JSON bool
	// Clock is the local clock; nil means time.Now.
	Clock func() time.Time
}

// maxBackoff is the longest pause between two looks at a database that does not
// answer.
const maxBackoff = 30 * time.Second

// Run tells changes until the context ends, which is no error. What cannot be
// written is.
func Run(ctx context.Context, reader Reader, cfg Config, out io.Writer) error {
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	w := newWatch(cfg.Clock)
	w.say("dashboard", cfg.Context, "watched every "+cfg.Every.String()+"; what there is now, then every change")
	for {
		found := look(ctx, reader, cfg.Timeout)
		select {
		case <-ctx.Done():
			return nil // what it was told to leave does not count as silent
		default:
		}
		w.take(found)
		if err := write(out, w.drain(), cfg.JSON); err != nil {
			return fmt.Errorf("write the changes: %w", err)
		}
		pause := time.NewTimer(max(cfg.Every, min(maxBackoff, cfg.Every<<min(w.fails(), 10))))
		select {
		case <-ctx.Done():
			pause.Stop()
			return nil
		case <-pause.C:
		}
	}
}

func write(out io.Writer, lines []Line, asJSON bool) error {
	for _, line := range lines {
		text := line.String()
		if asJSON {
			line.Name, line.Text = widget.Clean(line.Name), widget.Clean(line.Text)
			object, err := json.Marshal(line)
			if err != nil {
				return err
			}
			text = string(object)
		}
		if _, err := io.WriteString(out, text+"\n"); err != nil {
			return err
		}
	}
	return nil
}

// answers is what one look has found. What could not be read has its error.
type answers struct {
	overview  answer[*alerting.Overview]
	broker    answer[*monitor.Broker]
	queues    answer[*monitor.Queues]
	workers   answer[*monitor.Workers]
	letters   answer[*monitor.DeadLetters]
	alerts    answer[*alerting.Alerts]
	inquiries answer[*monitor.InquiryPage]
}

type answer[T any] struct {
	value T
	err   error
}

// ask reads one answer into its place on a goroutine of its own.
func ask[T any](group *sync.WaitGroup, into *answer[T], read func() (T, error)) {
	group.Go(func() { into.value, into.err = read() })
}

// maxOpen is how many open inquiries are looked at.
const maxOpen = 100

// look reads everything at once, so that one source that hangs delays the others
// by no more than its timeout.
func look(ctx context.Context, r Reader, timeout time.Duration) *answers {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var a answers
	var group sync.WaitGroup
	ask(&group, &a.overview, func() (*alerting.Overview, error) { return r.Overview(ctx) })
	ask(&group, &a.broker, func() (*monitor.Broker, error) { return r.Broker(ctx) })
	ask(&group, &a.queues, func() (*monitor.Queues, error) { return r.Queues(ctx, monitor.QueueFilter{}) })
	ask(&group, &a.workers, func() (*monitor.Workers, error) { return r.Workers(ctx) })
	ask(&group, &a.letters, func() (*monitor.DeadLetters, error) { return r.DeadLetters(ctx) })
	ask(&group, &a.alerts, func() (*alerting.Alerts, error) { return r.Alerts(ctx) })
	ask(&group, &a.inquiries, func() (*monitor.InquiryPage, error) {
		return r.Inquiries(ctx, monitor.InquiryFilter{Statuses: []string{monitor.InquiryPending}, Limit: maxOpen}, "")
	})
	group.Wait()
	return &a
}
