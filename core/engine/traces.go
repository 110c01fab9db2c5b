package engine

import (
	"cmp"
	"fmt"

	"github.com/attune-go/attune/core/api"
	"github.com/attune-go/attune/core/supervise"
	"github.com/attune-go/attune/core/tracing"
)

// spans is where the parts of a replica report to. All of it is nil while tracing is off.
type spans struct {
	sink     tracing.Sink
	batches  batchSpans
	requests api.Traces
	roots    *tracing.Roots
}

// batchSpans takes the spans of batches.
type batchSpans interface{ OfferBatch(batch tracing.Batch) }

// addTraces adds the sender of this process's spans, and the loop that reports ended rows.
func (e *Engine) addTraces(version string, loops *supervise.Metrics) (spans, error) {
	metrics := tracing.NewMetrics(e.registry)
	cfg := e.cfg.Telemetry
	if cfg.OTLPEndpoint == "" {
		return spans{}, nil
	}
	collector := tracing.Config{
		Endpoint: cfg.OTLPEndpoint, Ratio: cfg.SampleRatio, HeadersFile: cfg.HeadersFile, Version: version,
		Resource: []tracing.Attr{
			{Key: "service.name", Value: cmp.Or(e.cfg.Names()["service_name"], "attune-executor")},
			{Key: "service.version", Value: version},
			{Key: "service.instance.id", Value: e.id.String()},
			{Key: "deployment.environment.name", Value: e.cfg.Environment},
		},
	}
	roots := tracing.NewRoots(e.query, cfg.SampleRatio)
	sender, err := tracing.NewSender(collector, roots, e.logger, metrics)
	if err != nil {
		return spans{}, fmt.Errorf("trace: %w", err)
	}
	reporter, err := tracing.NewReporter(collector, roots, e.query, e.logger, metrics, loops)
	if err != nil {
		return spans{}, fmt.Errorf("trace: %w", err)
	}
	e.services.Add("spans", sender)
	e.addLoop("traces", reporter)
	return spans{
		sink: sender, batches: sender, requests: tracing.Requests{Sender: sender, Roots: roots}, roots: roots,
	}, nil
}
