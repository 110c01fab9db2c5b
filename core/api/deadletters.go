package api

import (
	"cmp"
	"net/http"

	"github.com/attune-go/attune/core/monitor"
)

// deadLetterFilters are the filters of dead letters, deadLetterParameters those of their list.
var (
	deadLetterFilters    = []string{"reason", "action", "worker", "type", "execution", "since", "older_than"}
	deadLetterParameters = append([]string{"open", "decided", "decision", "limit", "cursor"}, deadLetterFilters...)
)

// deadLetters answers a page of dead letters.
func (s *Server) deadLetters(r *http.Request) (any, error) {
	filter, cursor, err := readDeadLetterFilter(r)
	if err != nil {
		return nil, err
	}
	return s.deps.View.LedgerList(r.Context(), filter, cursor)
}

func readDeadLetterFilter(r *http.Request) (filter monitor.DeadLetterFilter, cursor int64, err error) {
	q := queryOf(r)
	filter = monitor.DeadLetterFilter{
		Open: q.flag("open"), Decided: q.flag("decided"), Decisions: q.words("decision"), Reason: q.Get("reason"),
		Action: q.Get("action"), Worker: q.Get("worker"), Type: q.Get("type"),
		MaxAge: q.age("since"), MinAge: q.age("older_than"), Execution: q.number("execution", maxID),
	}
	filter.Limit, cursor = q.page()
	return filter, cursor, cmp.Or(q.err, filter.Check())
}

// deadLetterStats answers the statistics of dead letters.
func (s *Server) deadLetterStats(r *http.Request) (any, error) {
	q := queryOf(r)
	window := q.age("since")
	if q.err != nil {
		return nil, q.err
	}
	return s.deps.View.LedgerStats(r.Context(), window)
}
