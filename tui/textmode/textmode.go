// Package textmode prints the changes of an installation, one a line: for screen readers, terminals without cursor
// control, and logs.
//
// Every line begins with the database's time in UTC, or the local time while the database does not answer, and names
// its subject before the change. The first lines describe the present state; afterwards silence means that nothing
// has changed. An outage is reported when it begins and when it ends. Unknown data is never reported as zero or
// removed.
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

// Reader reads the state of an installation; *alerting.Reader is one.
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
	// Kind is the subject: dashboard, database, broker, alert, worker, queue, dead-letters or inquiry.
	Kind string `json:"kind"`
	// Name names it if there are several.
	Name string `json:"name,omitempty"`
	// Text is the new state.
	Text string `json:"text"`
}

// String is the line without characters that control a terminal.
func (l Line) String() string {
	text := l.At.UTC().Format(time.RFC3339) + " " + l.Kind
	if l.Name != "" {
		text += " " + l.Name
	}
	return widget.Clean(text + ": " + l.Text)
}

// Config configures Run.
type Config struct {
	// Context is the name of the installation.
	Context string
	// Every is the interval between reads, Timeout ends a read.
	Every, Timeout time.Duration
	// JSON writes one object a line.
	JSON bool
	// Clock is the local clock; nil means time.Now.
	Clock func() time.Time
}

// maxBackoff is the longest pause while the database does not answer.
const maxBackoff = 30 * time.Second

// Run prints changes until the context ends. Only a failed write is an error.
func Run(ctx context.Context, reader Reader, cfg Config, out io.Writer) error {
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	w := newWatch(cfg.Clock)
	w.say("dashboard", cfg.Context, "watched every "+cfg.Every.String()+"; what there is now, then every change")
	for {
		found := read(ctx, reader, cfg.Timeout)
		select {
		case <-ctx.Done():
			return nil // reads that the context cancelled are no outage
		default:
		}
		w.update(found)
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

// answers are the results of one reading.
type answers struct {
	overview    answer[*alerting.Overview]
	broker      answer[*monitor.Broker]
	queues      answer[*monitor.Queues]
	workers     answer[*monitor.Workers]
	deadLetters answer[*monitor.DeadLetters]
	alerts      answer[*alerting.Alerts]
	inquiries   answer[*monitor.InquiryPage]
}

type answer[T any] struct {
	value T
	err   error
}

func ask[T any](group *sync.WaitGroup, into *answer[T], read func() (T, error)) {
	group.Go(func() { into.value, into.err = read() })
}

// maxOpen bounds the open inquiries that are read.
const maxOpen = 100

// read reads all sources in parallel, so that a stuck one delays the others by its timeout at most.
func read(ctx context.Context, r Reader, timeout time.Duration) *answers {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var a answers
	var group sync.WaitGroup
	ask(&group, &a.overview, func() (*alerting.Overview, error) { return r.Overview(ctx) })
	ask(&group, &a.broker, func() (*monitor.Broker, error) { return r.Broker(ctx) })
	ask(&group, &a.queues, func() (*monitor.Queues, error) { return r.Queues(ctx, monitor.QueueFilter{}) })
	ask(&group, &a.workers, func() (*monitor.Workers, error) { return r.Workers(ctx) })
	ask(&group, &a.deadLetters, func() (*monitor.DeadLetters, error) { return r.DeadLetters(ctx) })
	ask(&group, &a.alerts, func() (*alerting.Alerts, error) { return r.Alerts(ctx) })
	ask(&group, &a.inquiries, func() (*monitor.InquiryPage, error) {
		return r.Inquiries(ctx, monitor.InquiryFilter{Statuses: []string{monitor.InquiryPending}, Limit: maxOpen}, "")
	})
	group.Wait()
	return &a
}
