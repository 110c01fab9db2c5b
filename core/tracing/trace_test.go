package tracing_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/tracing"
)

const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

func TestATraceparentIsReadAsSpecified(t *testing.T) {
	t.Parallel()
	c := tracing.Parse(parent)
	require.True(t, c.Valid())
	require.True(t, c.Sampled)
	require.Equal(t, parent, c.String())
	require.False(t, tracing.Parse(strings.TrimSuffix(parent, "1")+"0").Sampled)
	require.True(t, tracing.Parse("cc"+parent[2:]+"-what-the-future-will-be-like").Valid(), "a later version")
	require.True(t, tracing.Parse(parent[:53]+"09").Sampled, "a flag of later")
	for name, text := range map[string]string{
		"empty": "", "short": parent[:54], "long": parent + "-00", "version": "ff" + parent[2:],
		"capitals": strings.ToUpper(parent), "no trace": "00-" + strings.Repeat("0", 32) + parent[35:],
		"no span": parent[:36] + strings.Repeat("0", 16) + "-01", "letters": parent[:10] + "z" + parent[11:],
		"spaces": " " + parent, "parts": strings.ReplaceAll(parent, "-", ""),
	} {
		require.False(t, tracing.Parse(text).Valid(), name)
		require.Empty(t, tracing.Parse(text).String(), name)
	}
}

func FuzzTraceparent(f *testing.F) {
	f.Add(parent)
	f.Add("cc" + parent[2:] + "-x")
	f.Fuzz(func(t *testing.T, text string) {
		if c := tracing.Parse(text); c.Valid() {
			require.Equal(t, c, tracing.Parse(c.String()))
		}
	})
}

// The ids are a promise: replicas of two releases name one span alike.
func TestIdsStayTheSame(t *testing.T) {
	t.Parallel()
	seed := tracing.Seed{1, 2, 3}
	id := seed.Trace(tracing.Event, 42)
	require.Equal(t, "f63572791d547fb9f47f1b20e57b23c3", id.String())
	require.Equal(t, "286f13a3c7f115d6", id.Span(tracing.Execution, 7, tracing.Run).String())
	seen := map[tracing.SpanID]bool{}
	for _, kind := range []tracing.Kind{tracing.Event, tracing.Enforcement, tracing.Execution} {
		for row := range int64(50) {
			for _, phase := range []tracing.Phase{
				tracing.Whole, tracing.Delay, tracing.Queue, tracing.Dispatch, tracing.Run, tracing.Complete,
			} {
				span := id.Span(kind, row, phase)
				require.False(t, seen[span])
				seen[span] = true
			}
		}
	}
	require.NotEqual(t, id, tracing.Seed{1, 2, 4}.Trace(tracing.Event, 42), "another installation")
}

func TestTheRatioSamplesThatShare(t *testing.T) {
	t.Parallel()
	const n = 20_000
	for _, ratio := range []float64{0, 0.01, 0.5, 1} {
		sampled := 0
		for row := range int64(n) {
			id := tracing.Seed{}.Trace(tracing.Execution, row)
			if tracing.Sampled(id, ratio) {
				sampled++
				require.True(t, tracing.Sampled(id, min(1, ratio*2)), "a larger ratio has all of a smaller one")
			}
		}
		require.InDelta(t, ratio, float64(sampled)/n, 0.015)
	}
}

func TestAClientDecidesAboutItsTrace(t *testing.T) {
	t.Parallel()
	seed := tracing.Seed{9}
	own := seed.Root(tracing.Origin{Kind: tracing.Execution, Row: 1, Client: "nonsense"}, 1)
	require.Equal(t, seed.Trace(tracing.Execution, 1), own.Trace)
	require.Equal(t, tracing.SpanID{}, own.Span, "the first span has no parent")
	require.True(t, own.Sampled)
	asked := tracing.Origin{Kind: tracing.Execution, Row: 1, Client: parent}
	require.Equal(t, tracing.Parse(parent), seed.Root(asked, 0))
}

// The encoding of the protocol: ids in hexadecimal, 64-bit numbers as text, enumerations as numbers.
func TestSpansAreEncodedAsOTLP(t *testing.T) {
	t.Parallel()
	at := tracing.Parse(parent)
	begun := time.Unix(1_700_000_000, 123)
	body, err := tracing.Encode([]tracing.Attr{{Key: "service.name", Value: "s"}}, "v1", []tracing.Span{{
		Context: at, Parent: tracing.SpanID{1}, Name: "run", Role: tracing.Consumer,
		Start: begun, End: begun.Add(time.Second),
		Attrs: []tracing.Attr{{Key: "n", Value: int64(1) << 60}, {Key: "b", Value: false}, {Key: "t", Value: ""}},
		Links: []tracing.Context{at}, Failure: "broken",
	}, {Context: at, Name: "first", Role: tracing.Internal, Start: begun, End: begun}})
	require.NoError(t, err)
	require.True(t, json.Valid(body))
	require.JSONEq(t, `{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"s"}}]},
		"scopeSpans":[{"scope":{"name":"github.com/attune-go/attune","version":"v1"},"spans":[
		{"traceId":"4bf92f3577b34da6a3ce929d0e0e4736","spanId":"00f067aa0ba902b7","parentSpanId":"0100000000000000",
		 "flags":1,"name":"run","kind":5,"startTimeUnixNano":"1700000000000000123","endTimeUnixNano":"1700000001000000123",
		 "attributes":[{"key":"n","value":{"intValue":"1152921504606846976"}},{"key":"b","value":{"boolValue":false}},
		               {"key":"t","value":{"stringValue":""}}],
		 "links":[{"traceId":"4bf92f3577b34da6a3ce929d0e0e4736","spanId":"00f067aa0ba902b7","flags":1}],
		 "status":{"message":"broken","code":2}},
		{"traceId":"4bf92f3577b34da6a3ce929d0e0e4736","spanId":"00f067aa0ba902b7","flags":1,"name":"first","kind":1,
		 "startTimeUnixNano":"1700000000000000123","endTimeUnixNano":"1700000000000000123"}]}]}]}`, string(body))
}
