package jsonvalue_test

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/jsonvalue"
)

func TestValuesStayAsTheyAre(t *testing.T) {
	t.Parallel()
	var value any
	require.NoError(t, jsonvalue.Decode([]byte(`{"b":10000000000000001,"a":"<&>"} trailing`), &value))
	require.Equal(t, map[string]any{"a": "<&>", "b": json.Number("10000000000000001")}, value)
	raw, err := jsonvalue.Encode(value)
	require.NoError(t, err)
	require.Equal(t, []byte(`{"a":"<&>","b":10000000000000001}`), raw) //nolint:testifylint // the text is promised

	require.Error(t, jsonvalue.Decode(nil, &value))
	_, err = jsonvalue.Encode(math.Inf(1))
	require.Error(t, err)
}
