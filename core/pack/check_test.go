package pack_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/pack"
)

// known is a database with two packs and both forms of schemas.
var known = pack.World{
	Has: map[pack.Kind]map[string]pack.Found{
		pack.KindAction: {
			"core.echo":  {Pack: "core", ParamSchema: decoded(`{"message": {"type": "string"}}`)},
			"core.noop":  {Pack: "core"},
			"core.empty": {Pack: "core", ParamSchema: decoded(`{}`)},
			"deploy.rollout": {Pack: "deploy", ParamSchema: decoded(`{"type": "object", "properties": {
				"environment": {"type": "string"},
				"target": {"type": "object", "properties": {"region": {"type": "string"}, "zone": {"type": ["string", "null"]}}},
				"open": {"type": "object", "properties": {"a": {}}, "additionalProperties": true},
				"closed": {"type": "object", "properties": {"a": {}}, "additionalProperties": false},
				"maybe": {"type": ["null", "object"]},
				"list": {"type": "array", "items": {"type": "object"}},
				"any": {}, "odd": true}}`)},
			"deploy.flat": {
				Pack: "deploy", ParamSchema: decoded(`{"properties": {"type": "object"}, "type": {"type": "string"}}`),
			},
			"deploy.none": {Pack: "deploy", ParamSchema: decoded(`{"type": "object"}`)},
		},
		pack.KindPack: {"core": {}, "deploy": {}, "bare": {}},
	},
	Hints: map[pack.Kind][]string{
		pack.KindAction: {"core.echo", "core.noop", "deploy.rollout"}, pack.KindPack: {"core", "deploy"},
	},
}

func decoded(text string) (value any) {
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		panic(err)
	}
	return value
}

// checked are the mistakes of policies by themselves.
func checked(policies []pack.Policy, known pack.World) []string {
	mistakes, _ := (&pack.Set{Policies: policies}).Check(known)
	return texts(mistakes)
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
			require.Equal(t, want, checked(policies, known))
		})
	}
}

// A malformed value is reported once, and a malformed scope does not count as a wider one.
func TestCheckOfUnsoundPolicies(t *testing.T) {
	t.Parallel()
	for _, scope := range []string{"action:", "action: [a]", "pack: ''", "pack: {a: b}"} {
		policies, mistakes := pack.Parse("f", []byte("ref: a.b\nthreshold: 1\nparameters: [nobody]\n"+scope+"\n"))
		require.Len(t, mistakes, 1, scope)
		require.Empty(t, checked(policies, known), scope)
		packs, all := (&pack.Set{Policies: policies}).Scopes()
		require.Empty(t, packs, scope)
		require.False(t, all, scope)
	}
}

func TestPoliciesNameWhatIsReadForThem(t *testing.T) {
	t.Parallel()
	set := &pack.Set{Policies: parse(t, `policies:
- {ref: a.a, threshold: 1, action: z.x, parameters: [p]}
- {ref: a.b, threshold: 1, action: a.x, pack: a}
- {ref: a.c, threshold: 1, action: a.x}
- {ref: a.d, threshold: 1, pack: b, parameters: [p]}
- {ref: a.e, threshold: 1}
`)}
	require.Equal(t, map[pack.Kind][]string{pack.KindAction: {"a.x", "z.x"}, pack.KindPack: {"a", "b"}}, set.Refs())
	packs, all := set.Scopes()
	require.Equal(t, []string{"b"}, packs)
	require.False(t, all)
	_, all = (&pack.Set{Policies: parse(t, "{ref: a.a, threshold: 1, parameters: [p]}")}).Scopes()
	require.True(t, all)

	has := func(packs ...string) pack.World {
		w := pack.World{Has: map[pack.Kind]map[string]pack.Found{
			pack.KindAction: {"a.x": {}, "z.x": {}}, pack.KindPack: {},
		}}
		for _, ref := range packs {
			w.Has[pack.KindPack][ref] = pack.Found{}
		}
		return w
	}
	require.Equal(t, []pack.Kind{pack.KindPack}, set.Missing(has("a")))
	require.Empty(t, set.Missing(has("a", "b")))
}

// A malformed path has been reported by the parser and is not checked again.
func TestCheckSkipsMalformedPaths(t *testing.T) {
	t.Parallel()
	policies, mistakes := pack.Parse("f",
		[]byte("ref: core.a\nthreshold: 1\naction: core.echo\nparameters: ['', message]\n"))
	require.Len(t, mistakes, 1)
	require.Equal(t, []string{"message"}, policies[0].Parameters)
	require.Empty(t, checked(policies, known))
}
