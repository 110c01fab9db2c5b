package monitor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/store"
)

// CheckStatus is what came of a check.
type CheckStatus string

// What can come of a check, from good to bad. A check that could not be made says
// nothing about what it is called after.
const (
	CheckOK      CheckStatus = "ok"
	CheckUnknown CheckStatus = "unknown"
	CheckWarning CheckStatus = "warning"
	CheckProblem CheckStatus = "problem"
)

// Check is one thing that was looked at, read only.
type Check struct {
	// Name is what was looked at, such as topology.route.
	Name   string      `json:"name"`
	Status CheckStatus `json:"status"`
	// Text is what was found, in one line, and Fix what to do; empty for nothing.
	Text string `json:"text"`
	Fix  string `json:"fix,omitempty"`
	// Seen is since when this program has found it wrong, every time that it looked; it
	// may be so for longer. Nil for what is not wrong.
	Seen *time.Time `json:"seen,omitempty"`
	// Objects names what it is about, such as queues.
	Objects []string `json:"objects,omitempty"`
	// View is the view of the dashboard that shows more, and Filter what narrows it.
	View   string `json:"view,omitempty"`
	Filter string `json:"filter,omitempty"`
}

// Checks is what was looked at beyond the alerts: how the broker is wired, and
// whether the rows of the database agree with each other.
type Checks struct {
	Reading
	List []Check `json:"list"`
}

// Count is how many checks came out so.
func (c *Checks) Count(status CheckStatus) (n int) {
	if c == nil {
		return 0
	}
	for i := range c.List {
		if c.List[i].Status == status {
			n++
		}
	}
	return n
}

// Worst orders the checks, the worst first and otherwise as they stand.
func (s CheckStatus) Worst() int {
	switch s {
	case CheckProblem:
		return 0
	case CheckWarning:
		return 1
	case CheckUnknown:
		return 2
	default:
		return 3
	}
}

// Checks makes every check. Both sources are asked at the same time; of one that
// does not answer the checks are unknown, and only without both it is an error.
func (m *Monitor) Checks(ctx context.Context) (*Checks, error) {
	c := &Checks{}
	var wiring *broker.Wiring
	var workers []int64
	var rows []Check
	starting := false // a replica of the engine
	brokerErr, databaseErr := m.both(ctx, "checks", &c.Reading, func(b BrokerReader) (err error) {
		wiring, err = b.ReadWiring(ctx)
		return err
	}, func(ctx context.Context, tx *store.Tx, s Shape) (err error) {
		if workers, err = tx.CheckWorkerIDs(ctx, WorkerLimit); err != nil {
			return fmt.Errorf("list the ids of workers: %w", err)
		}
		replicas, err := m.ReadReplicas(ctx, tx, s, c.At)
		if err != nil {
			return err
		}
		starting = replicas != nil && slices.ContainsFunc(replicas.List, func(r Replica) bool { return r.Starting(c.At) })
		rows, err = m.checkRows(ctx, tx, s)
		return err
	})
	if brokerErr != nil && databaseErr != nil {
		return c, errors.Join(brokerErr, databaseErr)
	}
	if databaseErr != nil {
		workers, rows = nil, unmade(rowChecks, fmt.Sprintf("the database did not answer: %v", databaseErr))
	}
	if brokerErr != nil || wiring == nil {
		c.List = unmade(topologyChecks, fmt.Sprintf("the management interface did not answer: %v", brokerErr))
	} else {
		c.List = CheckTopology(wiring, workers)
		if starting {
			uncounted(c.List, wiring)
		}
	}
	c.List = append(c.List, rows...)
	at := c.At
	if at.IsZero() {
		at = time.Now() // the database's time is not to be had
	}
	m.holdChecks(c.List, at)
	return c, nil
}

// uncounted takes back that dead letters have no consumer, which the broker counts
// every few seconds only.
func uncounted(list []Check, w *broker.Wiring) {
	alone := slices.ContainsFunc(w.Queues, func(q broker.QueueInfo) bool {
		return q.Name == message.QueueDeadLetter && q.Consumers != nil && *q.Consumers == 0
	})
	for i := range list {
		if one := &list[i]; alone && one.Name == CheckDeadLetterQueue && one.Status == CheckProblem {
			one.Status, one.Text, one.Fix = CheckUnknown, "a replica has just started: its consumers are not counted yet", ""
		}
	}
}

// unmade says why none of these checks could be made.
func unmade(names []string, why string) []Check {
	list := make([]Check, 0, len(names))
	for _, name := range names {
		list = append(list, Check{Name: name, Status: CheckUnknown, Text: why})
	}
	return list
}

// verdict is a problem with these objects, or well if there are none.
func verdict(name string, objects []string, problem Check, well string) Check {
	if len(objects) == 0 {
		return Check{Name: name, Status: CheckOK, Text: well}
	}
	problem.Name, problem.Status, problem.Objects = name, CheckProblem, objects
	return problem
}
