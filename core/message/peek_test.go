package message_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/message"
)

func TestAMalformedDispatchNamesItsExecution(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat(`{"execution_id":[`, 3000) + strings.Repeat("]}", 3000)
	head := `{"message_type":"ExecutionRequested","headers":{"execution_id":9},"payload":{"execution_id":7,"worker_id":3,"action_ref":"a",`
	for name, c := range map[string]struct {
		body    string
		attempt int32
		found   bool
	}{
		"deep":       {head + `"config":` + deep + `,"attempt":2}}`, 2, true},
		"cut":        {head + `"config":{"a":`, 0, true},
		"no payload": {`{"execution_id":7,"worker_id":3}`, 0, false},
		"not json":   {`not json`, 0, false},
		"a list":     {`[[[7]]]`, 0, false},
		"closed":     {`}}`, 0, false},
		"text":       {`{"payload":{"execution_id":"7","worker_id":3}}`, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, found := message.PeekDispatch([]byte(c.body))
			require.Equal(t, c.found, found)
			if found {
				require.Equal(t, message.Dispatch{ExecutionID: 7, WorkerID: 3, Attempt: c.attempt}, d)
			}
		})
	}
}
