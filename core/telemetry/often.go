package telemetry

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

type oftenKey struct{}

// Often returns a context for lines that bad messages can cause at any rate. Of the lines of one message
// text that are logged with it, the first is written at once, and then one a second: the latest, with the
// number of lines for which it stands.
func Often(ctx context.Context) context.Context { return context.WithValue(ctx, oftenKey{}, true) }

const oftenEvery = time.Second

// often keeps the lines that are not written yet.
type often struct {
	mu   sync.Mutex
	held map[string]*heldLines // by text, for a second after a written line; guarded by mu
}

type heldLines struct {
	lines  int
	record slog.Record // the latest
	to     slog.Handler
}

// passes reports whether a line is written now. Otherwise a later line stands for it.
func (o *often) passes(ctx context.Context, to slog.Handler, record slog.Record) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if held := o.held[record.Message]; held != nil {
		held.lines, held.record, held.to = held.lines+1, record.Clone(), to
		return false
	}
	if o.held == nil {
		o.held = map[string]*heldLines{}
	}
	o.held[record.Message] = &heldLines{}
	o.later(ctx, record.Message)
	return true
}

// later writes the latest line of a text after a second, until no more come.
func (o *often) later(ctx context.Context, text string) {
	ctx = context.WithoutCancel(ctx)
	time.AfterFunc(oftenEvery, func() {
		o.mu.Lock()
		held := *o.held[text]
		if held.lines == 0 {
			delete(o.held, text)
		} else {
			*o.held[text] = heldLines{}
			o.later(ctx, text)
		}
		o.mu.Unlock()
		if held.lines > 0 {
			held.record.AddAttrs(slog.Int("lines", held.lines))
			_ = held.to.Handle(ctx, held.record) // a line that cannot be written has no reader
		}
	})
}
