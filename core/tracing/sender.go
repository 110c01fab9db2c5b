package tracing

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/attune-go/attune/core/supervise"
)

const (
	queueSize  = 4096             // spans that wait
	maxSpans   = 512              // in one request
	flushAfter = time.Second      // the longest wait of a span
	firstPause = time.Second      // after the first failed request
	longPause  = 30 * time.Second // after many
	lastFlush  = 2 * time.Second  // at the stop
)

// Sender sends the spans of this process. It is a Sink and a supervise.Service.
type Sender struct {
	supervise.Base

	client  *client
	ratio   float64
	queue   chan Span
	batches chan Batch
	origins Origins
	logger  *slog.Logger
	metrics *Metrics
	away    atomic.Bool
}

// Batch is a committed batch of a lane. Its span links to the executions.
type Batch struct {
	Name       string
	Start, End time.Time
	Executions []int64
}

// NewSender makes a sender. origins finds the traces of the executions of batches; nil without batches.
func NewSender(cfg Config, origins Origins, logger *slog.Logger, metrics *Metrics) (*Sender, error) {
	c, err := newClient(cfg)
	if err != nil {
		return nil, err
	}
	return &Sender{
		client: c, ratio: cfg.Ratio, queue: make(chan Span, queueSize), batches: make(chan Batch, queueSize/8),
		origins: origins, logger: logger, metrics: metrics,
	}, nil
}

// Offer implements Sink.
func (s *Sender) Offer(span Span) {
	if !span.Context.Sampled {
		return
	}
	select {
	case s.queue <- span:
	default:
		s.metrics.add(outcomeDropped, 1)
	}
}

// OfferBatch queues the span of a batch.
func (s *Sender) OfferBatch(batch Batch) {
	select {
	case s.batches <- batch:
	default:
		s.metrics.add(outcomeDropped, 1)
	}
}

// Sample begins a trace of this process, as often as the ratio says.
func (s *Sender) Sample() Context {
	id := RandomID()
	return Context{Trace: id, Span: RandomSpan(), Sampled: Sampled(id, s.ratio)}
}

// Start implements supervise.Service.
func (s *Sender) Start(ctx context.Context) error { return s.Launch(ctx, nil, s.run) }

func (s *Sender) run(ctx context.Context) {
	var left []Span
	for ctx.Err() == nil {
		if left = s.collect(ctx); ctx.Err() == nil {
			s.deliver(ctx, left)
			left = nil
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastFlush)
	defer cancel()
	for left = s.waiting(ctx, left); len(left) > 0; left = s.waiting(ctx, nil) {
		s.settle(ctx, len(left), s.client.send(ctx, left))
	}
}

// collect waits for the first span, and then for more until a request is full or late.
func (s *Sender) collect(ctx context.Context) []Span {
	var spans []Span
	select {
	case <-ctx.Done():
		return nil
	case span := <-s.queue:
		spans = append(spans, span)
	case batch := <-s.batches:
		spans = append(spans, s.spansOf(ctx, []Batch{batch})...)
	}
	supervise.Sleep(ctx, flushAfter)
	return s.waiting(ctx, spans)
}

// waiting adds spans that wait, up to one request.
func (s *Sender) waiting(ctx context.Context, spans []Span) []Span {
	var batches []Batch
	for len(spans)+len(batches) < maxSpans {
		select {
		case span := <-s.queue:
			spans = append(spans, span)
			continue
		case batch := <-s.batches:
			batches = append(batches, batch)
			continue
		default:
		}
		break
	}
	return append(spans, s.spansOf(ctx, batches)...)
}

// deliver sends spans until the collector has them, refuses them, or the sender stops.
func (s *Sender) deliver(ctx context.Context, spans []Span) {
	if len(spans) == 0 {
		return
	}
	for pause := firstPause; ; pause = min(2*pause, longPause) {
		err := s.client.send(ctx, spans)
		if err == nil || errors.Is(err, errRefused) || ctx.Err() != nil {
			s.settle(ctx, len(spans), err)
			return
		}
		if s.away.CompareAndSwap(false, true) {
			s.logger.WarnContext(ctx, "Collector of traces does not answer", "error", err)
		}
		supervise.Sleep(ctx, pause)
	}
}

func (s *Sender) settle(ctx context.Context, spans int, err error) {
	if err == nil {
		s.metrics.add(outcomeSent, spans)
		s.away.Store(false)
		return
	}
	s.metrics.add(outcomeDropped, spans)
	s.logger.WarnContext(ctx, "Spans are lost", "spans", spans, "error", err)
}

// spansOf are the spans of batches, each linked to the sampled executions in it.
func (s *Sender) spansOf(ctx context.Context, batches []Batch) []Span {
	if len(batches) == 0 || s.origins == nil {
		return nil
	}
	var ids []int64
	for _, b := range batches {
		ids = append(ids, b.Executions...)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastFlush)
	defer cancel()
	roots, err := s.origins.Executions(ctx, ids)
	if err != nil {
		s.settle(ctx, len(batches), err)
		return nil
	}
	var spans []Span
	for _, b := range batches {
		var links []Context
		for _, id := range b.Executions {
			if root, ok := roots[id]; ok && root.Sampled {
				links = append(links, root.At(Execution, id, Whole))
			}
		}
		if len(links) == 0 {
			continue
		}
		spans = append(spans, Span{
			Context: Context{Trace: RandomID(), Span: RandomSpan(), Sampled: true},
			Name:    b.Name, Role: Consumer, Start: b.Start, End: b.End, Links: links,
			Attrs: []Attr{
				{Key: "messaging.system", Value: "rabbitmq"},
				{Key: "messaging.batch.message_count", Value: int64(len(b.Executions))},
			},
		})
	}
	return spans
}

var _ Sink = (*Sender)(nil)
