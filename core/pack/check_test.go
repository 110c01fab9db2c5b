package pack_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/pack"
)

// known is a database with two packs and both forms of schemas.
var known = pack.Known{
	Actions: []pack.Action{
		{Ref: "core.echo", Pack: "core", ParamSchema: []byte(`{"message": {"type": "string"}}`)},
		{Ref: "core.noop", Pack: "core"},
		{Ref: "core.empty", Pack: "core", ParamSchema: []byte(`{}`)},
		{Ref: "deploy.rollout", Pack: "deploy", ParamSchema: []byte(`{"type": "object", "properties": {
			"environment": {"type": "string"},
			"target": {"type": "object", "properties": {"region": {"type": "string"}, "zone": {"type": ["string", "null"]}}},
			"open": {"type": "object", "properties": {"a": {}}, "additionalProperties": true},
			"closed": {"type": "object", "properties": {"a": {}}, "additionalProperties": false},
			"maybe": {"type": ["null", "object"]},
			"list": {"type": "array", "items": {"type": "object"}},
			"any": {}, "odd": true}}`)},
		{
			Ref: "deploy.flat", Pack: "deploy",
			ParamSchema: []byte(`{"properties": {"type": "object"}, "type": {"type": "string"}}`),
		},
		{Ref: "deploy.none", Pack: "deploy", ParamSchema: []byte(`{"type": "object"}`)},
	},
	Packs:      []string{"core", "deploy", "bare"},
	ActionRefs: []string{"core.echo", "core.noop", "deploy.rollout"},
	PackRefs:   []string{"core", "deploy"},
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		keys string
		want string // without the file; empty: nothing is wrong
	}{
		"Action":          {"action: core.echo", ""},
		"ActionOfItsPack": {"action: core.echo\npack: core", ""},
		"Pack":            {"pack: bare", ""},
		"Global":          {"", ""},
		"NoSuchAction":    {"action: core.ecko", "3:1: there is no action core.ecko; the nearest is core.echo"},
		"NoSuchActionInItsPack": {
			"action: elsewhere.rollout",
			"3:1: there is no action elsewhere.rollout; the nearest is deploy.rollout",
		},
		"NoSuchActionWithoutPack": {
			"action: rollout",
			"3:1: there is no action rollout; the nearest is deploy.rollout",
		},
		"NoSuchActionAtAll": {"action: zzzzzzz.qqqqqqqq", "3:1: there is no action zzzzzzz.qqqqqqqq"},
		"NoSuchPack":        {"pack: deplyo", "3:1: there is no pack deplyo; the nearest is deploy"},
		"NoSuchPackAtAll":   {"pack: zzzzzzzzz", "3:1: there is no pack zzzzzzzzz"},
		"ActionOfAnotherPack": {
			"pack: deploy\naction: core.echo",
			"4:1: the action core.echo belongs to the pack core, not to deploy",
		},

		"Path":             {"action: core.echo\nparameters: [message]", ""},
		"PathOfJSONSchema": {"action: deploy.rollout\nparameters: [environment, target, target.region]", ""},
		"PathIntoAny":      {"action: deploy.rollout\nparameters: [any.a.b, odd.x, maybe.a]", ""},
		"PathIntoOpen":     {"action: deploy.rollout\nparameters: [open.b.c]", ""},
		"PathOfFlatSchema": {"action: deploy.flat\nparameters: [properties, type]", ""},
		"UnknownPath": {
			"action: core.echo\nparameters: [mesage]",
			"4:1: the path mesage is no parameter of the action core.echo; the nearest is message",
		},
		"UnknownPathFarAway": {
			"action: core.echo\nparameters: [zzzzzzzzzz]",
			"4:1: the path zzzzzzzzzz is no parameter of the action core.echo",
		},
		"NoSchema": {
			"action: core.noop\nparameters: [a]",
			"4:1: the path a is no parameter of the action core.noop: there are none",
		},
		"EmptySchema": {
			"action: core.empty\nparameters: [a]",
			"4:1: the path a is no parameter of the action core.empty: there are none",
		},
		"NoProperties": {
			"action: deploy.none\nparameters: [type]",
			"4:1: the path type is no parameter of the action deploy.none: there are none",
		},
		"PathIntoText":       {"action: core.echo\nparameters: [message.a]", "4:1: the path message.a is no parameter of the action core.echo: message is of type string and has no fields"},
		"PathIntoTextOrNull": {"action: deploy.rollout\nparameters: [target.zone.a]", "4:1: the path target.zone.a is no parameter of the action deploy.rollout: target.zone is of type [string null] and has no fields"},
		"PathIntoList":       {"action: deploy.rollout\nparameters: [list.a]", "4:1: the path list.a is no parameter of the action deploy.rollout: list is of type array and has no fields"},
		"PathBesideField": {
			"action: deploy.rollout\nparameters: [target.rack]",
			"4:1: the path target.rack is no parameter of the action deploy.rollout: target has no field rack",
		},
		"PathIntoClosed": {
			"action: deploy.rollout\nparameters: [closed.b]",
			"4:1: the path closed.b is no parameter of the action deploy.rollout: closed has no field b",
		},

		"PackPath": {"pack: deploy\nparameters: [environment]", ""},
		"PackPathOfOtherPack": {
			"pack: deploy\nparameters: [message]",
			"4:1: the path message is no parameter of any action of the pack deploy",
		},
		"PackPathOfEmptyPack": {
			"pack: bare\nparameters: [message]",
			"4:1: the path message is no parameter of any action of the pack bare: there are none",
		},
		"GlobalPath": {"parameters: [message, target.region]", ""},
		"GlobalPathNobodyHas": {
			"parameters: [messages]",
			"3:1: the path messages is no parameter of any action; the nearest is message",
		},
		"GlobalPathLeadsAstray": {
			"parameters: [target.rack]",
			"3:1: the path target.rack is no parameter of any action: target has no field rack",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			policies := parse(t, "ref: a.b\nthreshold: 1\n"+tc.keys+"\n")
			want := []string{}
			if tc.want != "" {
				want = append(want, "limits.yaml:"+tc.want)
			}
			require.Equal(t, want, texts(pack.Check(policies, known)))
		})
	}
}

// A malformed value is reported once, and a malformed scope does not count as a wider one.
func TestCheckOfUnsoundPolicies(t *testing.T) {
	t.Parallel()
	for _, scope := range []string{"action:", "action: [a]", "pack: ''", "pack: {a: b}"} {
		policies, mistakes := pack.Parse("f", []byte("ref: a.b\nthreshold: 1\nparameters: [nobody]\n"+scope+"\n"))
		require.Len(t, mistakes, 1, scope)
		require.Empty(t, texts(pack.Check(policies, known)), scope)
		require.Equal(t, pack.Needs{}, pack.NeedsOf(policies), scope)
	}
}

func TestNeedsOf(t *testing.T) {
	t.Parallel()
	policies := parse(t, `policies:
- {ref: a.a, threshold: 1, action: z.x, parameters: [p]}
- {ref: a.b, threshold: 1, action: a.x, pack: a}
- {ref: a.c, threshold: 1, action: a.x}
- {ref: a.d, threshold: 1, pack: b, parameters: [p]}
- {ref: a.e, threshold: 1}
`)
	needs := pack.NeedsOf(policies)
	require.Equal(t, pack.Needs{Actions: []string{"a.x", "z.x"}, Packs: []string{"a", "b"}, ScopePacks: []string{"b"}},
		needs)
	require.True(t, pack.NeedsOf(parse(t, "{ref: a.a, threshold: 1, parameters: [p]}")).ScopeAll)

	actions, packs := pack.Known{
		Actions: []pack.Action{{Ref: "a.x"}, {Ref: "z.x"}},
		Packs:   []string{"a"},
	}.Unknown(needs)
	require.False(t, actions)
	require.True(t, packs)
	actions, packs = pack.Known{Actions: []pack.Action{{Ref: "a.x"}}, Packs: []string{"b", "a"}}.Unknown(needs)
	require.True(t, actions)
	require.False(t, packs)
}

// A malformed path has been reported by the parser and is not checked again.
func TestCheckSkipsMalformedPaths(t *testing.T) {
	t.Parallel()
	policies, mistakes := pack.Parse("f",
		[]byte("ref: core.a\nthreshold: 1\naction: core.echo\nparameters: ['', message]\n"))
	require.Len(t, mistakes, 1)
	require.Equal(t, []string{"message"}, policies[0].Parameters)
	known := pack.Known{Actions: []pack.Action{{Ref: "core.echo", Pack: "core", ParamSchema: []byte(`{"message":{}}`)}}}
	require.Empty(t, pack.Check(policies, known))
}
