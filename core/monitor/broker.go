package monitor

import (
	"context"
	"errors"
	"strings"

	"github.com/attune-go/attune/core/broker"
)

var (
	errNoSource = errors.New("not configured")
	likeEscape  = strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`, `*`, `%`)
)

// BrokerReader reads the state of the message broker in one go. It fills
// everything but the Reading. ReadWiring reads what Checks judges, ReadDepth what
// the broker keeps of a queue's length.
type BrokerReader interface {
	ReadBroker(ctx context.Context) (*Broker, error)
	ReadWiring(ctx context.Context) (*broker.Wiring, error)
	ReadDepth(ctx context.Context, queue string) ([]PastDepth, error)
}

// Broker reads the queues and alarms of the message broker.
func (m *Monitor) Broker(ctx context.Context) (*Broker, error) {
	var result *Broker
	source, err := timed(SourceBroker, func() error {
		if m.deps.Broker == nil {
			return errNoSource
		}
		var err error
		result, err = m.deps.Broker.ReadBroker(ctx)
		return err
	})
	if result == nil || err != nil {
		result = &Broker{}
	}
	result.Sources = []Source{source}
	return result, err
}
