package advancement

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/workflow"
)

// A decision may ask any number of times as long as it asks for new facts. Asking for known facts again would never
// end.
func TestADecisionThatAsksForNothingNewIsFound(t *testing.T) {
	t.Parallel()
	f := newFacts()
	f.asked = map[string]int{}
	lacks := func(need workflow.NeedError) bool { return f.lacks(&need) }
	first, second := workflow.Child{Task: "a"}, workflow.Child{Task: "a", Index: 1}
	for range 2000 {
		require.True(t, lacks(workflow.NeedError{Results: []string{"a", "b"}}))
	}
	f.results["a"], f.children[first] = workflow.Result{}, nil
	require.True(t, lacks(workflow.NeedError{Results: []string{"a", "b"}}))
	require.False(t, lacks(workflow.NeedError{Results: []string{"a"}}))
	require.True(t, lacks(workflow.NeedError{Results: []string{"a"}, Children: []workflow.Child{first, second}}))
	require.False(t, lacks(workflow.NeedError{Children: []workflow.Child{first}}))
	require.True(t, lacks(workflow.NeedError{Items: map[string]workflow.Range{"a": {From: 3, Count: 2}}}))
	require.False(t, lacks(workflow.NeedError{Items: map[string]workflow.Range{"a": {From: 3, Count: 2}}}))
	require.True(t, lacks(workflow.NeedError{Items: map[string]workflow.Range{"a": {From: 3, Count: 4}}}))
	require.False(t, lacks(workflow.NeedError{Items: map[string]workflow.Range{"a": {From: 3, Count: 4}, "b": {}}}))
}
