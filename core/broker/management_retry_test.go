package broker_test

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/broker"
)

// A plugin that stumbles is asked again; one that stays down, or that is asked
// to change something, is not pressed.
func TestManagementAsksAgainAfterAStumble(t *testing.T) {
	t.Parallel()
	var asked, stumbles atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) <= stumbles.Load() {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		_, _ = w.Write([]byte(`[]`))
	}))
	t.Cleanup(server.Close)
	management, err := broker.NewManagement(server.URL, "/", time.Minute)
	require.NoError(t, err)
	t.Cleanup(management.Close)

	stumbles.Store(2)
	_, err = management.Queues(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 3, asked.Load())

	asked.Store(0)
	stumbles.Store(100)
	_, err = management.Queues(t.Context())
	var refused *broker.ManagementError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, http.StatusInternalServerError, refused.StatusCode)
	require.EqualValues(t, 3, asked.Load())
}
