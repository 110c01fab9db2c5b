package app

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/keymap"
)

// unwell gives the second replica a problem.
func unwell() *fakeSource {
	s := sample()
	r := &s.overview.Replicas.List[1]
	r.Age, r.Problems, r.Late, s.overview.Replicas.Well = 41*time.Second, []string{"silent for 41s"}, true, 1
	return s
}

// The overview names the problem of a replica among its findings, and in the list with the unwell one first.
func TestTheOverviewSaysWhatIsWrongWithAReplica(t *testing.T) {
	narrow := started(t, unwell(), 80, 24).frame()
	require.Regexp(t, `^ ENGINE  1/2  ■ c77b9d20 silent for 41s\s*$`, narrow[4])
	require.Contains(t, narrow[5], "QUEUES", "nothing is pushed down")

	wide := strings.Join(started(t, unwell(), 140, 40).frame(), "\n")
	require.Less(t, strings.Index(wide, "✗ c77b9d20 engine-b"), strings.Index(wide, "● 5e0f3c1a engine-a"))
	require.Regexp(t, `✗ c77b9d20 engine-b +-- `, wide, "whether it is connected is not known")
	require.Contains(t, wide, "NEEDS ATTENTION")

	none := sample()
	none.overview.Replicas = &monitor.Replicas{}
	require.Contains(t, started(t, none, 80, 24).frame()[4], "■ no replica runs")
	foreign := sample()
	foreign.overview.Replicas = nil
	require.Empty(t, strings.TrimSpace(started(t, foreign, 80, 24).frame()[4]), "the schema has none")
}

// TestReplicasTakeOnlyRoomThatIsLeft: a full table of workers keeps every line.
func TestReplicasTakeOnlyRoomThatIsLeft(t *testing.T) {
	t.Parallel()
	for _, rows := range []int{7, 8, 9, 30} {
		b := started(t, huge(rows), 80, 24)
		b.run(b.goTo(keymap.InWorkers))
		frame := strings.Join(b.frame(), "\n")
		// and a queue without worker
		require.Equal(t, min(rows, 10), strings.Count(frame, "● worker-")+strings.Count(frame,
			"◐ worker-")+strings.Count(frame, "✗ worker-"), frame)
	}
}

// TestASuspectedWorkerIsNotShownAsWell: it beats, and the engine gives it nothing.
func TestASuspectedWorkerIsNotShownAsWell(t *testing.T) {
	s := sample()
	w := &s.workers.List[3]
	w.SuspectSince, w.SuspectReason = ago(2*time.Minute), "its queue is gone"
	s.workers.List = s.workers.List[3:]
	s.overview.Workers.Suspect, s.broker.Queues = 1, nil
	b := started(t, s, 140, 40)
	frame := strings.Join(b.frame(), "\n")
	require.Contains(t, frame, "  1 suspect · 1 cordoned")
	require.Contains(t, frame, w.Name+" is suspect")
	b.run(b.goTo(keymap.InWorkers))
	frame = strings.Join(b.frame(), "\n")
	require.Contains(t, frame, "✗ "+w.Name)
	require.Contains(t, frame, "suspect for 2m00s, no new work: its queue is gone")
}

func TestTheSnapshotHasTheReplicas(t *testing.T) {
	b := started(t, unwell(), 80, 24)
	raw, err := (&Snapshot{model: b.Model}).JSON()
	require.NoError(t, err)
	var document struct {
		Data struct {
			Overview struct {
				Replicas struct {
					Well int `json:"well"`
					List []struct {
						Problems []string `json:"problems"`
					} `json:"list"`
				} `json:"replicas"`
			} `json:"overview"`
		} `json:"data"`
	}
	require.NoError(t, json.Unmarshal(raw, &document))
	require.Equal(t, 1, document.Data.Overview.Replicas.Well)
	require.Equal(t, []string{"silent for 41s"}, document.Data.Overview.Replicas.List[1].Problems)
}
