package engine

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/attune-go/attune/core/alerting"
	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/core/supervise"
)

// addAlerts adds the alert loop, which also closes the prober.
func (e *Engine) addAlerts(view *alerting.Reader, probe *prober, metrics *supervise.Metrics) {
	alerts := alerting.New(alerting.Config{Rules: e.cfg.Alerts}, alerting.Deps{
		Store: e.query, View: view, Logger: e.logger, Registry: e.registry, Metrics: metrics,
	})
	e.addLoop("alerts", &alertService{Loop: alerts, probe: probe})
}

// alertService closes the prober with the loop.
type alertService struct {
	*alerting.Loop

	probe *prober
}

// Stop stops the loop.
func (s *alertService) Stop() {
	s.Loop.Stop()
	s.probe.close()
}

// probeEvery is the interval of rare broker queries, and depthTimeout the timeout of reading the
// length of a queue.
const (
	probeEvery   = time.Minute
	depthTimeout = 3 * time.Second
)

// prober reads from the broker what alert rules check, over the replica's own connections.
type prober struct {
	engine *Engine

	mu      sync.Mutex
	missing remembered
	others  remembered
	// answered says that the management API has answered once; guarded by mu.
	answered bool

	// managing guards the rest. It is never held during a request, so that readers do not wait for one.
	managing   sync.Mutex
	management *broker.Management // created for the first request
	closed     bool
}

func (p *prober) close() {
	p.managing.Lock()
	defer p.managing.Unlock()
	p.closed = true
	if p.management != nil {
		p.management.Close()
	}
}

// remembered caches the result of a rare query while it reports no problem.
type remembered struct {
	at   time.Time
	list []string
	err  error
}

// get queries again when the result is old. It never caches an error or a finding: a worker's row
// may precede its routes by a moment, and such a finding must not last a minute.
func (r *remembered) get(query func() ([]string, error)) ([]string, error) {
	if r.err != nil || len(r.list) > 0 || time.Since(r.at) >= probeEvery {
		r.list, r.err = query()
		r.at = time.Now()
	}
	return r.list, r.err
}

func (p *prober) away() error {
	if state := p.engine.broker.State(); state == broker.StateDisconnected || state == broker.StateConnecting {
		return p.engine.broker.Trouble()
	}
	return nil
}

// QueueDepth reads the exact length.
func (p *prober) QueueDepth(ctx context.Context, queue string) (int64, error) {
	if err := p.away(); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, depthTimeout)
	defer cancel()
	state, err := p.engine.broker.QueueState(ctx, queue)
	return int64(state.Ready), err
}

// LostRoutes are those of the last probe of this replica; none before the first, and without the handler of dead
// letters, which probes.
func (p *prober) LostRoutes(context.Context) ([]string, error) {
	if p.engine.routes == nil {
		return nil, nil
	}
	report := p.engine.routes.Report()
	switch {
	case p.engine.broker.State() != broker.StateConnected:
		return nil, p.engine.broker.Trouble()
	case report == nil:
		return nil, nil
	case len(report.Lost) == 0 && report.Unknown > 0:
		return nil, phrase.Trouble{Fact: phrase.Plural(report.Unknown, "probe of a route", "probes of routes") +
			" had no result"}
	}
	return report.Lost, nil
}

// Missing lists the missing exchanges and queues of the engine.
func (p *prober) Missing(ctx context.Context) ([]string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.missing.get(func() (missing []string, err error) {
		if err := p.away(); err != nil {
			return nil, err
		}
		want := broker.ExecutorTopology(false) // names only
		for _, exchange := range want.Exchanges {
			exists, err := p.engine.broker.ExchangeExists(ctx, exchange.Name)
			if err != nil {
				return nil, err
			}
			if !exists {
				missing = append(missing, "exchange "+exchange.Name)
			}
		}
		for _, queue := range want.Queues {
			state, err := p.engine.broker.QueueState(ctx, queue.Name)
			if err != nil {
				return nil, err
			}
			if !state.Exists {
				missing = append(missing, "queue "+queue.Name)
			}
		}
		return missing, nil
	})
}

// Alarms reads from the management API, which is optional: if it has never answered, Alarms reports
// no error.
func (p *prober) Alarms(ctx context.Context) (list []string, asked bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	client := p.manage()
	if client == nil {
		return nil, false, nil
	}
	alarms, err := client.Alarms(ctx)
	if err != nil && !p.answered {
		return nil, false, nil
	}
	if err != nil {
		return nil, true, err
	}
	p.answered = true
	for _, a := range alarms {
		list = append(list, a.Resource+" on "+a.Node)
	}
	return list, true, nil
}

// manage is the client of the management API, nil without one and after close.
func (p *prober) manage() *broker.Management {
	p.managing.Lock()
	defer p.managing.Unlock()
	if p.closed {
		return nil
	}
	if p.management == nil {
		p.management = p.engine.newManagement()
	}
	return p.management
}

// reader reads the broker through the management API for the verdicts on dead letters.
func (p *prober) reader() (monitor.BrokerReader, error) {
	if client := p.manage(); client != nil {
		return monitor.NewManagementReader(client, ""), nil
	}
	return nil, errors.New("message_queue.management_url cannot be used")
}

// ReadBroker implements monitor.BrokerReader.
func (p *prober) ReadBroker(ctx context.Context) (*monitor.Broker, error) {
	r, err := p.reader()
	if err != nil {
		return nil, err
	}
	return r.ReadBroker(ctx)
}

// ReadWiring implements monitor.BrokerReader.
func (p *prober) ReadWiring(ctx context.Context) (*broker.Wiring, error) {
	r, err := p.reader()
	if err != nil {
		return nil, err
	}
	return r.ReadWiring(ctx)
}

// ReadDepth implements monitor.BrokerReader.
func (p *prober) ReadDepth(ctx context.Context, queue string) ([]monitor.PastDepth, error) {
	r, err := p.reader()
	if err != nil {
		return nil, err
	}
	return r.ReadDepth(ctx, queue)
}

// OtherExecutors lists consumers that are not replicas of this engine.
func (p *prober) OtherExecutors(ctx context.Context) ([]string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.others.get(func() ([]string, error) {
		if err := p.away(); err != nil {
			return nil, err
		}
		return p.engine.otherExecutors(ctx, p.manage(), uuid.Nil)
	})
}
