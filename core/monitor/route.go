package monitor

import (
	"context"
	"time"

	"github.com/attune-go/attune/core/broker"
)

// Route is where a message would go.
type Route struct {
	Reading

	Exchange string `json:"exchange"`
	Key      string `json:"key"`
	// Exists says whether there is such an exchange, Kind of which kind it is.
	Exists bool   `json:"exists"`
	Kind   string `json:"kind,omitempty"`
	// Queues are those that the key leads to. Lost says that it leads to none, and
	// Unsure that it may lead to some by a way that is not judged.
	Queues []string `json:"queues"`
	Lost   bool     `json:"lost,omitempty"`
	Unsure bool     `json:"unsure,omitempty"`
}

// Route asks the broker where a message would go. Nothing is sent for it.
func (m *Monitor) Route(ctx context.Context, exchange, key string) (*Route, error) {
	r := &Route{Exchange: exchange, Key: key}
	var wiring *broker.Wiring
	of, err := timed(SourceBroker, func() error {
		if m.deps.Broker == nil {
			return errNoSource
		}
		var err error
		wiring, err = m.deps.Broker.ReadWiring(ctx)
		return err
	})
	r.At, r.Sources = time.Now(), []Source{of}
	if err != nil {
		return r, err
	}
	e, there := wiring.Exchanges[exchange]
	r.Exists, r.Kind, r.Queues = there || exchange == "", e.Kind, wiring.Leads(exchange, key)
	switch wiring.Reaches(exchange, key) {
	case broker.Lost:
		r.Lost = true
	case broker.Unsure:
		r.Unsure = true
	}
	return r, nil
}
