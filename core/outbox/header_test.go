package outbox

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/lab/testkit"
)

// A trace that names a header of ours is seen on the message; every other stays
// in the table.
func TestATraceMayBeAHeader(t *testing.T) {
	st := testkit.Store(t)
	url, name, read := queue(t)
	wire := dial(t, url)
	relay := startRelay(t, st, wire.Publisher())
	commit(t, st, relay,
		Message{
			ID: "1", RoutingKey: name, Type: message.TypeExecutionRequested, Body: []byte(`{}`),
			Trace: HeaderTrace("x-attune-requeued-from", "7"),
		},
		Message{
			ID: "2", RoutingKey: name, Type: message.TypeExecutionRequested, Body: []byte(`{}`),
			Trace: "00-abc-def=01",
		})
	got := read(2)
	require.Equal(t, "7", got[0].Headers["x-attune-requeued-from"])
	require.Empty(t, got[1].Headers)
}
