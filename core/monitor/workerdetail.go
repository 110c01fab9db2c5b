package monitor

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/attune-go/attune/core/store"
)

// The bounds of what is read of one worker.
const (
	// WorkerRunRows is how many executions are listed, WorkerChangeRows how many
	// changes, of which so many of the last day are looked at.
	WorkerRunRows    = 50
	WorkerChangeRows = 40
	changeScan       = 2_000
	changeSpan       = 24 * time.Hour
	// flapSpan is how soon a worker must come back for its loss to be a flap.
	flapSpan = 10 * time.Minute
)

// WorkerDetail is what is known of one worker beside its row in the list.
type WorkerDetail struct {
	Reading
	ID int64 `json:"id"`
	// Exists is false when no row has the id.
	Exists bool `json:"exists"`
	// Running is what it has now, the oldest first; MoreRunning says that there is
	// more.
	Running     []WorkerRun `json:"running"`
	MoreRunning bool        `json:"more_running,omitempty"`
	// Changes are those of the last day, the newest first. Recorded is false where
	// nobody writes them down.
	Changes  []WorkerChange `json:"changes"`
	Recorded bool           `json:"recorded"`
	// Flaps counts the losses of the last day after which it was back soon.
	Flaps int64 `json:"flaps"`
	// Beats are the minutes of the last hour, the oldest first.
	Beats []Beat `json:"beats"`
}

// WorkerRun is an execution that a worker has.
type WorkerRun struct {
	ID        int64  `json:"id"`
	ActionRef string `json:"action_ref"`
	Status    string `json:"status"`
	// Since is when it began to run, or was handed over.
	Since time.Time `json:"since"`
	// Queue names the queue whose slot it holds; empty where that is not recorded.
	Queue string `json:"queue,omitempty"`
}

// WorkerChange is a change of a worker's state.
type WorkerChange struct {
	At time.Time `json:"at"`
	// What says it in a few words.
	What string `json:"what"`
	// Flap is true when the worker was back soon after it was lost.
	Flap bool `json:"flap,omitempty"`

	// status is what it turned to and was what it was before; empty for other changes.
	status, was string
}

// Beat is what is known of a worker's heartbeat in a minute. The beats themselves are
// not kept; what is, is when the engine saw the worker silent, and the last of them.
type Beat string

// What is known of a minute.
const (
	// BeatAlive: it was there by the record. BeatSilent: it was not, or has sent
	// nothing since. BeatAbsent: it was not registered yet. BeatUnknown: nobody wrote
	// it down.
	BeatAlive   Beat = "alive"
	BeatSilent  Beat = "silent"
	BeatAbsent  Beat = "absent"
	BeatUnknown Beat = "unknown"
)

// Worker reads what is known of one worker beside its row in the list. One that does
// not exist has executions perhaps, and nothing else.
func (m *Monitor) Worker(ctx context.Context, id int64) (*WorkerDetail, error) {
	d := &WorkerDetail{}
	err := m.Read(ctx, "worker "+strconv.FormatInt(id, 10), &d.Reading,
		func(ctx context.Context, tx *store.Tx, s Shape) error {
			*d = WorkerDetail{Reading: d.Reading, ID: id} // the transaction may be repeated
			if err := d.readRuns(ctx, tx, s); err != nil {
				return err
			}
			facts, err := tx.ViewWorkerFacts(ctx, id)
			if err != nil {
				return fmt.Errorf("read worker %d: %w", id, err)
			}
			if len(facts) == 0 {
				return nil
			}
			d.Exists, d.Recorded = true, facts[0].Recorded
			if d.Recorded {
				if err := d.readChanges(ctx, tx); err != nil {
					return err
				}
			}
			d.Beats = beats(facts[0], d.Changes, d.At)
			return nil
		})
	return d, err
}

func (d *WorkerDetail) readRuns(ctx context.Context, tx *store.Tx, s Shape) error {
	var rows []store.ViewWorkerRunsRow
	var err error
	if s.Shared {
		rows, err = tx.ViewWorkerRuns(ctx, d.ID, WorkerRunRows+1)
	} else {
		var published []store.ViewPublishedWorkerRunsRow
		published, err = tx.ViewPublishedWorkerRuns(ctx, d.ID, WorkerRunRows+1)
		rows = each(published,
			func(r store.ViewPublishedWorkerRunsRow) store.ViewWorkerRunsRow { return store.ViewWorkerRunsRow(r) })
	}
	if err != nil {
		return fmt.Errorf("read what worker %d has: %w", d.ID, err)
	}
	for _, r := range rows {
		d.Running = append(d.Running, WorkerRun{
			ID: r.ID, ActionRef: r.ActionRef, Status: r.Status, Since: began(r.Updated, r.StartedAt, r.AdmittedAt),
			Queue: Queue{ActionRef: r.QueueRef, Group: r.GroupKey}.Name(),
		})
	}
	slices.SortStableFunc(d.Running, func(a, b WorkerRun) int { return a.Since.Compare(b.Since) })
	if len(d.Running) > WorkerRunRows {
		d.Running, d.MoreRunning = d.Running[:WorkerRunRows], true
	}
	return nil
}

// began is the first of the times that is known, or else the other.
func began(other time.Time, times ...*time.Time) time.Time {
	for _, t := range times {
		if t != nil {
			return *t
		}
	}
	return other
}

func (d *WorkerDetail) readChanges(ctx context.Context, tx *store.Tx) error {
	rows, err := tx.ViewWorkerChanges(ctx, store.ViewWorkerChangesParams{
		Worker: d.ID, Seconds: changeSpan.Seconds(), Scan: changeScan, Bound: WorkerChangeRows,
	})
	if err != nil {
		return fmt.Errorf("read what changed of worker %d: %w", d.ID, err)
	}
	for _, r := range rows {
		d.Changes = append(d.Changes, changeOf(r))
	}
	lost := time.Time{}
	for i := range slices.Backward(d.Changes) { // from the oldest on
		c := &d.Changes[i]
		switch {
		case c.status == "":
		case away(c.status):
			if c.was != "" { // one that has only just been registered was not lost
				lost = c.At
			}
		case !lost.IsZero():
			c.Flap = c.At.Sub(lost) <= flapSpan
			if c.Flap {
				d.Flaps++
			}
			lost = time.Time{}
		}
	}
	return nil
}

// UpSince is since when the worker has been there without a break, as the changes of the
// last day tell; zero where it has been for longer than they reach back.
func (d *WorkerDetail) UpSince() time.Time {
	for i := range d.Changes { // the newest first
		switch c := &d.Changes[i]; {
		case c.status == "" || away(c.status):
		case c.was == "" || away(c.was):
			return c.At
		}
	}
	return time.Time{}
}

// away reports whether a status means that the worker is not there.
func away(status string) bool { return status == "inactive" || status == "error" }

func changeOf(r store.ViewWorkerChangesRow) WorkerChange {
	c := WorkerChange{At: r.At}
	changed := func(field string) bool { return slices.Contains(r.ChangedFields, field) }
	switch {
	case r.Operation == "INSERT":
		c.What, c.status = "registered", r.Status
	case changed("status"):
		c.What, c.status, c.was = r.Status, r.Status, r.Was
	case changed("draining") && r.Draining:
		c.What = "draining"
	case changed("draining"):
		c.What = "no longer draining"
	case changed("cordoned") && r.Cordoned:
		c.What = "cordoned"
		if r.CordonReason != "" {
			c.What += ": " + r.CordonReason
		}
	case changed("cordoned"):
		c.What = "uncordoned"
	default:
		c.What = "moved to host " + r.Host
	}
	return c
}

// beats tells of each minute of the last hour whether the worker was there. A minute
// in which it was there for a part counts as one in which it was.
func beats(w store.ViewWorkerFactsRow, changes []WorkerChange, at time.Time) []Beat {
	const minutes = int(PastSpan / time.Minute)
	out := make([]Beat, minutes)
	for i := range out {
		to := at.Add(-time.Duration(minutes-1-i) * time.Minute)
		from := to.Add(-time.Minute)
		switch {
		case !w.Created.Before(to):
			out[i] = BeatAbsent
		case w.LastHeartbeat == nil || w.LastHeartbeat.Before(from):
			out[i] = BeatSilent
		case !w.Recorded:
			out[i] = BeatUnknown
		case awayAll(w.Status, changes, from, to):
			out[i] = BeatSilent
		default:
			out[i] = BeatAlive
		}
	}
	if !w.Recorded && w.LastHeartbeat != nil && at.Sub(*w.LastHeartbeat) < time.Minute {
		out[minutes-1] = BeatAlive // of this minute its own word is enough
	}
	return out
}

// awayAll reports whether the worker was away from one time to the other, as its
// changes tell it backwards from its present status.
func awayAll(status string, changes []WorkerChange, from, to time.Time) bool {
	for _, c := range changes {
		if c.status == "" {
			continue
		}
		if c.At.Before(to) {
			if !away(c.status) || !c.At.After(from) {
				return away(c.status)
			}
		}
		status = c.was
	}
	return away(status)
}
