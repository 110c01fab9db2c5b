package exactjson_test

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/exactjson"
)

func TestValuesStayAsTheyAre(t *testing.T) {
	t.Parallel()
	var value any
	require.NoError(t, exactjson.Decode([]byte(`{"b":10000000000000001,"a":"<&>"} trailing`), &value))
	require.Equal(t, map[string]any{"a": "<&>", "b": json.Number("10000000000000001")}, value)
	raw, err := exactjson.Encode(value)
	require.NoError(t, err)
	require.Equal(t, []byte(`{"a":"<&>","b":10000000000000001}`), raw) //nolint:testifylint // the text is promised

	require.Error(t, exactjson.Decode(nil, &value))
	_, err = exactjson.Encode(math.Inf(1))
	require.Error(t, err)
}
