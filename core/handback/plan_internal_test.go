package handback

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/store"
)

// The nearest policy counts, then the newest. Workflows have none.
func TestTheOtherExecutorReadsTheNearestAndNewestPolicy(t *testing.T) {
	t.Parallel()
	mine, pack, foreign := int64(1), int64(2), int64(9)
	at := func(hour int) time.Time { return time.Date(2026, 1, 1, hour, 0, 0, 0, time.UTC) }
	policies := []store.ReadPoliciesRow{
		{ID: 1, Kind: "concurrency", Action: &mine, Threshold: 1, Created: at(1)},
		{ID: 2, Kind: "concurrency", Action: &mine, Threshold: 2, Created: at(2)},
		{ID: 3, Kind: "concurrency", Pack: &pack, Threshold: 3, Created: at(3)},
		{ID: 4, Kind: "concurrency", Threshold: 4, Created: at(4)},
		{ID: 5, Kind: "concurrency", Action: &foreign, Threshold: 5, Created: at(5)},
		{ID: 6, Kind: "rate", Action: &mine, Threshold: 6, Created: at(6)},
		{ID: 7, Kind: "concurrency", Pack: &foreign, Threshold: 7, Created: at(7)},
	}
	action := store.ReadActionRulesRow{ID: mine, Pack: pack}
	require.EqualValues(t, 2, ruleOf(action, policies).most)
	require.EqualValues(t, 3, ruleOf(action, policies[2:]).most)
	require.EqualValues(t, 4, ruleOf(action, policies[3:]).most)
	require.False(t, ruleOf(action, policies[4:]).limited)
	action.WorkflowDef = &foreign
	require.False(t, ruleOf(action, policies).limited)
}

// Messages have no parameters beyond the bound; the row has them.
func TestLargeParametersAreNotInMessages(t *testing.T) {
	t.Parallel()
	most := make([]byte, maxConfig)
	require.Len(t, small(most), maxConfig)
	require.Equal(t, json.RawMessage(nil), small(append(most, 0)))
}
