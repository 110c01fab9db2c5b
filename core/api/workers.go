package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/triage"
)

// workerList is a page of workers by id, with the health of each.
type workerList struct {
	monitor.Reading

	StaleAfter     time.Duration        `json:"stale_after_ns"`
	HeartbeatEvery time.Duration        `json:"heartbeat_every_ns"`
	Totals         monitor.WorkerTotals `json:"totals"`
	List           []workerItem         `json:"list"`
	// Next is the cursor of the next page; 0 at the end.
	Next int64 `json:"next,omitempty"`
	// More is true if there are more workers than this list can hold.
	More bool `json:"more"`
}

// workerItem is a worker with its health.
type workerItem struct {
	monitor.Worker

	Health       monitor.WorkerHealth `json:"health"`
	HeartbeatAge *float64             `json:"heartbeat_age_seconds"`
}

// workerHealths are the words that the filter of workers takes.
var workerHealths = []monitor.WorkerHealth{
	monitor.WorkerStale, monitor.WorkerDeaf, monitor.WorkerSuspect, monitor.WorkerInactive, monitor.WorkerDraining,
	monitor.WorkerCordoned, monitor.WorkerUnhealthy, monitor.WorkerBusy, monitor.WorkerDegraded, monitor.WorkerActive,
}

// workers answers a page of workers by id.
func (s *Server) workers(r *http.Request) (any, error) {
	q := queryOf(r)
	healths, name := q.words("health"), q.Get("name")
	limit, cursor := q.page()
	for _, word := range healths {
		if !slices.Contains(workerHealths, monitor.WorkerHealth(word)) {
			q.fail(fmt.Sprintf("%q is not the health of a worker: use %s", word,
				strings.Trim(fmt.Sprint(workerHealths), "[]")))
		}
	}
	if q.err != nil {
		return nil, q.err
	}
	all, err := s.deps.View.Workers(r.Context())
	if err != nil {
		return nil, err
	}
	page := &workerList{
		Reading: all.Reading, StaleAfter: all.StaleAfter, HeartbeatEvery: all.HeartbeatEvery, Totals: all.Totals,
		List: []workerItem{}, More: all.More,
	}
	slices.SortFunc(all.List, func(a, b monitor.Worker) int { return cmp.Compare(a.ID, b.ID) })
	for _, worker := range all.List {
		health := worker.Health(all.At, all.StaleAfter)
		if worker.ID <= cursor || !strings.Contains(worker.Name, name) ||
			len(healths) > 0 && !slices.Contains(healths, string(health)) {
			continue
		}
		if len(page.List) == cmp.Or(limit, maxPage) {
			page.Next = page.List[len(page.List)-1].ID
			break
		}
		one := workerItem{Worker: worker, Health: health}
		if worker.Heartbeat != nil {
			one.HeartbeatAge = new(all.At.Sub(*worker.Heartbeat).Seconds())
		}
		page.List = append(page.List, one)
	}
	return page, nil
}

// worker answers one worker with the executions that it has.
func (s *Server) worker(ctx context.Context, id int64) (*triage.WorkerNow, error) {
	now, err := s.deps.Acts.WorkerNow(ctx, triage.WorkerRequest{Worker: strconv.FormatInt(id, 10), ByID: true})
	if errors.Is(err, triage.ErrNoWorker) {
		err = &statusError{http.StatusNotFound, fmt.Sprintf("there is no worker %d", id)}
	}
	return now, err
}
