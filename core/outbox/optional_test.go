package outbox

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/lab/testkit"
)

// inquiry.created needs no consumer: where no queue takes it, its row is deleted and not published
// again.
func TestAnOptionalMessageIsDroppedWhenItIsReturned(t *testing.T) {
	st := testkit.Store(t)
	url, name, read := queue(t)
	asked := make(chan []Message, 10)
	relay := startRelay(t, st, dial(t, url).Publisher(), func(c *Config) {
		c.Undeliverable = func(_ context.Context, _ *store.Tx, returned []Message) (map[string]bool, error) {
			asked <- returned
			return nil, nil
		}
	})
	commit(t, st, relay,
		Message{
			ID: "asked", Exchange: "amq.topic", RoutingKey: message.KeyInquiryCreated,
			Type: message.TypeInquiryCreated, Body: []byte(`1`),
		},
		Message{ID: "heard", RoutingKey: name, Type: "T", Body: []byte(`2`)})
	require.Equal(t, "heard", read(1)[0].MessageId)
	testkit.Eventually(t, empty(t, st), 10*time.Second, "nothing is left to send")
	require.Empty(t, asked, "no handler is called for it")
}
