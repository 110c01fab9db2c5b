package pack_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/pack"
)

// A consequence of another mistake is not reported: it vanishes with the correction of the first.
func TestConsequencesOfAMistakeAreNotTold(t *testing.T) {
	t.Parallel()
	const workflow = "version: 1.0.0\nref: ab.w\nstrict: true\ntasks:\n"
	const rule = "ref: ab.r\ntrigger: ab.t\naction: ab.bake\n"
	const policy = "ref: ab.p\naction: ab.bake\nthreshold: 1\nparameters: [customer]\n"
	for name, tc := range map[string]struct {
		pack, action, workflow, rule, policy string
		want                                 []string
	}{
		"a type": {
			action: "ref: ab.bake\nentry_point: /bin/true\nparameters: {customer: {type: int}}\n",
			rule:   rule + "action_params: {customer: x}\n", policy: policy,
			want: []string{`a:3:31: the parameter customer is of type "int"; known are array, boolean, integer, null, number, object, string`},
		},
		"a file": {
			action: "ref: ab.bake\n\tentry_point: x\n", rule: rule, policy: policy,
			workflow: workflow + "  - {name: a, action: ab.bake}\n",
			want:     []string{"a:2: this is not YAML: found a tab character that violates indentation"},
		},
		"a ref": {
			action: "ref: ab.Bake\nentry_point: /bin/true\n", rule: rule, policy: policy,
			want: []string{`a:1:1: ref is "ab.Bake"; it must be the pack, a dot and a name in lower case, as in ab.rollout`},
		},
		"the pack": {
			pack: "ref: [\n", action: "ref: ab.bake\nentry_point: /bin/true\n",
			rule: "ref: r\ntrigger: t\naction: bake\n", policy: "ref: ab.p\npack: ab\nthreshold: 1\n",
			want: []string{"r/pack.yaml:1: this is not YAML: did not find expected node content"},
		},
		"a list": {
			workflow: workflow +
				"  - {name: a, action: core.noop, with_items: '{{ rage(3) }}', input: {x: '{{ item }}'}}\n" +
				"  - {name: b, action: core.noop, with_item: [1], concurrency: 2, input: {x: '{{ index }}'}}\n",
			want: []string{
				"w:5:49: task a: there is no function rage; the nearest is range",
				"w:6:34: task b: with_item is not a known key of a task; the nearest is with_items",
			},
		},
		"a task": {
			workflow: workflow + "  - {name: a, action: core.noop, next: [{do: quote}, {do: pay}]}\n  - {name: quote, action: core.noop}\n" +
				"  - {name: quote, action: core.noop, join: 2, input: {x: '{{ task.pay.x }}'}}\n",
			want: []string{"w:7:12: there are two tasks named quote, the first in line 6"},
		},
		"keys of a task": {
			workflow: workflow + "  - {name: a, acton: core.noop}\n  - {nme: b, action: core.noop}\n  - {name: c, tpye: parallel, tasks: [{name: d, action: core.noop}]}\n" +
				"  - {name: e, action: core.noop, timeout_seconds: 5, parameters: {x: 1}}\n",
			want: []string{
				"w:5:15: task a: acton is not a known key of a task; the nearest is action",
				"w:6:6: nme is not a known key of a task; the nearest is name",
				"w:7:15: task c: tpye is not a known key of a task; the nearest is type",
				"w:8:34: task e: timeout_seconds is not a known key of a task; the nearest is timeout",
				"w:8:54: task e: parameters is not a known key of a task; the nearest is input",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sources := []pack.Source{
				{
					Name: "r/pack.yaml", Root: "r", Path: "pack.yaml", Kind: pack.KindPack,
					Content: []byte(orElse(tc.pack, "ref: ab\nversion: 1.0.0\n")),
				},
				{Name: "t", Root: "r", Kind: pack.KindTrigger, Content: []byte("ref: ab.t\n")},
			}
			for _, one := range []pack.Source{
				{Name: "a", Kind: pack.KindAction, Content: []byte(tc.action)},
				{Name: "w", Kind: pack.KindWorkflow, Content: []byte(tc.workflow)},
				{Name: "u", Kind: pack.KindRule, Content: []byte(tc.rule)},
				{Name: "p", Kind: pack.KindPolicy, Content: []byte(tc.policy)},
			} {
				if one.Root = "r"; len(one.Content) > 0 {
					sources = append(sources, one)
				}
			}
			set, mistakes := pack.Read(sources)
			found, warnings := set.Check(pack.World{
				Runtimes: []pack.Runtime{{Ref: "core.shell"}},
				Has: map[pack.Kind]map[string]pack.Found{
					pack.KindAction: {"core.noop": {}},
					pack.KindPack:   {"core": {}},
				},
			})
			mistakes = append(mistakes, found...)
			require.Equal(t, tc.want, texts(pack.Sort(mistakes)))
			require.Empty(t, texts(append(warnings, set.Warnings...)))
		})
	}
}

func orElse(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}
