package monitor

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestProblemsKeepTheirBeginning(t *testing.T) {
	t.Parallel()
	m := &Monitor{}
	check := func(minute int, status CheckStatus) *time.Time {
		list := []Check{{Name: "fine", Status: CheckOK}, {Name: "odd", Status: status}}
		m.holdChecks(list, time.Unix(0, 0).Add(time.Duration(minute)*time.Minute))
		require.Nil(t, list[0].Seen)
		return list[1].Seen
	}
	require.Equal(t, time.Unix(0, 0), *check(0, CheckProblem))
	require.Equal(t, time.Unix(0, 0), *check(5, CheckWarning), "it continues")
	m.memory.Hold("alert\x1f", []string{"odd"}, time.Unix(0, 0).Add(9*time.Minute))
	require.Equal(t, time.Unix(0, 0), *check(10, CheckProblem), "other entries of the memory do not matter")
	require.Nil(t, check(15, CheckOK))
	require.Equal(t, time.Unix(0, 0).Add(20*time.Minute), *check(20, CheckProblem), "it begins again")
	require.Equal(t, time.Unix(0, 0).Add(9*time.Minute),
		m.memory.Hold("alert\x1f", []string{"odd"}, time.Unix(9e9, 0))[0])
}
