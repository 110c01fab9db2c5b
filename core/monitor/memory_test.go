package monitor

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestProblemsKeepTheirBeginning(t *testing.T) {
	t.Parallel()
	m := &Monitor{}
	look := func(minute int, status CheckStatus) *time.Time {
		list := []Check{{Name: "fine", Status: CheckOK}, {Name: "odd", Status: status}}
		m.holdChecks(list, time.Unix(0, 0).Add(time.Duration(minute)*time.Minute))
		require.Nil(t, list[0].Seen)
		return list[1].Seen
	}
	require.Equal(t, time.Unix(0, 0), *look(0, CheckProblem))
	require.Equal(t, time.Unix(0, 0), *look(5, CheckWarning), "it goes on")
	m.memory.Hold("alert\x1f", []string{"odd"}, time.Unix(0, 0).Add(9*time.Minute))
	require.Equal(t, time.Unix(0, 0), *look(10, CheckProblem), "what else is remembered is of no account")
	require.Nil(t, look(15, CheckOK))
	require.Equal(t, time.Unix(0, 0).Add(20*time.Minute), *look(20, CheckProblem), "it begins anew")
	require.Equal(t, time.Unix(0, 0).Add(9*time.Minute),
		m.memory.Hold("alert\x1f", []string{"odd"}, time.Unix(9e9, 0))[0])
}
