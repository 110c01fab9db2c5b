package monitor

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/attune-go/attune/core/store"
)

// reasonScan is how many of the newest that failed, timed out and were abandoned are
// asked why, and reasonRows how many reasons are told apart.
const (
	ReasonScan = 200
	reasonRows = 8
)

// FailReason is why some of the executions that ended badly did.
type FailReason struct {
	// Reason is what they say alike, with every number as a hash; or how they ended,
	// where they say nothing.
	Reason string `json:"reason"`
	Count  int64  `json:"count"`
}

func readFailReasons(ctx context.Context, tx *store.Tx, floor int64) ([]FailReason, error) {
	rows, err := tx.MonitorFailReasons(ctx, ReasonScan, floor)
	if err != nil {
		return nil, fmt.Errorf("ask why executions failed: %w", err)
	}
	return failReasons(rows), nil
}

// failReasons puts together what differs by numbers only, the most frequent first; the
// rest is one.
func failReasons(rows []store.MonitorFailReasonsRow) []FailReason {
	counts := map[string]int64{}
	for _, r := range rows {
		counts[cmp.Or(Alike(r.Reason), Alike(r.Status))] += r.N
	}
	list := make([]FailReason, 0, len(counts))
	for reason, n := range counts {
		list = append(list, FailReason{reason, n})
	}
	slices.SortFunc(list, func(a, b FailReason) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Reason, b.Reason))
	})
	if len(list) <= reasonRows {
		return list
	}
	other := FailReason{Reason: "other"}
	for _, r := range list[reasonRows-1:] {
		other.Count += r.Count
	}
	return append(list[:reasonRows-1], other)
}

var numbers = regexp.MustCompile(`[0-9]+`)

// Alike is what reasons have in common that name an id, a time or an exit code: their
// first line, without numbers.
func Alike(reason string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(reason), "\n")
	return numbers.ReplaceAllString(line, "#")
}
