package handback

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/policy"
)

func TestGroupKey(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ params, key string }{
		{
			`{"environment": "prod", "target": {"region": "us-east-1"}}`,
			`{"environment":"prod","target.region":"us-east-1"}`,
		},
		{
			`{"environment": {"b": [1.50, "<"], "a": null}}`,
			`{"environment":{"a":null,"b":[1.5,"<"]},"target.region":null}`,
		},
		{`[]`, `{"environment":null,"target.region":null}`},
	} {
		require.Equal(t, c.key,
			groupKey([]string{"target.region", "environment"}, policy.WithDefaults([]byte(c.params), nil), ""))
	}
	require.Empty(t, groupKey(nil, nil, "kept"))
	require.Equal(t, "kept", groupKey([]string{"a"}, map[string]any{"a": strings.Repeat("x", 3000)}, "kept"))
}

func TestNumbersAreWrittenAsTheOtherExecutorWritesThem(t *testing.T) {
	t.Parallel()
	for text, written := range map[string]string{
		"1": "1", "-7": "-7", "18446744073709551615": "18446744073709551615", "1.0": "1.0", "1.50": "1.5",
		"0.00001":  "0.00001",
		"0.000001": "1e-6", "100000000000000000000": "1e20", "123456789012345.5": "123456789012345.5",
		"1.25e30": "1.25e30",
	} {
		require.Equal(t, json.Number(written), number(text), text)
	}
}
