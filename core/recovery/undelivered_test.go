package recovery_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/outbox"
	"github.com/attune-go/attune/core/recovery"
	"github.com/attune-go/attune/lab/testkit"
)

// A returned cancel request is dropped: a worker without a queue runs nothing. Messages of another exchange stay with
// the relay.
func TestReturnedCancelsAreDroppedAndOtherMessagesStay(t *testing.T) {
	t.Parallel()
	u := recovery.NewUndelivered(testkit.Logger(t), func() { t.Error("nothing was noted") })
	taken, err := u.Accept(testkit.Context(t), nil, []outbox.Message{
		{ID: "cancel", Exchange: message.ExchangeExecutions, RoutingKey: message.CancelKey(7)},
		{ID: "other", Exchange: message.ExchangeEvents, RoutingKey: message.CancelKey(7)},
	})
	require.NoError(t, err)
	require.Equal(t, map[string]bool{"cancel": true}, taken)
}
