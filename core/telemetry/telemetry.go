// Package telemetry makes the loggers and the metric registry of a process.
//
// Log lines are structured: a constant message and attributes. Attributes that belong to the work
// in hand travel in the context (With) and appear on every line logged with it. Nothing here fails
// at run time; a wrong level or format is refused when the logger is made.
package telemetry

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/lmittmann/tint"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"golang.org/x/term"

	"github.com/attune-go/attune/core/phrase"
)

// NewLogger makes a logger that writes to w. The level is debug, info, warn or
// error (info if empty). The format is json, text, or auto (also if empty):
// text for people when w is a terminal, json otherwise.
func NewLogger(w io.Writer, level, format string) (*slog.Logger, error) {
	parsed, err := parseLevel(level)
	if err != nil {
		return nil, err
	}
	onTerminal := isTerminal(w)
	var handler slog.Handler
	switch {
	case format == "json" || ((format == "auto" || format == "") && !onTerminal):
		handler = slog.NewJSONHandler(escaped{w}, &slog.HandlerOptions{Level: parsed, ReplaceAttr: readable})
	case format == "text" || format == "auto" || format == "":
		handler = visible{tint.NewTextHandler(w, &tint.Options{
			Level:      parsed,
			NoColor:    !onTerminal || os.Getenv("NO_COLOR") != "",
			TimeFormat: time.TimeOnly + ".000",
		})}
	default:
		return nil, fmt.Errorf("log format %q is unknown: use auto, json or text", format)
	}
	logger := slog.New(contextHandler{next: handler, often: &often{}})
	if log, ok := w.(*Log); ok {
		log.dropped = func(lines int64) {
			logger.Warn("Log lines dropped because their reader was slow or away", "lines", lines)
		}
	}
	return logger, nil
}

// escaped escapes the characters that control a terminal, which JSON allows in strings: people read logs in terminals.
type escaped struct{ io.Writer }

// Write implements io.Writer.
func (e escaped) Write(line []byte) (int, error) {
	if _, err := io.WriteString(e.Writer, phrase.JSON(string(line))); err != nil {
		return 0, err
	}
	return len(line), nil
}

// visible escapes the message of a text line, which may name a worker; its handler escapes only attributes.
type visible struct{ slog.Handler }

// Handle implements slog.Handler.
func (v visible) Handle(ctx context.Context, record slog.Record) error {
	record.Message = strings.ReplaceAll(phrase.Visible(record.Message), "\n", `\n`)
	return v.Handler.Handle(ctx, record)
}

// WithAttrs implements slog.Handler.
func (v visible) WithAttrs(attrs []slog.Attr) slog.Handler {
	return visible{v.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (v visible) WithGroup(name string) slog.Handler { return visible{v.Handler.WithGroup(name)} }

// readable writes durations as 1.5s, not in nanoseconds.
func readable(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().String())
	}
	return a
}

// Discard returns a logger that writes nothing.
func Discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

func parseLevel(level string) (slog.Level, error) {
	switch strings.ToLower(level) {
	case "debug", "trace":
		return slog.LevelDebug, nil
	case "info", "":
		return slog.LevelInfo, nil
	case "warn", "warning":
		return slog.LevelWarn, nil
	case "error":
		return slog.LevelError, nil
	}
	return 0, fmt.Errorf("log level %q is unknown: use debug, info, warn or error", level)
}

func isTerminal(w io.Writer) bool {
	if log, ok := w.(*Log); ok {
		w = log.to
	}
	file, ok := w.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

type contextKey struct{}

// With returns a context whose attributes appear on every line that is logged
// with it, after those the context already carries.
func With(ctx context.Context, attrs ...slog.Attr) context.Context {
	carried := Attrs(ctx)
	return context.WithValue(ctx, contextKey{}, append(slices.Clip(carried), attrs...))
}

// Attrs returns the attributes a context carries, oldest first.
func Attrs(ctx context.Context) []slog.Attr {
	attrs, _ := ctx.Value(contextKey{}).([]slog.Attr)
	return attrs
}

type contextHandler struct {
	next  slog.Handler
	often *often
}

// Enabled implements slog.Handler.
func (h contextHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.next.Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (h contextHandler) Handle(ctx context.Context, record slog.Record) error {
	if attrs := Attrs(ctx); len(attrs) > 0 {
		record = record.Clone()
		record.AddAttrs(attrs...)
	}
	if limited, _ := ctx.Value(oftenKey{}).(bool); limited && !h.often.passes(ctx, h.next, record) {
		return nil
	}
	return h.next.Handle(ctx, record)
}

// WithAttrs implements slog.Handler.
func (h contextHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return contextHandler{next: h.next.WithAttrs(attrs), often: h.often}
}

// WithGroup implements slog.Handler.
func (h contextHandler) WithGroup(name string) slog.Handler {
	return contextHandler{next: h.next.WithGroup(name), often: h.often}
}

// NewRegistry returns a registry that already measures the Go runtime and the
// process. Every component registers its own metrics there.
func NewRegistry() *prometheus.Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "attune_log_lines_dropped_total",
			Help: "Log lines dropped because the reader of standard error was slow or away.",
		}, func() float64 { return float64(linesDropped.Load()) }),
	)
	return registry
}
