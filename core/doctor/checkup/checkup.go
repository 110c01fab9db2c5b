// Package checkup checks a whole installation and says what is wrong and what to do.
//
// Every check answers one question within its own timeout; checks run concurrently where they can. A check
// without an answer, or after the failure of a check that it needs, is not made and says so. A checkup
// changes nothing: it publishes only probes of dead letters, which vanish by themselves and can be left out.
//
// Without a database or a broker the checks that need neither still run. Without rights on the management
// API each check says what it could not see.
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
	"github.com/attune-go/attune/core/roles"
	"github.com/attune-go/attune/core/store"
)

// Status is the result of a check.
type Status string

// The results of checks.
const (
	// Passed means that all is well.
	Passed Status = "passed"
	// Failed means that something is wrong.
	Failed Status = "failed"
	// Unchecked means that the check could not run.
	Unchecked Status = "not checked"
	// Skipped means that the check was disabled, or that its subject is optional and absent. The
	// installation counts as well.
	Skipped Status = "skipped"
)

// Finding is the result of one check.
type Finding struct {
	Name   string `json:"name"`
	Status Status `json:"status"`
	// Found is one line; Details has a line for each thing.
	Found   string   `json:"found"`
	Details []string `json:"details"`
	// Fix is what to do; empty when there is nothing.
	Fix  string        `json:"fix,omitempty"`
	Took time.Duration `json:"took_ns"`

	unreachable bool
}

// Report has the findings in the order of the checks.
type Report struct {
	Checks []Finding `json:"checks"`
}

// Well is true when no check failed or could not run.
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

// Deps are the parts of the installation. Store and broker may be unreachable.
type Deps struct {
	Config *config.Config
	Store  *store.Store
	// Broker has been started.
	Broker *broker.Broker
	// Management may be nil.
	Management *broker.Management
	// Version is that of the calling program.
	Version string
}

// Options restrict a checkup.
type Options struct {
	// NoProbe publishes nothing.
	NoProbe bool
	// Timeout bounds each check; 0 means its own timeout.
	Timeout time.Duration
	// As is a role: only the logins in use are checked, and compared with it. Empty checks the installation.
	As roles.Role
}

// check is one question.
type check struct {
	name string
	// needs are the checks that must pass before this one, after the checks that must only end.
	needs, after []string
	timeout      time.Duration
	look         func(ctx context.Context, v *visit) (Finding, error)
}

// visit is one running checkup. A check stores what later checks read before it ends.
type visit struct {
	Deps
	Options

	view *monitor.Monitor

	wires    *wires            // nil without the management API
	workers  *monitor.Workers  // nil if unreadable
	replicas *monitor.Replicas // nil if unreadable
	alarm    string            // why the broker accepts no messages, if so
}

// Run runs every check and returns when all have ended.
func Run(ctx context.Context, deps Deps, options Options) *Report {
	view := monitor.New(monitor.Configured(deps.Config), monitor.Deps{Store: deps.Store})
	v := &visit{Deps: deps, Options: options, view: view}
	list := checks()
	if options.As != "" {
		list = loginChecks()
	}
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

// make runs one check within its timeout.
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

// with adds details.
func (f Finding) with(details ...string) Finding {
	f.Details = append(f.Details, details...)
	return f
}

// away marks a missing server.
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
	nameDeadLetters = "dead letters"
	nameDeaths      = "expiry and rejection"
	nameWiring      = "queues"
	nameReplicas    = "replicas"
	nameVersions    = "versions"
	nameClocks      = "clocks"
	nameRivals      = "other engines"
	nameConsistency = "consistency"
	nameWorkQueues  = "work queues"
	namePrivileges  = "privileges"
	namePermissions = "permissions"
)

// checks lists the checks in the order of the report.
func checks() []check {
	stored, wired := []string{nameDatabase, nameSchema}, []string{nameBroker}
	return []check{
		{name: nameDatabase, look: lookDatabase},
		{name: nameSchema, needs: []string{nameDatabase}, look: lookSchema},
		{name: nameBroker, look: lookBroker},
		{name: nameManagement, look: lookManagement},
		{name: nameAlarms, needs: wired, after: []string{nameManagement}, look: lookAlarms},
		{name: nameTopology, needs: wired, after: []string{nameManagement}, look: lookTopology},
		{
			name: nameWorkers, needs: append(stored, nameBroker), after: []string{nameManagement},
			timeout: 30 * time.Second, look: lookWorkers,
		},
		{
			name: nameDeadLetters, needs: wired, after: []string{nameManagement, nameAlarms, nameWorkers, nameReplicas},
			timeout: 30 * time.Second, look: lookDeadLetters,
		},
		{name: nameDeaths, needs: wired, after: []string{nameManagement, nameAlarms}, look: lookDeaths},
		{name: nameWiring, needs: wired, after: []string{nameManagement, nameWorkers}, look: lookWiring},
		{name: nameReplicas, needs: stored, look: lookReplicas},
		{name: nameVersions, needs: stored, after: []string{nameReplicas}, look: lookVersions},
		{name: nameClocks, needs: stored, after: []string{nameReplicas, nameWorkers}, look: lookClocks},
		{
			name: nameRivals, needs: append(stored, nameBroker), after: []string{nameManagement, nameReplicas},
			look: lookRivals,
		},
		{name: nameConsistency, needs: stored, timeout: time.Minute, look: lookConsistency},
		{name: nameWorkQueues, needs: stored, look: lookWorkQueues},
	}
}

// loginChecks lists the checks of the logins.
func loginChecks() []check {
	return []check{
		{name: nameDatabase, look: lookDatabase},
		{name: nameSchema, needs: []string{nameDatabase}, look: lookSchema},
		{name: namePrivileges, needs: []string{nameDatabase}, look: lookPrivileges},
		{name: nameBroker, look: lookBroker},
		{name: namePermissions, needs: []string{nameBroker}, look: lookPermissions},
	}
}
