package monitor

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/store"
)

func TestReasonsOfFailuresAreTheSameButForNumbers(t *testing.T) {
	t.Parallel()
	require.Equal(t, []FailReason{{"exit code #", 7}, {"timeout", 4}, {"Worker queue TTL expired", 2}},
		failReasons([]store.MonitorFailReasonsRow{
			{Status: "failed", Reason: "exit code 1\nTraceback", N: 4},
			{Status: "failed", Reason: "exit code 127", N: 3},
			{Status: "failed", Reason: "Worker queue TTL expired", N: 2},
			{Status: "timeout", N: 4},
		}))
	var many []store.MonitorFailReasonsRow
	for i := range 30 {
		many = append(many, store.MonitorFailReasonsRow{Reason: fmt.Sprintf("reason %c", 'a'+i), N: int64(100 - i)})
	}
	list := failReasons(many)
	require.Len(t, list, reasonRows)
	total := int64(0)
	for _, r := range list {
		total += r.Count
	}
	require.Equal(t, int64(30*100-29*30/2), total, "the others are counted")
	require.Equal(t, "other", list[reasonRows-1].Reason)
	require.Empty(t, failReasons(nil))
}
