package monitor

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/attune-go/attune/core/store"
)

// The bounds of a read of one worker.
const (
	// WorkerRunRows bounds the executions, WorkerChangeRows the changes, searched in so many rows of
	// the last day.
	WorkerRunRows    = 50
	WorkerChangeRows = 40
	changeScan       = 2_000
	changeSpan       = 24 * time.Hour
	// flapSpan is the longest absence that counts as a flap.
	flapSpan = 10 * time.Minute
)

// WorkerDetail is what the list does not show of one worker.
type WorkerDetail struct {
	Reading
	ID int64 `json:"id"`
	// Exists is false when no row has the id.
	Exists bool `json:"exists"`
	// Running are its executions, the oldest first.
	Running     []WorkerRun `json:"running"`
	MoreRunning bool        `json:"more_running,omitempty"`
	// Changes are those of the last day, the newest first. Recorded is false where the schema
	// records none.
	Changes  []WorkerChange `json:"changes"`
	Recorded bool           `json:"recorded"`
	// Flaps counts the short absences of the last day.
	Flaps int64 `json:"flaps"`
	// Beats are the last sixty minutes, the oldest first.
	Beats []Beat `json:"beats"`
}

// WorkerRun is an execution of a worker.
type WorkerRun struct {
	ID        int64  `json:"id"`
	ActionRef string `json:"action_ref"`
	Status    string `json:"status"`
	// Since is its start, or its dispatch.
	Since time.Time `json:"since"`
	// Queue names the queue whose slot it holds, if recorded.
	Queue string `json:"queue,omitempty"`
}

// WorkerChange is a change of a worker.
type WorkerChange struct {
	At time.Time `json:"at"`
	// What says it in a few words.
	What string `json:"what"`
	// Flap is true when it ended a short absence.
	Flap bool `json:"flap,omitempty"`

	// status is the new status and was the old one; empty for other changes.
	status, was string
}

// Beat says whether a worker was present in a minute. Heartbeats are not stored: it follows from the
// status changes and the last heartbeat.
type Beat string

// The values of Beat.
const (
	// BeatAlive means active, with heartbeats.
	BeatAlive Beat = "alive"
	// BeatSilent means inactive, or without a heartbeat since.
	BeatSilent Beat = "silent"
	// BeatAbsent means not registered yet.
	BeatAbsent Beat = "absent"
	// BeatUnknown means not recorded.
	BeatUnknown Beat = "unknown"
)

// Worker reads what the list does not show of one worker. A missing worker may still have
// executions.
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
	var err error
	query := s.query(store.ViewWorkerRuns, store.ViewPublishedWorkerRuns)
	d.Running, err = store.Rows[WorkerRun](ctx, tx, query, d.ID, WorkerRunRows+1)
	if err != nil {
		return fmt.Errorf("read what worker %d has: %w", d.ID, err)
	}
	if len(d.Running) > WorkerRunRows {
		d.Running, d.MoreRunning = d.Running[:WorkerRunRows], true
	}
	return nil
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
	for i := range slices.Backward(d.Changes) { // the oldest first
		c := &d.Changes[i]
		switch {
		case c.status == "":
		case away(c.status):
			if c.was != "" { // a worker that has just registered was not absent
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

// UpSince is the end of the last absence in the changes; zero if they show none.
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

// away reports whether a status means absence.
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

// beats says of each minute of the last hour whether the worker was present for a part of it.
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
		out[minutes-1] = BeatAlive // its own heartbeat is enough for the present minute
	}
	return out
}

// awayAll reports whether the worker was absent all the time, following its changes back from its
// present status.
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
