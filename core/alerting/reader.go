package alerting

import (
	"github.com/attune-go/attune/core/config"
	"github.com/attune-go/attune/core/explain"
	"github.com/attune-go/attune/core/monitor"
)

// Reader reads alerts, the overview and measures, and what explain.Reader reads. It is safe for
// concurrent use.
type Reader struct {
	*explain.Reader
	rules Rules
	probe Prober
	// deadLetterDepths and queueDepths are the depths of the last minutes.
	deadLetterDepths, queueDepths depths
}

// NewReader returns a Reader that judges by these rules; nil means the built-in ones. Without a
// probe nothing is read from the broker.
func NewReader(m *monitor.Monitor, rules Rules, probe Prober) *Reader {
	if rules == nil {
		rules = config.Default().Alerts
	}
	return &Reader{Reader: explain.New(m), rules: rules, probe: probe}
}
