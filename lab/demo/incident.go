package demo

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/attune-go/attune/core/submit"
	"github.com/attune-go/attune/core/supervise"
	"github.com/attune-go/attune/lab/query"
)

// Times of an incident.
const (
	incidentAfter   = 10 * time.Second // from the start of the dashboard to the incident
	incidentPause   = time.Minute      // from the last decision about an incident to the next
	incidentLongest = 5 * time.Minute  // the longest time to triage an incident
	// incidentTimeout bounds each wait for one step of an incident.
	incidentTimeout = 45 * time.Second
)

// Groups of the dead letters of an incident, as incident.sql names them.
const (
	groupMirror = "mirror" // events that expired while their consumer was away
	groupPrint  = "print"  // dispatches that no worker started: requeueing runs them at another worker
	groupFax    = "fax"    // dispatches that the engine has retried: stale
	groupBroken = "broken" // unreadable messages
)

// groups lists the groups in the order of the report.
var groups = []string{groupMirror, groupPrint, groupFax, groupBroken}

// incident is a set of faults with real causes during traffic: a worker sends heartbeats and consumes
// nothing, a script copies its messages to the queue of another worker, a publisher sends broken
// messages, a consumer of events is away, a release fails most runs of one action, and an action is
// deleted. The causes end without the user; the dead letters wait for the user.
type incident struct {
	demo   *Demo
	number int // of the run, from 0
	span       // of dead letters and events

	annex     *annex
	target    int64    // the worker that received the copied messages
	prints    []int64  // executions with copied dispatches
	faxes     []int64  // executions with copied dispatches, which the engine retries
	expired   []int64  // faxes whose dispatches expired before they were copied
	elsewhere []int64  // prints and faxes at other workers
	invoices  []int64  // requested during the bad release
	strays    []int64  // executions of the deleted action
	broken    []string // message ids
	hangs     []int64  // a backup that holds the only slot
	backups   []int64  // backups that wait for it
	orders    []int64  // paused workflows
	left      *verdict // of a practice; nil otherwise
	failures  []string // failed steps
	cut       bool     // the user quit before the incident was complete
}

// span is the range of dead letters and events from the start of an incident to the start of the next.
type span struct {
	beforeDeadLetter, lastDeadLetter int64
	beforeEvent, lastEvent           int64
}

// openEnd is the last dead letter and event of an open span.
const openEnd = math.MaxInt64

// deadLetter is a dead letter of an incident.
type deadLetter struct {
	id, execution int64
	group         string
	decision      string // empty until the user decides
}

// size is the number of dead letters of each group: fifteen in the first incident, fewer in some others.
func (i *incident) size() int { return 15 - i.number%3 }

func (i *incident) deadLetters(ctx context.Context) ([]deadLetter, error) {
	return query.Rows(ctx, i.demo.store.Pool(), "read the dead letters of the incident", sql.Incident,
		args{i.beforeDeadLetter, i.target, mirrorQueue, i.broken, i.lastDeadLetter},
		func(l *deadLetter) []any { return []any{&l.id, &l.group, &l.decision, &l.execution} })
}

// waiting counts the undecided dead letters of each group.
func waiting(list []deadLetter) map[string]int {
	counts := map[string]int{}
	for _, l := range list {
		if l.group != "" && l.decision == "" {
			counts[l.group]++
		}
	}
	return counts
}

// step is one part of an incident. The demo prints its name, if any.
type step struct {
	name string
	do   func(context.Context) error
}

// steps returns the steps of the whole incident.
func (i *incident) steps() []step {
	return []step{
		{"", i.prepare},
		{"incident: " + annexName + " sends heartbeats and consumes nothing", i.openAnnex},
		{"incident: the mirror of events is away", i.closeMirror},
		{"incident: ops 1.5.0 is released", i.release},
		{"incident: a publisher sends broken messages", i.sendBroken},
		{"", i.requestPrints},
		{"", i.requestFaxes},
		{"", i.requestInvoices},
		{"", i.scanParcels},
		{"incident: a script copies the messages of " + annexName + " to another worker", i.copyMessages},
		{"", i.awaitEnds},
		{"incident: the mirror of events is back", i.openMirror},
		{"incident: ops.fax is deleted, and is still requested", i.deleteFax},
		{"incident: ops 1.4.0 is back", i.rollBack},
		{"", i.awaitDeadLetters},
	}
}

// run runs the steps and returns when the dead letters wait. It records failed steps; an interrupted
// incident is not complete.
func (i *incident) run(ctx context.Context, news chan<- string, steps []step) {
	for _, step := range steps {
		if step.name != "" {
			notify(ctx, news, step.name)
		}
		if err := i.bounded(ctx, step.do); err != nil {
			if i.cut = ctx.Err() != nil && i.left == nil && i.demo.watched(); i.cut {
				return
			}
			i.failures = append(i.failures, fmt.Sprintf("%s: %v", step.name, err))
			if ctx.Err() != nil {
				return
			}
			notify(ctx, news, fmt.Sprintf("incident failed: %v", err))
		}
	}
}

// notify prints a text unless the demo has ended.
func notify(ctx context.Context, news chan<- string, text string) {
	select {
	case news <- text:
	case <-ctx.Done():
	}
}

// bounded calls do with the timeout of a step.
func (i *incident) bounded(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, incidentTimeout)
	defer cancel()
	return do(ctx)
}

// prepare restores the packs, ends the span of the earlier incident, and starts the span of this one. The
// span of the first incident contains the events of the whole run.
func (i *incident) prepare(ctx context.Context) error {
	if err := i.demo.restoreOps(ctx); err != nil {
		return err
	}
	const newest = "SELECT (SELECT coalesce(max(id), 0) FROM dead_letter), (SELECT coalesce(max(id), 0) FROM event)"
	var dead, event int64
	if err := i.demo.queryRow(ctx, "find the newest dead letter and event", newest, nil, &dead, &event); err != nil {
		return err
	}
	i.beforeDeadLetter, i.beforeEvent = dead, i.demo.beforeEvent
	if i.number > 0 {
		before := i.demo.incidents[i.number-1]
		i.beforeEvent, before.lastDeadLetter, before.lastEvent = event, dead, event
	}
	return nil
}

// until polls a condition until it holds.
func until(ctx context.Context, what string, holds func(context.Context) (bool, error)) error {
	for {
		ok, err := holds(ctx)
		if ok {
			return nil
		}
		if !supervise.Sleep(ctx, 200*time.Millisecond) {
			return errors.Join(fmt.Errorf("%s: %w", what, context.Cause(ctx)), err)
		}
	}
}

// last is the last attempt of an execution.
type last struct {
	execution, attempt int64
	status             string
}

func (i *incident) lastOf(ctx context.Context, executions []int64) ([]last, error) {
	const what = "read how the executions of the incident ended"
	return query.Rows(ctx, i.demo.store.Pool(), what, sql.IncidentEnds, args{executions},
		func(l *last) []any { return []any{&l.execution, &l.attempt, &l.status} })
}

// all reports whether the last attempts have one of the statuses.
func all(list []last, statuses ...string) bool {
	return !slices.ContainsFunc(list, func(l last) bool { return !slices.Contains(statuses, l.status) })
}

// awaitEnds waits until the prints have failed and the retries of the faxes have completed.
func (i *incident) awaitEnds(ctx context.Context) error {
	return until(ctx, "wait for the ends of the executions of the annex", func(ctx context.Context) (bool, error) {
		prints, err := i.lastOf(ctx, i.prints)
		if err != nil {
			return false, err
		}
		faxes, err := i.lastOf(ctx, append(i.faxes, i.expired...))
		return err == nil && all(prints, "failed") && all(faxes, "completed"), err
	})
}

// awaitDeadLetters waits until the dead letters of all four groups are in the ledger.
func (i *incident) awaitDeadLetters(ctx context.Context) error {
	return until(ctx, "wait for the dead letters of the incident", func(ctx context.Context) (bool, error) {
		list, err := i.deadLetters(ctx)
		counts := waiting(list)
		return err == nil && counts[groupPrint] >= len(i.prints) && counts[groupFax] >= len(i.faxes) &&
			counts[groupBroken] >= len(i.broken) && counts[groupMirror] >= i.size(), err
	})
}

// runIncidents runs incidents during the demo. In a demo of a given length there is one, and commands
// triage it. Otherwise it waits for the user, and starts the next one a minute after the last decision.
func (d *Demo) runIncidents(ctx context.Context, news chan<- string) {
	pause := incidentAfter
	if d.cfg.Duration > 0 {
		pause = min(3*time.Second, d.cfg.Duration/10)
	}
	if d.cfg.Practice != "" {
		if supervise.Sleep(ctx, pause) {
			d.practise(ctx, news)
		}
		return
	}
	if !supervise.Sleep(ctx, pause) {
		d.recordMissed("the incident", errors.New("the demo ended before"))
		return
	}
	for {
		i := d.newIncident()
		d.incidentLock.Lock()
		i.run(ctx, news, i.steps())
		if d.cfg.Duration > 0 && len(i.failures) == 0 {
			i.triage(ctx, news)
		}
		d.incidentLock.Unlock()
		if d.watched() {
			i.awaitDecisions(ctx)
		}
		i.cleanUp(context.WithoutCancel(ctx))
		if !d.watched() || !supervise.Sleep(ctx, incidentPause) {
			return
		}
	}
}

// newIncident adds the next incident of the run. Its span is empty until prepare.
func (d *Demo) newIncident() *incident {
	i := &incident{demo: d, number: len(d.incidents), span: span{openEnd, openEnd, openEnd, openEnd}}
	d.incidents = append(d.incidents, i)
	return i
}

// awaitDecisions waits until the user has decided all dead letters, for at most incidentLongest.
func (i *incident) awaitDecisions(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, incidentLongest)
	defer cancel()
	_ = until(ctx, "", func(ctx context.Context) (bool, error) { // a timeout is no failure
		list, err := i.deadLetters(ctx)
		return err == nil && len(waiting(list)) == 0, err
	})
}

// cleanUp ends every remaining cause. It does not touch the dead letters.
func (i *incident) cleanUp(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, incidentTimeout)
	defer cancel()
	err := errors.Join(i.demo.bringMirrorBack(ctx), i.demo.restoreOps(ctx))
	if i.annex != nil {
		err = errors.Join(err, i.annex.close(ctx))
	}
	if err != nil {
		i.demo.logger.WarnContext(ctx, "Failed to end a cause of the incident", "error", err)
	}
}

// requested returns the executions that the incident requested.
func (i *incident) requested() []int64 {
	return slices.Concat(i.prints, i.faxes, i.expired, i.elsewhere, i.invoices, i.strays, i.hangs, i.backups)
}

// submit requests executions and returns their ids.
func (i *incident) submit(ctx context.Context, requests []submit.Request) (ids []int64, err error) {
	done, err := submit.New(i.demo.store, i.demo.relay).RequestMany(ctx, requests)
	if err != nil {
		return nil, fmt.Errorf("request the executions of the incident: %w", err)
	}
	for _, r := range done {
		ids = append(ids, r.ID)
	}
	return ids, nil
}
