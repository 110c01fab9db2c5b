package alerting

import (
	"github.com/attune-go/attune/core/config"
	"github.com/attune-go/attune/core/explain"
	"github.com/attune-go/attune/core/monitor"
)

// Reader reads what an Explainer reads, and what is wrong: alerts, the overview and what rules watch.
// Its methods may be used by many goroutines.
type Reader struct {
	*explain.Reader
	rules Rules
	probe Prober
	// letterDepths and queueDepths are how many dead letters and executions waited in the last minutes.
	letterDepths, queueDepths depths

	memory monitor.Memory
}

// NewReader makes a Watcher that judges by these rules; nil means the built-in ones. The probe asks the
// broker what rules watch; nil leaves that out.
func NewReader(m *monitor.Monitor, rules Rules, probe Prober) *Reader {
	if rules == nil {
		rules = config.Default().Alerts
	}
	return &Reader{Reader: explain.New(m), rules: rules, probe: probe}
}
