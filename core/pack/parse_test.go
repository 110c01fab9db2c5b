package pack_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/attune-go/attune/core/pack"
	"github.com/attune-go/attune/core/policy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// parse reads a file in which nothing is wrong.
func parse(t *testing.T, content string) []pack.Policy {
	t.Helper()
	policies, mistakes := pack.Parse("limits.yaml", []byte(content))
	require.Empty(t, texts(mistakes))
	return policies
}

func texts(mistakes []pack.Mistake) []string {
	list := make([]string, len(mistakes))
	for i, mistake := range mistakes {
		list[i] = mistake.String()
	}
	return list
}

func TestParseReadsEveryKey(t *testing.T) {
	t.Parallel()
	policies := parse(t, `
ref: deploy.limit
name: Rollouts
description: |
  One at a time
  in each region.
tags: [prod, 2026]
pack: deploy
action: deploy.rollout
kind: concurrency
threshold: 5
method: cancel
parameters: [environment, target.region]
max_queue_length: 100
queue_timeout: 1m30s
retry_place: front
adaptive: {min: 2, latency: 1500ms}
`)
	require.Len(t, policies, 1)
	p := policies[0]
	require.Equal(t, pack.Place{File: "limits.yaml", Line: 2, Column: 1}, p.Place)
	require.Equal(t, pack.Place{File: "limits.yaml", Line: 11, Column: 1}, p.At("threshold"))
	require.Equal(t, p.Place, p.At("burst"), "the place of an absent key is that of the policy")
	require.Equal(t, "deploy.limit", p.Ref)
	require.Equal(t, "Rollouts", p.Name)
	require.Equal(t, "One at a time\nin each region.\n", p.Description)
	require.Equal(t, []string{"prod", "2026"}, p.Tags)
	require.Equal(t, "deploy", p.Pack)
	require.Equal(t, "deploy.rollout", p.Action)
	require.Equal(t, policy.KindConcurrency, p.Kind)
	require.Equal(t, int32(5), p.Threshold)
	require.Equal(t, policy.MethodCancel, p.Method)
	require.Equal(t, []string{"environment", "target.region"}, p.Parameters)
	require.Equal(t, int32(100), p.MaxQueueLength)
	require.Equal(t, int32(90), p.QueueTimeoutSeconds)
	require.Equal(t, policy.PlaceFront, p.RetryPlace)
	require.Equal(t, int32(2), p.AdaptiveMin)
	require.Equal(t, int32(1500), p.AdaptiveLatencyMS)
}

func TestParseDefaults(t *testing.T) {
	t.Parallel()
	p := parse(t, "ref: a.b\nthreshold: 1\nburst: null\n")[0]
	require.Equal(t, "a.b", p.Name)
	require.Equal(t, policy.KindConcurrency, p.Kind)
	require.Equal(t, policy.MethodEnqueue, p.Method)
	require.Equal(t, []string{}, p.Tags)
	require.Equal(t, []string{}, p.Parameters)
	require.Zero(t, p.Burst)
	require.Zero(t, p.AdaptiveMin)

	p = parse(t, "ref: a.b\nthreshold: 1\naction: a.x\nadaptive: {}\n")[0]
	require.Equal(t, int32(1), p.AdaptiveMin, "an adaptive limit is never below one")
	require.Zero(t, p.AdaptiveLatencyMS)
}

func TestParseAcceptsTheNamesOfColumns(t *testing.T) {
	t.Parallel()
	p := parse(t, `{"ref": "a.rate", "kind": "rate", "threshold": 2, "window_seconds": 60, "burst": 3, "pack_ref": "a",
		"queue_timeout_seconds": 120}`)[0]
	require.Equal(t, int32(60), p.WindowSeconds)
	require.Equal(t, int32(3), p.Burst)
	require.Equal(t, "a", p.Pack)
	require.Equal(t, int32(120), p.QueueTimeoutSeconds)

	p = parse(t, "ref: a.b\naction_ref: a.x\nthreshold: 2\nadaptive_min: 1\nadaptive_latency_ms: 250\n")[0]
	require.Equal(t, "a.x", p.Action)
	require.Equal(t, int32(1), p.AdaptiveMin)
	require.Equal(t, int32(250), p.AdaptiveLatencyMS)
}

func TestParseManyPolicies(t *testing.T) {
	t.Parallel()
	policies := parse(t, `# policies of everything
---
ref: a.one
threshold: 1
---
---
policies:
  - &base
    ref: a.two
    threshold: 2
    method: cancel
  - <<: *base
    ref: a.three
---
policies:
`)
	require.Len(t, policies, 3)
	require.Equal(t, "a.one", policies[0].Ref)
	require.Equal(t, 12, policies[2].Place.Line)
	require.Equal(t, "a.three", policies[2].Ref)
	require.Equal(t, int32(2), policies[2].Threshold)
	require.Equal(t, policy.MethodCancel, policies[2].Method)
}

// Mappings that merge one another many times are read once each.
func TestMergedMappingsAreReadOnce(t *testing.T) {
	t.Parallel()
	content := "policies:\n- &m0 {threshold: 7}\n"
	for i := range 60 {
		content += fmt.Sprintf("- &m%d {<<: [*m%d, *m%d, *m%d]}\n", i+1, i, i, i)
	}
	policies, mistakes := pack.Parse("f", []byte(content))
	require.Len(t, mistakes, 61, "none has a ref")
	require.Equal(t, int32(7), policies[60].Threshold)
}

func TestParseDurations(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int32{
		"60s": 60, "1h": 3600, "24h": 86400, "90": 90, "90.0": 90, "1e3": 1000, `"2m"`: 120, "1m30s": 90, "0x10": 16,
	} {
		p := parse(t, "ref: a.b\nkind: quota\nthreshold: 1\nwindow: "+text+"\n")[0]
		require.Equal(t, want, p.WindowSeconds, text)
	}
	for text, want := range map[string]int32{"2": 2000, "0.25": 250, "0.3": 300, "1500ms": 1500, "1h": 3_600_000} {
		p := parse(t, "ref: a.b\nthreshold: 1\naction: a.x\nadaptive:\n  latency: "+text+"\n")[0]
		require.Equal(t, want, p.AdaptiveLatencyMS, text)
	}
}

func TestParseMistakes(t *testing.T) {
	t.Parallel()
	const head = "ref: a.b\nthreshold: 1\n"
	for name, tc := range map[string]struct {
		content string
		want    []string
	}{
		"UnknownKey": {
			head + "thresold: 2\n",
			[]string{"f:3:1: thresold is not a known key; the nearest is threshold"},
		},
		"UnknownKeyLikeNone": {head + "concurrency_group: 2\n", []string{
			"f:3:1: concurrency_group is not a known key; known are ref, name, description, tags, pack, action, kind, threshold, " +
				"method, parameters, window, burst, max_queue_length, queue_timeout, retry_place, adaptive",
		}},
		"UnknownAdaptiveKey": {head + "action: a.x\nadaptive: {minimum: 2}\n", []string{
			"f:4:12: minimum is not a known key; known are min, latency, latency_ms",
		}},
		"MisspeltAdaptiveKey": {head + "action: a.x\nadaptive: {latenzy: 2}\n", []string{
			"f:4:12: latenzy is not a known key; the nearest is adaptive.latency",
		}},
		"KeyTwice": {head + "threshold: 2\n", []string{"f:3:1: threshold is given twice, also in line 2"}},
		"KeyInTwoForms": {
			head + "action: a.x\naction_ref: a.x\n",
			[]string{"f:4:1: action_ref and action in line 3 both give action: keep one"},
		},
		"AdaptiveInTwoForms": {
			head + "action: a.x\nadaptive_min: 1\nadaptive: {min: 1}\n",
			[]string{"f:5:12: adaptive.min is given twice, also in line 4"},
		},
		"LatencyInTwoForms": {
			head + "action: a.x\nadaptive: {latency: 1, latency_ms: 1000}\n",
			[]string{"f:4:12: adaptive has latency and latency_ms: keep one"},
		},
		"NoRef":         {"threshold: 1\n", []string{"f:1:1: the policy has no ref"}},
		"NoThreshold":   {"ref: a.b\n", []string{"f:1:1: the policy a.b has no threshold"}},
		"NullThreshold": {"ref: a.b\nthreshold:\n", []string{"f:1:1: the policy a.b has no threshold"}},
		"ZeroThreshold": {"ref: a.b\nthreshold: 0\n", []string{"f:2:12: threshold is 0; it must be at least 1"}},
		"NegativeThreshold": {
			"ref: a.b\nthreshold: -3\n",
			[]string{"f:2:12: threshold is -3; it must be at least 1"},
		},
		"TextThreshold": {
			"ref: a.b\nthreshold: \"5\"\n",
			[]string{`f:2:12: threshold is "5"; it must be a whole number`},
		},
		"FractionalThreshold": {
			"ref: a.b\nthreshold: 1.5\n",
			[]string{"f:2:12: threshold is 1.5; it must be a whole number"},
		},
		"ListThreshold": {
			"ref: a.b\nthreshold: [1]\n",
			[]string{"f:2:12: threshold is a list; it must be a whole number"},
		},
		"LargeThreshold": {
			"ref: a.b\nthreshold: 2147483648\n",
			[]string{"f:2:12: threshold is 2147483648; it can be at most 2147483647"},
		},
		"HugeThreshold": {
			"ref: a.b\nthreshold: 0xfffffffffffffff\n",
			[]string{"f:2:12: threshold is 0xfffffffffffffff; it can be at most 2147483647"},
		},
		"HugestThreshold": {
			"ref: a.b\nthreshold: 18446744073709551615\n",
			[]string{"f:2:12: threshold is 18446744073709551615; it can be at most 2147483647"},
		},
		"WindowIsList": {
			head + "kind: rate\nwindow: [1]\n",
			[]string{"f:4:9: window is a list; it must be a number of seconds or a form like 1m30s"},
		},
		"WindowIsBool": {
			head + "kind: rate\nwindow: true\n",
			[]string{"f:4:9: window is true; it must be a number of seconds or a form like 1m30s"},
		},
		"UnprintableKey": {
			head + "\"thres\\nhold\": 2\n",
			[]string{`f:3:1: "thres\nhold" is not a known key; the nearest is threshold`},
		},
		"RefWithoutDot": {
			"ref: limit\nthreshold: 1\n",
			[]string{`f:1:6: ref is "limit"; it must have one dot, as in core.limit`},
		},
		"RefWithTwoDots": {
			"ref: a.b.c\nthreshold: 1\n",
			[]string{`f:1:6: ref is "a.b.c"; it must have one dot, as in core.limit`},
		},
		"RefEndsWithDot": {
			"ref: a.\nthreshold: 1\n",
			[]string{`f:1:6: ref is "a."; it must have one dot, as in core.limit`},
		},
		"RefUpperCase": {
			"ref: Core.limit\nthreshold: 1\n",
			[]string{`f:1:6: ref is "Core.limit"; it must be lower case`},
		},
		"RefWithSpace": {
			"ref: core.a b\nthreshold: 1\n",
			[]string{`f:1:6: ref is "core.a b"; it must not hold spaces`},
		},
		"RefIsMapping": {"ref: {a: b}\nthreshold: 1\n", []string{"f:1:6: ref must be a text"}},
		"UnknownKind": {
			head + "kind: speed\nwindow: 5\nburst: 1\n",
			[]string{`f:3:7: kind is "speed"; it must be concurrency, rate or quota`},
		},
		"UnknownMethod": {
			head + "method: drop\n",
			[]string{`f:3:9: method is "drop"; it must be enqueue or cancel`},
		},
		"UnknownRetryPlace": {
			head + "retry_place: middle\n",
			[]string{`f:3:14: retry_place is "middle"; it must be back or front`},
		},
		"RateWithoutWindow": {
			head + "kind: rate\n",
			[]string{"f:1:1: the policy a.b has no window, and one of kind rate needs it, for example window: 60s"},
		},
		"QuotaWithoutWindow": {
			head + "kind: quota\n",
			[]string{"f:1:1: the policy a.b has no window, and one of kind quota needs it, for example window: 60s"},
		},
		"ConcurrencyAndWindow": {
			head + "window: 60s\n",
			[]string{"f:3:1: window is for the kinds rate and quota; this policy is of kind concurrency"},
		},
		"WindowNoDuration": {
			head + "kind: rate\nwindow: soon\n",
			[]string{`f:4:9: window is "soon"; it must be a number of seconds or a form like 1m30s`},
		},
		"WindowTooShort": {
			head + "kind: rate\nwindow: 500ms\n",
			[]string{`f:4:9: window is "500ms"; it must be at least 1s`},
		},
		"WindowZero": {
			head + "kind: rate\nwindow: 0\n",
			[]string{"f:4:9: window is 0; it must be at least 1s"},
		},
		"WindowFraction": {
			head + "kind: rate\nwindow: 1500ms\n",
			[]string{`f:4:9: window is "1500ms"; it must be a multiple of 1s`},
		},
		"WindowTooLong": {
			head + "kind: rate\nwindow: 3000000000\n",
			[]string{"f:4:9: window is 3000000000; it can be at most 2147483647 seconds"},
		},
		"WindowInfinite": {
			head + "kind: rate\nwindow: .inf\n",
			[]string{"f:4:9: window is .inf; it can be at most 2147483647 seconds"},
		},
		"WindowNaN": {
			head + "kind: rate\nwindow: .nan\n",
			[]string{"f:4:9: window is .nan; it must be a number of seconds or a form like 1m30s"},
		},
		"BurstOfConcurrency": {
			head + "burst: 2\n",
			[]string{"f:3:1: burst is for the kind rate; this policy is of kind concurrency"},
		},
		"BurstOfQuota": {
			head + "kind: quota\nwindow: 60\nburst: 2\n",
			[]string{"f:5:1: burst is for the kind rate; this policy is of kind quota"},
		},
		"AdaptiveOfPack": {
			head + "pack: a\nadaptive: {min: 1}\n",
			[]string{"f:4:1: adaptive is for a concurrency policy of one action"},
		},
		"AdaptiveOfRate": {
			head + "kind: rate\nwindow: 5\naction: a.x\nadaptive_min: 1\n",
			[]string{"f:6:1: adaptive is for a concurrency policy of one action"},
		},
		"AdaptiveNoMapping": {
			head + "action: a.x\nadaptive: true\n",
			[]string{"f:4:11: adaptive must be a mapping with min and latency"},
		},
		"AdaptiveAboveLimit": {
			head + "action: a.x\nadaptive: {min: 2}\n",
			[]string{"f:4:12: adaptive.min is 2 and above the threshold, 1"},
		},
		"LatencyTooFine": {
			head + "action: a.x\nadaptive: {latency: 10us}\n",
			[]string{`f:4:21: latency is "10us"; it must be at least 1ms`},
		},
		"EmptyAction":       {head + "action:\n", []string{"f:3:1: action is empty: name one, or leave the key out"}},
		"EmptyPack":         {head + "pack: ''\n", []string{"f:3:1: pack is empty: name one, or leave the key out"}},
		"ParametersNoList":  {head + "parameters: region\n", []string{"f:3:13: parameters must be a list of texts"}},
		"ParametersMapping": {head + "parameters: [{a: b}]\n", []string{"f:3:14: parameters must be a text"}},
		"ParametersNull": {
			head + "parameters: [a, ~]\n",
			[]string{"f:3:17: parameters must be a list of texts, and one is empty"},
		},
		"ParametersPath": {
			head + "parameters: [a, b..c]\n",
			[]string{`f:3:17: parameters names "b..c"; a path is names with dots between them, as in target.region`},
		},
		"QueueTimeoutForEver": {head + "queue_timeout: 0\n", []string{
			"f:3:16: queue_timeout is 0, and no policy makes waiting endless: give a long time such as 87600h, or leave it out and " +
				"set executor.queue.queue_timeout_seconds to 0",
		}},
		"ParametersTwice": {head + "parameters: [a, a]\n", []string{"f:3:17: parameters names a twice"}},
		"TagsNoList":      {head + "tags: a\n", []string{"f:3:7: tags must be a list of texts"}},
		"NameWithNUL": {
			head + "name: \"a\\0b\"\n",
			[]string{"f:3:7: name holds a character that cannot be stored"},
		},
		"NotYAML": {"ref: [a\n", []string{"f:1: this is not YAML: did not find expected ',' or ']'"}},
		"List":    {"- ref: a.b\n", []string{"f:1:1: this is a list: write it below the key policies"}},
		"Text": {
			"hello\n",
			[]string{"f:1:1: this is not a policy: write a mapping with ref, threshold and so on"},
		},
		"PoliciesNoList": {"policies: {a: b}\n", []string{"f:1:11: policies must be a list"}},
		"PoliciesOfTexts": {
			"policies: [a, " + `{ref: a.b, threshold: 1}]` + "\n",
			[]string{"f:1:12: this is not a policy: write a mapping with ref, threshold and so on"},
		},
		"BesidePolicies": {
			"policies: []\nref: a.b\n",
			[]string{"f:2:1: ref cannot stand beside policies: a document is a list of policies or one policy"},
		},
		"KeyIsList":     {head + "[a, b]: 1\n", []string{"f:3:1: a key must be a word"}},
		"MergeOfText":   {head + "<<: hello\n", []string{"f:3:1: << takes the keys of a mapping, and this is none"}},
		"MergeOfItself": {"&a\n" + head + "<<: [*a, *a]\n", []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, mistakes := pack.Parse("f", []byte(tc.content))
			require.Equal(t, tc.want, texts(mistakes))
		})
	}
}

func TestParseReportsAllMistakes(t *testing.T) {
	t.Parallel()
	policies, mistakes := pack.Parse("f", []byte(`policies:
  - ref: Core.A
    kind: rate
    threshold: 0
    burst: none
  - name: without
    window: 5
---
ref: a.b
threshold: 3
`))
	require.Equal(t, []string{
		"f:2:5: the policy Core.A has no window, and one of kind rate needs it, for example window: 60s",
		`f:2:10: ref is "Core.A"; it must be lower case`,
		"f:4:16: threshold is 0; it must be at least 1",
		`f:5:12: burst is "none"; it must be a whole number`,
		"f:6:5: the policy has no ref",
		"f:6:5: the policy has no threshold",
		"f:7:5: window is for the kinds rate and quota; this policy is of kind concurrency",
	}, texts(mistakes))
	require.Len(t, policies, 3, "those with mistakes are returned as well, for the checks that follow")
}

func TestMistakesBeforeASyntaxErrorAreReported(t *testing.T) {
	t.Parallel()
	policies, mistakes := pack.Parse("f", []byte("ref: a.b\nthreshold: 1\n---\nref: a: b\n"))
	require.Len(t, policies, 1)
	require.Equal(t, []string{"f:4: this is not YAML: mapping values are not allowed in this context"}, texts(mistakes))
}

func TestShownValuesAreShort(t *testing.T) {
	t.Parallel()
	_, mistakes := pack.Parse("f", []byte("ref: a.b\nthreshold: "+strings.Repeat("x", 5000)+"\n"))
	require.Equal(t, []string{`f:2:12: threshold is "` + strings.Repeat("x", 40) + `…"; it must be a whole number`},
		texts(mistakes))
}

func TestDuplicates(t *testing.T) {
	t.Parallel()
	one, _ := pack.Parse("a.yaml", []byte("ref: a.b\nthreshold: 1\n---\nthreshold: 1\n"))
	two, _ := pack.Parse("b.yaml", []byte("threshold: 1\n---\nref: a.b\nthreshold: 2\n---\nref: a.c\nthreshold: 1\n"))
	require.Equal(t, []string{"b.yaml:3:1: the policy a.b is given twice, also at a.yaml:1:1"},
		texts(pack.Duplicates(append(one, two...))))
}

func TestMistakesError(t *testing.T) {
	t.Parallel()
	_, mistakes := pack.Parse("f", []byte("{}\n"))
	require.EqualError(t, &pack.MistakesError{Mistakes: mistakes},
		"2 mistakes, the first is f:1:1: the policy has no ref")
	require.EqualError(t, &pack.MistakesError{Mistakes: mistakes[:1]}, "f:1:1: the policy has no ref")
}
