package inquiry

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/attune-go/attune/core/store"
)

// Status is where a question stands.
type Status string

// The statuses of questions: those of the published rows, and two of questions that
// have no row.
const (
	Pending   Status = "pending"
	Responded Status = "responded"
	Expired   Status = "timeout"
	Cancelled Status = "cancelled"
	Unopened  Status = "unopened" // asked in a result, and no round has taken it yet
	Refused   Status = "refused"  // malformed; see the fault
)

// Open reports whether an answer is still waited for.
func (s Status) Open() bool { return s == Pending || s == Unopened }

// Standing is how the question of an execution stands.
type Standing struct {
	Inquiry  int64 // 0 if there is no row
	Status   Status
	Response json.RawMessage // of one that is responded
	Fault    string          // of one that is refused
}

// Standings reads how the questions of executions stand. One that asks nothing is
// not in the answer. A task whose execution has completed is over when its question,
// if there is one, is no longer open.
func Standings(ctx context.Context, q *store.Queries, executions []int64) (map[int64]Standing, error) {
	if len(executions) == 0 {
		return map[int64]Standing{}, nil
	}
	rows, err := q.ReadInquiryStandings(ctx, executions)
	if err != nil {
		return nil, fmt.Errorf("read how the questions of %d executions stand: %w", len(executions), err)
	}
	standings := make(map[int64]Standing, len(rows))
	for _, row := range rows {
		s := Standing{Inquiry: row.Inquiry, Status: Status(row.Status), Fault: row.Fault}
		if s.Status == Responded {
			s.Response = row.Response
		}
		standings[row.Execution] = s
	}
	return standings, nil
}
