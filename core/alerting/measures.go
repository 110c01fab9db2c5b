package alerting

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/attune-go/attune/core/config"
	"github.com/attune-go/attune/core/explain"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/store"
)

// Sample is one value of a measure.
type Sample struct {
	// Target is what it is about; empty for the installation as a whole.
	Target string `json:"target,omitempty"`
	Value  float64
	// Detail is what a person wants to know besides.
	Detail string
	// Since is when it began, where that is known.
	Since *time.Time
	// Hint replaces the hint of the measure if it is set, but not that of a rule.
	Hint string
}

// Measures is a snapshot of everything that alert rules watch. A measure that is in
// neither map was not asked for.
type Measures struct {
	monitor.Reading
	// Samples has the values of the measures that are known. One without values is
	// known and zero for every target.
	Samples map[string][]Sample
	// Unknown says why a measure could not be read.
	Unknown map[string]string

	// cutOff says that no live replica has a connection to the broker.
	cutOff bool
}

func newMeasures() *Measures {
	return &Measures{Samples: map[string][]Sample{}, Unknown: map[string]string{}}
}

// Known reports whether a measure was read.
func (m *Measures) Known(measure string) bool {
	_, known := m.Samples[measure]
	return known
}

// Value is the value of a measure of the whole, and false when it is not known.
func (m *Measures) Value(measure string) (float64, bool) {
	list, known := m.Samples[measure]
	if !known || len(list) != 1 || list[0].Target != "" {
		return 0, false
	}
	return list[0].Value, true
}

// set records the value of a measure of the whole.
func (m *Measures) set(measure string, value float64, detail string) {
	m.Samples[measure] = []Sample{{Value: value, Detail: detail}}
}

// add records the value of one target.
func (m *Measures) add(measure string, s Sample) { m.Samples[measure] = append(m.Samples[measure], s) }

// know says that a measure was read, whatever targets it has.
func (m *Measures) know(measures ...string) {
	for _, name := range measures {
		if !m.Known(name) {
			m.Samples[name] = nil
		}
	}
}

// lose says of measures that they could not be read.
func (m *Measures) lose(err error, measures ...string) {
	const most = 200
	reason := err.Error()
	if cause := explain.Cause(err); cause != "" {
		reason = "the server " + cause + ": " + reason
	}
	text := []rune(reason)
	for _, name := range measures {
		delete(m.Samples, name)
		m.Unknown[name] = string(text[:min(len(text), most)])
	}
}

// share records a part of a whole; of too small a whole it is zero.
func (m *Measures) share(measure string, part, whole int64, word string) {
	if whole < fewEnds {
		m.set(measure, 0, "")
		return
	}
	m.set(measure, float64(part)/float64(whole), fmt.Sprintf("%d of %d %s in 15m", part, whole, word))
}

// Prober asks the broker what rules want to know. Each question is bounded by its
// context, and an answer may be as old as a minute.
type Prober interface {
	// QueueDepth is how many messages wait in a queue; one that does not exist has
	// none.
	QueueDepth(ctx context.Context, queue string) (int64, error)
	// LostRoutes names the routing keys whose dead letters would be lost, and Missing
	// what is declared and not there. Nil and no error say that all is well.
	LostRoutes(ctx context.Context) ([]string, error)
	Missing(ctx context.Context) ([]string, error)
	// OtherExecutors describes consumers of the engine's queues that are no replica.
	OtherExecutors(ctx context.Context) ([]string, error)
	// Alarms lists the alarms of the broker; asked is false where nobody can tell.
	Alarms(ctx context.Context) (list []string, asked bool, err error)
}

// measuring is one run of Measure.
type measuring struct {
	*Measures
	reader *Reader
	// open is how many dead letters wait in the ledger, negative while that is not known.
	open    int64
	workers []store.AlertWorkersRow
}

// Measure reads everything that alert rules watch: the database in one read-only
// transaction, then the broker. What could not be read is unknown, with the
// reason; the error is set when the database was not there at all.
func (m *Reader) Measure(ctx context.Context) (*Measures, error) {
	all := newMeasures()
	r := &measuring{Measures: all, reader: m}
	recorded := false
	err := m.Read(ctx, "measures", &all.Reading, func(ctx context.Context, tx *store.Tx, s monitor.Shape) (err error) {
		*all = Measures{Reading: all.Reading, Samples: map[string][]Sample{}, Unknown: map[string]string{}}
		r.open, r.workers, recorded = -1, nil, false
		if err := r.readShared(ctx, tx, s); err != nil {
			return err
		}
		if recorded, err = tx.AlertSchema(ctx); err != nil || !recorded || !s.Shared {
			recorded = false
			return err
		}
		for _, one := range readings {
			if err := one.read(ctx, tx, r); err != nil {
				return fmt.Errorf("%s: %w", one.what, err)
			}
		}
		return nil
	})
	if err != nil {
		all.lose(err, config.MeasuresFrom(config.FromDatabase)...)
	} else if recorded {
		r.readPartitions(ctx)
	}
	switch {
	case m.probe != nil:
		r.askBroker(ctx)
	case m.Deps().Broker != nil:
		r.askManagement(ctx)
	}
	all.know("unmeasured")
	for _, name := range slices.Sorted(maps.Keys(all.Unknown)) {
		all.add("unmeasured", Sample{Target: name, Value: 1, Detail: all.Unknown[name]})
	}
	return all, err
}
