package config_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/config"
)

// The variable of OpenTelemetry turns traces on, unless the configuration says otherwise.
func TestTheCollectorIsThatOfTheConfigurationOrTheHost(t *testing.T) {
	t.Parallel()
	cfg, err := config.Load("", nil)
	require.NoError(t, err)
	require.Empty(t, cfg.Telemetry.OTLPEndpoint, "traces are off by default")
	host := []string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://host:4318"}
	cfg, err = config.Load("", host)
	require.NoError(t, err)
	require.Equal(t, "http://host:4318", cfg.Telemetry.OTLPEndpoint)
	require.Equal(t, "environment OTEL_EXPORTER_OTLP_ENDPOINT", cfg.Source("telemetry.otlp_endpoint"))
	for _, endpoint := range []string{"https://own:4318/base", ""} {
		cfg, err = config.Load(write(t, "telemetry: {otlp_endpoint: '"+endpoint+"'}\n"), host)
		require.NoError(t, err)
		require.Equal(t, endpoint, cfg.Telemetry.OTLPEndpoint)
	}
	for _, wrong := range []string{"host:4318", "grpc://host:4317", "http://"} {
		_, err = config.Load(write(t, "telemetry: {otlp_endpoint: '"+wrong+"'}\n"), nil)
		require.ErrorContains(t, err, "telemetry.otlp_endpoint: must be a URL like http://host:4318")
	}
}
