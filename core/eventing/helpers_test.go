package eventing_test

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/message"
)

// registryOf is a registry of its own, since a bundle may have several parts that
// measure.
func (b *bundle) registryOf() *prometheus.Registry { return prometheus.NewRegistry() }

func stringsReader(text string) io.Reader { return strings.NewReader(text) }

func withCompact(t *testing.T, payload message.EnforcementCreated) message.EnforcementCreated {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, json.Compact(&out, payload.Payload))
	payload.Payload = out.Bytes()
	return payload
}
