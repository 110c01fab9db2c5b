package pack_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/pack"
)

// Fields in expressions and given parameters are compared with known schemas. Open and unknown schemas give no
// warnings.
func TestExpressionsAreComparedWithSchemas(t *testing.T) {
	t.Parallel()
	const bake = "ref: ab.bake\nentry_point: /bin/true\noutput_format: json\nparameters: {count: {type: integer}}\n" +
		"output: {euros: {type: number}, box: {type: object, properties: {size: {type: integer}}}, free: {type: object}}\n"
	const open = "---\nref: ab.open\nentry_point: /bin/true\noutput_format: json\noutput: {type: object, properties: {a: {}}, additionalProperties: true}\n"
	const text = "---\nref: ab.text\nentry_point: /bin/true\noutput: {euros: {type: number}}\n"
	const workflow = `version: 1.0.0
ref: ab.w
parameters: {count: {type: integer}, any: {type: object}}
tasks:
  - name: a
    action: ab.bake
    input: {count: "{{ parameters.cuont + parameters.any.x }}"}
    next:
      - {when: "{{ result().euros > 1 }}", publish: [{x: "{{ result().data.euro }}"}, {y: "{{ result().exit_code }}"}], do: [b, c, d]}
      - {when: "{{ result().data.box.siez == 1 or result().data.free.x }}", publish: [{z: "{{ result().data.euros }}"}]}
  - {name: b, action: ab.open, next: [{when: "{{ result().data.b and result().a }}"}]}
  - {name: c, action: ab.text, next: [{when: "{{ result().euros }}"}]}
  - {name: e, action: ab.text, input: {v: "{{ task.a.euors + task.a.euros + task.a.exit_code + task.a.result.data.euors + task.d.x + task.c.x }}"}}
  - {name: d, action: ab.bake, with_items: "{{ [1] }}", input: {cuont: 1}, next: [{when: "{{ result().x }}"}]}
output_map: {o: "{{ parameters.conut }}", p: "{{ parameters.count }}"}
`
	const trigger = "ref: ab.t\noutput: {count: {type: integer}}\n---\nref: ab.any\n"
	const rule = "ref: ab.r\ntrigger: ab.t\naction: ab.bake\naction_params: {conut: 1, other: 2}\n" +
		"conditions: {expression: event.payload.coutn >= event.payload.count}\n"
	const list = "---\nref: ab.s\ntrigger: ab.t\naction: ab.bake\nconditions: [{field: cuont.x, operator: equals, value: 1}]\n"
	const openRule = "---\nref: ab.u\ntrigger: ab.any\naction: ab.bake\nconditions: {expression: event.payload.coutn}\n"
	set, mistakes := pack.Read([]pack.Source{
		{Name: "p", Kind: pack.KindPack, Content: []byte("ref: ab\nversion: 1.0.0\n")},
		{Name: "a", Kind: pack.KindAction, Content: []byte(bake + open + text)},
		{Name: "w", Kind: pack.KindWorkflow, Content: []byte(workflow)},
		{Name: "t", Kind: pack.KindTrigger, Content: []byte(trigger)},
		{Name: "r", Kind: pack.KindRule, Content: []byte(rule + list + openRule)},
	})
	require.Empty(t, texts(mistakes))
	mistakes, warnings := set.Check(pack.World{Runtimes: []pack.Runtime{{Ref: "core.shell"}}})
	require.Empty(t, texts(mistakes))
	require.Equal(t, []string{
		"r:4:1: the action ab.bake has no parameter conut of this rule; the nearest is count",
		"r:5:1: the events of ab.t have no field coutn; the nearest is count",
		"r:10:1: the events of ab.t have no field cuont; the nearest is count",
		"w:7:23: task a: the workflow has no parameter cuont; the nearest is count",
		"w:9:61: task a: the output of ab.bake has no field euro; the nearest is euros",
		"w:10:16: task a: the output of ab.bake has no field box.siez; the nearest is size",
		"w:13:46: task e: the output of ab.bake has no field euors; the nearest is euros",
		"w:14:12: the action ab.bake has no parameter cuont of the task d; the nearest is count",
		"w:15:20: the workflow has no parameter conut; the nearest is count",
	}, texts(warnings))
}
