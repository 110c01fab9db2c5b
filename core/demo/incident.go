package demo

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/attune-go/attune/core/submit"
	"github.com/attune-go/attune/core/supervise"
)

//go:embed incident.sql
var incidentSQL string

//go:embed incident_ends.sql
var incidentEndsSQL string

// Times of an incident.
const (
	incidentAfter   = 10 * time.Second // from the start of the dashboard to the incident
	incidentPause   = time.Minute      // from the last decision about an incident to the next
	incidentLongest = 5 * time.Minute  // an incident that is not triaged ends after this
	// incidentTimeout bounds each wait for one step of an incident.
	incidentTimeout = 45 * time.Second
)

// Groups of the dead letters of an incident, as incident.sql names them.
const (
	groupMirror = "mirror" // events that expired while their consumer was away
	groupPrint  = "print"  // hand-overs that no worker began: a requeue runs them at another worker
	groupFax    = "fax"    // hand-overs that the engine has repeated: stale
	groupBroken = "broken" // messages that no program can read
)

// groups lists the groups in the order of the report.
var groups = []string{groupMirror, groupPrint, groupFax, groupBroken}

// incident is trouble that begins while traffic runs, with real causes: a worker that
// sends heartbeats and consumes nothing, a colleague's script that copies its messages to
// the queue of another worker, a publisher of broken messages, a consumer of events that
// is away, a release that fails most runs of one action, and an action that is deleted.
// The causes end by themselves; the dead letters wait for a person.
type incident struct {
	demo   *Demo
	number int // of the run, from 0
	span       // of letters and events

	annex     *annex
	target    int64    // the worker that got copies of the messages of the annex
	prints    []int64  // executions whose hand-overs were copied
	faxes     []int64  // the same; the engine repeats them
	expired   []int64  // faxes whose hand-overs expired before they were copied
	elsewhere []int64  // prints and faxes that other workers were handed
	invoices  []int64  // requested while the release was bad
	strays    []int64  // requested of the deleted action
	broken    []string // message ids
	hangs     []int64  // a backup that holds the only slot
	backups   []int64  // backups that wait for it
	orders    []int64  // workflows that were paused
	left      *verdict // of a practice; nil otherwise
	failures  []string // what did not happen as planned
	cut       bool     // the operator quit before the incident had come to its end
}

// span is what was written from the beginning of an incident to the beginning of the next.
type span struct {
	beforeLetter, lastLetter int64
	beforeEvent, lastEvent   int64
}

// openEnd is the last letter and event of a span that has not ended.
const openEnd = math.MaxInt64

// letter is a dead letter of an incident.
type letter struct {
	id, execution int64
	group         string
	decision      string // empty while it waits for a person
}

// size is how many dead letters each group has: fifteen in the first incident of a run,
// fewer in some of the others.
func (i *incident) size() int { return 15 - i.number%3 }

// letters reads the dead letters of the incident.
func (i *incident) letters(ctx context.Context) ([]letter, error) {
	rows, err := i.demo.store.Pool().Query(ctx, incidentSQL, i.beforeLetter, i.target, mirrorQueue, i.broken,
		i.lastLetter)
	if err != nil {
		return nil, fmt.Errorf("read the dead letters of the incident: %w", err)
	}
	defer rows.Close()
	var list []letter
	for rows.Next() {
		var l letter
		if err := rows.Scan(&l.id, &l.group, &l.decision, &l.execution); err != nil {
			return nil, fmt.Errorf("read the dead letters of the incident: %w", err)
		}
		list = append(list, l)
	}
	return list, rows.Err()
}

// waiting counts the letters of each group that wait for a person.
func waiting(letters []letter) map[string]int {
	counts := map[string]int{}
	for _, l := range letters {
		if l.group != "" && l.decision == "" {
			counts[l.group]++
		}
	}
	return counts
}

// step is one part of an incident; a step without a name is not told.
type step struct {
	name string
	do   func(context.Context) error
}

// steps are those of the whole incident.
func (i *incident) steps() []step {
	return []step{
		{"", i.prepare},
		{"incident: " + annexName + " sends heartbeats and consumes nothing", i.openAnnex},
		{"incident: the mirror of events is away", i.closeMirror},
		{"incident: ops 1.5.0 is released", i.release},
		{"incident: a publisher sends broken messages", i.sendBroken},
		{"", i.request},
		{"incident: a script copies the messages of " + annexName + " to another worker", i.copyMessages},
		{"", i.awaitEnds},
		{"incident: the mirror of events is back", i.openMirror},
		{"incident: ops.fax is deleted, and is still requested", i.deleteFax},
		{"incident: ops 1.4.0 is back", i.rollBack},
		{"", i.awaitLetters},
	}
}

// happen brings the incident about and returns when its dead letters wait. What fails on
// the way is kept in failures: an incident that is interrupted is not complete.
func (i *incident) happen(ctx context.Context, news chan<- string, steps []step) {
	for _, step := range steps {
		if step.name != "" {
			tell(ctx, news, step.name)
		}
		if err := i.patiently(ctx, step.do); err != nil {
			if i.cut = ctx.Err() != nil && i.left == nil && i.demo.watched(); i.cut {
				return
			}
			i.failures = append(i.failures, fmt.Sprintf("%s: %v", step.name, err))
			if ctx.Err() != nil {
				return
			}
			tell(ctx, news, fmt.Sprintf("incident failed: %v", err))
		}
	}
}

// tell says what happens to the show, unless it is over.
func tell(ctx context.Context, news chan<- string, text string) {
	select {
	case news <- text:
	case <-ctx.Done():
	}
}

// patiently bounds one step.
func (i *incident) patiently(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, incidentTimeout)
	defer cancel()
	return do(ctx)
}

// prepare undoes what an earlier incident has left, ends its span, and begins that of this
// incident. The first one has the events of the whole run.
func (i *incident) prepare(ctx context.Context) error {
	if err := i.demo.restoreOps(ctx); err != nil {
		return err
	}
	const newest = "SELECT (SELECT coalesce(max(id), 0) FROM dead_letter), (SELECT coalesce(max(id), 0) FROM event)"
	var letter, event int64
	if err := i.demo.store.Pool().QueryRow(ctx, newest).Scan(&letter, &event); err != nil {
		return fmt.Errorf("find where the incident begins: %w", err)
	}
	i.beforeLetter, i.beforeEvent = letter, i.demo.beforeEvent
	if i.number > 0 {
		before := i.demo.incidents[i.number-1]
		i.beforeEvent, before.lastLetter, before.lastEvent = event, letter, event
	}
	return nil
}

// until calls a condition until it holds.
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
	rows, err := i.demo.store.Pool().Query(ctx, incidentEndsSQL, executions)
	if err != nil {
		return nil, fmt.Errorf("read how the executions of the incident ended: %w", err)
	}
	defer rows.Close()
	var list []last
	for rows.Next() {
		var l last
		if err := rows.Scan(&l.execution, &l.attempt, &l.status); err != nil {
			return nil, fmt.Errorf("read how the executions of the incident ended: %w", err)
		}
		list = append(list, l)
	}
	return list, rows.Err()
}

// awaitEnds waits until no worker can begin the prints any more, and the engine has
// repeated the faxes.
func (i *incident) awaitEnds(ctx context.Context) error {
	return until(ctx, "await the ends of what the annex did not begin", func(ctx context.Context) (bool, error) {
		prints, err := i.lastOf(ctx, i.prints)
		if err != nil {
			return false, err
		}
		faxes, err := i.lastOf(ctx, append(i.faxes, i.expired...))
		return err == nil && all(prints, "failed") && all(faxes, "completed"), err
	})
}

func all(list []last, status string) bool {
	for _, l := range list {
		if l.status != status {
			return false
		}
	}
	return true
}

// awaitLetters waits until the dead letters of all four groups are in the ledger.
func (i *incident) awaitLetters(ctx context.Context) error {
	return until(ctx, "await the dead letters of the incident", func(ctx context.Context) (bool, error) {
		list, err := i.letters(ctx)
		counts := waiting(list)
		return err == nil && counts[groupPrint] >= len(i.prints) && counts[groupFax] >= len(i.faxes) &&
			counts[groupBroken] >= len(i.broken) && counts[groupMirror] >= i.size(), err
	})
}

// trouble has incidents begin while the show goes on. Where the demo has a given length
// there is one, and commands triage it. Where people watch, it waits for them, and another
// one follows a minute after they have decided all of its letters.
func (d *Demo) trouble(ctx context.Context, news chan<- string) {
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
		d.miss("the incident", errors.New("the time was over"))
		return
	}
	for {
		i := d.newIncident()
		d.calm.Lock()
		i.happen(ctx, news, i.steps())
		if d.cfg.Duration > 0 && len(i.failures) == 0 {
			i.triage(ctx, news)
		}
		d.calm.Unlock()
		if d.watched() {
			i.awaitTriage(ctx)
		}
		i.heal(context.WithoutCancel(ctx))
		if !d.watched() || !supervise.Sleep(ctx, incidentPause) {
			return
		}
	}
}

// newIncident is the next incident of the run. Nothing is of it before it is prepared.
func (d *Demo) newIncident() *incident {
	i := &incident{demo: d, number: len(d.incidents), span: span{openEnd, openEnd, openEnd, openEnd}}
	d.incidents = append(d.incidents, i)
	return i
}

// awaitTriage waits until people have decided all letters of the incident, or long enough.
func (i *incident) awaitTriage(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, incidentLongest)
	defer cancel()
	_ = until(ctx, "", func(ctx context.Context) (bool, error) { // that it is not triaged is no failure
		list, err := i.letters(ctx)
		return err == nil && len(waiting(list)) == 0, err
	})
}

// heal ends every cause that is left. Letters stay as they are.
func (i *incident) heal(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, incidentTimeout)
	defer cancel()
	err := errors.Join(i.demo.bringMirrorBack(ctx), i.demo.restoreOps(ctx))
	if i.annex != nil {
		err = errors.Join(err, i.annex.close(ctx))
	}
	if err != nil {
		i.demo.logger.WarnContext(ctx, "A cause of the incident could not be ended", "error", err)
	}
}

// together runs faults and trouble side by side and closes done after both.
func together(done chan<- struct{}, parts ...func()) {
	var wg sync.WaitGroup
	for _, part := range parts {
		wg.Go(part)
	}
	wg.Wait()
	close(done)
}

// requested are the executions that the incident asked for.
func (i *incident) requested() []int64 {
	var ids []int64
	for _, some := range [][]int64{i.prints, i.faxes, i.expired, i.elsewhere, i.invoices, i.strays, i.hangs,
		i.backups} {
		ids = append(ids, some...)
	}
	return ids
}

// ask requests executions and returns their ids.
func (i *incident) ask(ctx context.Context, requests []submit.Request) (ids []int64, err error) {
	done, err := submit.New(i.demo.store, i.demo.relay).RequestMany(ctx, requests)
	if err != nil {
		return nil, fmt.Errorf("request the executions of the incident: %w", err)
	}
	for _, r := range done {
		ids = append(ids, r.ID)
	}
	return ids, nil
}
