package monitor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/store"
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
	source, err := m.askBroker(func(b BrokerReader) (err error) {
		result, err = b.ReadBroker(ctx)
		return err
	})
	if result == nil || err != nil {
		result = &Broker{}
	}
	result.Sources = []Source{source}
	return result, err
}

// askBroker reads from the broker, and says how it behaved.
func (m *Monitor) askBroker(ask func(BrokerReader) error) (Source, error) {
	return timed(SourceBroker, func() error {
		if m.deps.Broker == nil {
			return errNoSource
		}
		return ask(m.deps.Broker)
	})
}

// both reads from the broker and from the database at the same time, and returns both errors. It adds to the
// reading how each behaved.
func (m *Monitor) both(
	ctx context.Context, name string, r *Reading, ask func(BrokerReader) error,
	read func(ctx context.Context, tx *store.Tx, s Shape) error,
) (brokerErr, databaseErr error) {
	var of Source
	var asked sync.WaitGroup
	asked.Go(func() { of, brokerErr = m.askBroker(ask) })
	databaseErr = m.Read(ctx, name, r, read)
	asked.Wait()
	r.Sources = append(r.Sources, of)
	return brokerErr, databaseErr
}

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
	of, err := m.askBroker(func(b BrokerReader) (err error) {
		wiring, err = b.ReadWiring(ctx)
		return err
	})
	r.At, r.Sources = time.Now(), []Source{of}
	if err != nil {
		return r, err
	}
	e, there := wiring.Exchanges[exchange]
	r.Exists, r.Kind, r.Queues = there || exchange == "", e.Kind, wiring.Leads(exchange, key)
	reach := wiring.Reaches(exchange, key)
	r.Lost, r.Unsure = reach == broker.Lost, reach == broker.Unsure
	return r, nil
}

// Answers asks one of the sources whether it is there, for as little as that costs. A
// source that is not configured is an error, as it is where it is read.
func (m *Monitor) Answers(ctx context.Context, source string) error {
	if source == SourceDatabase {
		var r Reading
		return m.Read(ctx, "whether the database answers", &r, func(context.Context, *store.Tx, Shape) error { return nil })
	}
	_, err := m.askBroker(func(b BrokerReader) error {
		if _, err := b.ReadDepth(ctx, DeadLetterQueue); err != nil && !errors.Is(err, broker.ErrNotFound) {
			return fmt.Errorf("ask the broker: %w", err)
		}
		return nil
	})
	return err
}
