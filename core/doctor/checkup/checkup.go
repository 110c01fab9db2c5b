// Package checkup examines a whole installation and says what is wrong with it
// and what to do.
//
// Every check answers one question, within its own deadline and as far as it can
// at the same time as the others. A check that stands on another, which failed,
// is not made and says so; so is one that gets no answer. Nothing is changed: the
// only things that are written are probes of dead letters, which vanish by
// themselves, and they can be left out.
//
// Without a database or a broker the checks that need neither are still made.
// Without management rights the broker shows less; each check then says what it
// has not seen.
package checkup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/config"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/store"
)

// Status is what came of a check.
type Status string

// What can come of a check.
const (
	// Passed means that what was looked at is as it should be.
	Passed Status = "passed"
	// Failed means that it is not.
	Failed Status = "failed"
	// Unchecked means that it could not be looked at.
	Unchecked Status = "not checked"
	// Skipped means that it was not to be looked at, or that it is optional and
	// not there. It does not make an installation unwell.
	Skipped Status = "skipped"
)

// Finding is the answer of one check.
type Finding struct {
	Name   string `json:"name"`
	Status Status `json:"status"`
	// Found is one line; Details are more, one for each thing.
	Found   string   `json:"found"`
	Details []string `json:"details"`
	// Fix is what to do; empty when there is nothing.
	Fix  string        `json:"fix,omitempty"`
	Took time.Duration `json:"took_ns"`

	unreachable bool
}

// Report is what came of all checks, in the order of the list.
type Report struct {
	Checks []Finding `json:"checks"`
}

// Well is true when every check passed that was to be made.
func (r *Report) Well() bool {
	return !slices.ContainsFunc(r.Checks, func(f Finding) bool { return f.Status == Failed || f.Status == Unchecked })
}

// Unreachable is true when the database or the broker did not answer.
func (r *Report) Unreachable() bool {
	return slices.ContainsFunc(r.Checks, func(f Finding) bool { return f.unreachable })
}

// Names lists the checks with a status.
func (r *Report) Names(status Status) []string {
	var names []string
	for _, f := range r.Checks {
		if f.Status == status {
			names = append(names, f.Name)
		}
	}
	return names
}

// Deps is what is examined. The store and the broker may be away.
type Deps struct {
	Config *config.Config
	Store  *store.Store
	// Broker has been started.
	Broker *broker.Broker
	// Management may be nil.
	Management *broker.Management
	// Version is that of the program that asks.
	Version string
}

// Options narrows an examination.
type Options struct {
	// NoProbe publishes nothing.
	NoProbe bool
	// Timeout bounds each check; zero means as long as each is given.
	Timeout time.Duration
}

// check is one question.
type check struct {
	name string
	// needs are the checks without which this check cannot judge. The checks that it only waits for
	// come after them.
	needs, after []string
	timeout      time.Duration
	look         func(ctx context.Context, v *visit) (Finding, error)
}

// visit is one examination under way. What a check learns for others it puts
// here before it ends, and they read it after.
type visit struct {
	Deps
	Options

	view *monitor.Monitor

	wires    *wires            // what the management API shows; nil without it
	workers  *monitor.Workers  // nil when they could not be read
	replicas *monitor.Replicas // nil when they could not be read
	alarm    string            // why the broker takes no messages; empty while it does
}

// Run makes every check and returns when all are made or the context has ended.
func Run(ctx context.Context, deps Deps, options Options) *Report {
	v := &visit{Deps: deps, Options: options, view: monitor.New(
		monitor.Config{StaleAfter: deps.Config.Executor.StaleAfter(),
			SilentReplicas: deps.Config.Retention.SilentReplicas}, monitor.Deps{Store: deps.Store})}
	list := checks()
	report := &Report{Checks: make([]Finding, len(list))}
	made := make(map[string]chan struct{}, len(list))
	for _, c := range list {
		made[c.name] = make(chan struct{})
	}
	at := func(name string) *Finding {
		return &report.Checks[slices.IndexFunc(list, func(c check) bool { return c.name == name })]
	}
	var all sync.WaitGroup
	for i, c := range list {
		all.Go(func() {
			defer close(made[c.name])
			for _, other := range append(slices.Clone(c.needs), c.after...) {
				<-made[other]
			}
			for _, need := range c.needs {
				if of := at(need); of.Status != Passed {
					report.Checks[i] = Finding{
						Name: c.name, Status: Unchecked, Details: []string{},
						Found: "it needs the " + need + ", see above",
					}
					return
				}
			}
			report.Checks[i] = v.make(ctx, c)
		})
	}
	all.Wait()
	return report
}

const defaultTimeout = 10 * time.Second

// make runs one check within its deadline.
func (v *visit) make(ctx context.Context, c check) Finding {
	timeout := c.timeout
	if timeout == 0 {
		timeout = defaultTimeout
	}
	if v.Timeout > 0 {
		timeout = min(timeout, v.Timeout)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	begin := time.Now()
	found, err := c.look(ctx, v)
	if err != nil {
		found = Finding{Status: Unchecked, Found: err.Error()}
		if errors.Is(err, context.DeadlineExceeded) {
			found.Found = fmt.Sprintf("no answer within %s (%s)", timeout, err)
		}
	}
	found.Name, found.Took = c.name, time.Since(begin)
	if found.Details == nil {
		found.Details = []string{}
	}
	return found
}

func passed(format string, args ...any) Finding {
	return Finding{Status: Passed, Found: fmt.Sprintf(format, args...)}
}

func failed(fix, format string, args ...any) Finding {
	return Finding{Status: Failed, Found: fmt.Sprintf(format, args...), Fix: fix}
}

func skipped(format string, args ...any) Finding {
	return Finding{Status: Skipped, Found: fmt.Sprintf(format, args...)}
}

// with adds lines to a finding.
func (f Finding) with(details ...string) Finding {
	f.Details = append(f.Details, details...)
	return f
}

// away marks that a server is missing.
func (f Finding) away() Finding {
	f.unreachable = true
	return f
}

// The names of the checks.
const (
	nameDatabase    = "database"
	nameSchema      = "schema"
	nameBroker      = "broker"
	nameManagement  = "management"
	nameAlarms      = "alarms"
	nameTopology    = "topology"
	nameWorkers     = "workers"
	nameLetters     = "dead letters"
	nameDeaths      = "expiry and rejection"
	nameWiring      = "queues"
	nameReplicas    = "replicas"
	nameVersions    = "versions"
	nameClocks      = "clocks"
	nameRivals      = "other engines"
	nameConsistency = "consistency"
	nameWorkQueues  = "work queues"
)

// checks is the list, in the order in which it is shown.
func checks() []check {
	stored, wired := []string{nameDatabase, nameSchema}, []string{nameBroker}
	return []check{
		{name: nameDatabase, look: lookDatabase},
		{name: nameSchema, needs: []string{nameDatabase}, look: lookSchema},
		{name: nameBroker, look: lookBroker},
		{name: nameManagement, look: lookManagement},
		{name: nameAlarms, needs: wired, after: []string{nameManagement}, look: lookAlarms},
		{name: nameTopology, needs: wired, after: []string{nameManagement}, look: lookTopology},
		{name: nameWorkers, needs: append(stored, nameBroker), after: []string{nameManagement},
			timeout: 30 * time.Second, look: lookWorkers},
		{name: nameLetters, needs: wired, after: []string{nameManagement, nameAlarms, nameWorkers},
			timeout: 30 * time.Second, look: lookLetters},
		{name: nameDeaths, needs: wired, after: []string{nameManagement, nameAlarms}, look: lookDeaths},
		{name: nameWiring, needs: wired, after: []string{nameManagement, nameWorkers}, look: lookWiring},
		{name: nameReplicas, needs: stored, look: lookReplicas},
		{name: nameVersions, needs: stored, after: []string{nameReplicas}, look: lookVersions},
		{name: nameClocks, needs: stored, after: []string{nameReplicas, nameWorkers}, look: lookClocks},
		{name: nameRivals, needs: append(stored, nameBroker), after: []string{nameManagement, nameReplicas},
			look: lookRivals},
		{name: nameConsistency, needs: stored, timeout: time.Minute, look: lookConsistency},
		{name: nameWorkQueues, needs: stored, look: lookWorkQueues},
	}
}
