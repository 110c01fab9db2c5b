package alerting

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/attune-go/attune/core/config"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/core/store"
)

// Sample is one value of a measure.
type Sample struct {
	// Target is what the value is of; empty for the whole installation.
	Target string `json:"target,omitempty"`
	Value  float64
	// Detail is a remark for people.
	Detail string
	// Since is when it began, if known.
	Since *time.Time
	// Summary and Hint replace those of the measure, but not those of a rule.
	Summary, Hint string
}

// Measures is a snapshot of all measures. A measure in neither map was not requested.
type Measures struct {
	monitor.Reading
	// Samples has the values of known measures. A known measure without values is 0 for every
	// target.
	Samples map[string][]Sample
	// Unknown has the reason of each unknown measure.
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

// Value is the value of a measure of the whole installation, and false when it is unknown.
func (m *Measures) Value(measure string) (float64, bool) {
	list, known := m.Samples[measure]
	if !known || len(list) != 1 || list[0].Target != "" {
		return 0, false
	}
	return list[0].Value, true
}

// set records the value of the whole installation.
func (m *Measures) set(measure string, value float64, detail string) {
	m.Samples[measure] = []Sample{{Value: value, Detail: detail}}
}

// add records the value of one target.
func (m *Measures) add(measure string, s Sample) { m.Samples[measure] = append(m.Samples[measure], s) }

// know records that measures were read, even without a target.
func (m *Measures) know(measures ...string) {
	for _, name := range measures {
		if !m.Known(name) {
			m.Samples[name] = nil
		}
	}
}

// lose records measures that could not be read.
func (m *Measures) lose(trouble phrase.Trouble, measures ...string) {
	const most = 200
	text := []rune(trouble.String())
	for _, name := range measures {
		delete(m.Samples, name)
		m.Unknown[name] = string(text[:min(len(text), most)])
	}
}

// share records a ratio; 0 of too few.
func (m *Measures) share(measure string, part, whole int64, word string) {
	if whole < fewEnds {
		m.set(measure, 0, "")
		return
	}
	m.set(measure, float64(part)/float64(whole), fmt.Sprintf("%d of %d %s in 15m", part, whole, word))
}

// Prober reads measures from the broker. Each call is bounded by its context; an answer may be a
// minute old.
type Prober interface {
	// QueueDepth is the number of messages in a queue, 0 if it does not exist.
	QueueDepth(ctx context.Context, queue string) (int64, error)
	// LostRoutes names the routing keys whose dead letters would be lost, Missing the declared
	// things that do not exist. Nil means that all is well.
	LostRoutes(ctx context.Context) ([]string, error)
	Missing(ctx context.Context) ([]string, error)
	// OtherExecutors describes consumers of the engine's queues that are no replica.
	OtherExecutors(ctx context.Context) ([]string, error)
	// Alarms lists the alarms of the broker; asked is false when they cannot be read.
	Alarms(ctx context.Context) (list []string, asked bool, err error)
}

// measuring is one run of Measure.
type measuring struct {
	*Measures
	reader *Reader
	// open is the number of undecided dead letters, negative while unknown.
	open    int64
	workers []worker
}

// Measure reads all measures: from the database in one read-only transaction, then from the broker.
// Failed measures are unknown, with the reason. It fails only without the database.
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
		if recorded = s.Ours; !recorded {
			return nil
		}
		for _, one := range readings {
			if err := one.read(ctx, tx, r); err != nil {
				return fmt.Errorf("%s: %w", one.what, err)
			}
		}
		return nil
	})
	if err != nil {
		all.lose(store.Trouble(err), config.MeasuresFrom(config.FromDatabase)...)
	} else if recorded {
		r.readPartitions(ctx)
	}
	if m.probe != nil {
		r.askBroker(ctx)
	}
	all.know("unmeasured")
	for _, name := range slices.Sorted(maps.Keys(all.Unknown)) {
		all.add("unmeasured", Sample{Target: name, Value: 1, Detail: all.Unknown[name]})
	}
	return all, err
}
