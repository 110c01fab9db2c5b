package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/lab/bench/datapath"
)

// Wrong flags are refused before any server starts.
func TestWrongFlagsAreRefused(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"no such scenario: cold; the scenarios are growth, no-limit, keys-10, ": {"--data-path", "--scenario", "cold"},
		"--database needs --short":        {"--database", "postgres://127.0.0.1/attune"},
		"one of --data-path":              {"--data-path", "--short"},
		"-o is table or json":             {"-o", "yaml"},
		`what is "hot"`:                   {"--data-path", "hot"},
		"one of --data-path, --dashboard": {"--dashboard", "--short"},
	} {
		_, err := parse(args)
		require.ErrorIs(t, err, errUsage)
		require.ErrorContains(t, err, want)
	}
}

func TestScenariosCanBeNamedAgain(t *testing.T) {
	t.Parallel()
	o, err := parse([]string{"--data-path", "--scenario", "hot", "--rounds", "5", "--scenario", "d1-hot", "-o", "json"})
	require.NoError(t, err)
	require.Equal(t, options{
		dataPath: true, format: "json", dir: ".attune/bench",
		path: datapath.Options{Rounds: 5, Scenarios: []string{"hot", "d1-hot"}},
	}, o)
}
