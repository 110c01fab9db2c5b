package advancement_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/attune"
)

// Workflows in the forms that published documents show, with what these say comes out.
// What a task gives is what the published worker writes for its action.
func TestWorkflowsAsDocumentsShowThemRun(t *testing.T) {
	t.Parallel()
	type object = map[string]any
	ok := func(more object) end {
		result := object{"exit_code": 0, "duration_ms": 3, "succeeded": true}
		for key, value := range more {
			result[key] = value
		}
		return end{attune.StatusCompleted, result}
	}
	for name, c := range map[string]struct {
		definition string
		params     object
		gives      map[string]end
		want       object
		ran        []string
	}{
		"three tasks in sequence, by older keys": {`
version: "1.0.0"
vars: {text: null, at: null}
tasks:
  - {name: log, action: pk.echo, input: {message: "Begins with {{ parameters.message }}"}, publish: [{at: "{{ system.timestamp }}"}], on_success: change}
  - name: change
    action: pk.change
    input: {text: "{{ parameters.message }}"}
    publish: [{text: "{{ task.change.result.text }}"}]
    on_success: last
  - {name: last, action: pk.echo, input: {message: "Done: {{ vars.text }}"}}
output_map: {original: "{{ parameters.message }}", processed: "{{ vars.text }}", final: "{{ task.last.result.message }}"}
`, object{"message": "hi"}, map[string]end{"change": ok(object{"data": object{"text": "HI"}})},
			object{"original": "hi", "processed": "HI", "succeeded": true}, []string{"log/0/0", "change/0/0", "last/0/0"}},
		"an id of printed JSON": {`
version: "1.0"
tasks:
  - name: create
    action: pk.create
    next:
      - {when: "{{ succeeded() }}", publish: [{id: "{{ result().id }}"}, {same: "{{ task.create.result.id == task.create.id }}"}, whole], do: [use]}
      - {when: "{{ failed() }}", do: [mend]}
  - {name: use, action: pk.use, input: {id: "{{ workflow.id }}"}, next: [{when: "{{ result().code == 200 }}", publish: [{done: true}]}]}
  - {name: mend, action: pk.mend}
output_map: {id: "{{ id }}", same: "{{ same }}", done: "{{ done }}", printed: "{{ whole.stdout }}"}
`, nil, map[string]end{"create": ok(object{"stdout": "{\"id\": 7}\n"}), "use": ok(object{"data": object{"code": 200}})},
			object{"id": 7.0, "same": true, "done": true, "printed": "{\"id\": 7}\n", "succeeded": true}, []string{"create/0/0", "use/0/0"}},
		"an envelope whose fields are missing": {`
version: "1.0"
tasks:
  - name: prompt
    action: pk.prompt
    next:
      - {when: "{{ succeeded() }}", publish: [{envelope: "{{ result().data }}"}], do: [announce]}
      - {when: "{{ failed() }}", do: [tell]}
  - {name: announce, action: pk.echo, input: {message: "Got {{ workflow.envelope.output }}"}}
  - {name: tell, action: pk.echo}
output_map: {headline: "{{ workflow.envelope.output.headline }}", url: "{{ workflow.envelope.output.url }}", raw: "{{ workflow.envelope.output }}"}
`, nil, map[string]end{"prompt": ok(object{"data": object{"output": object{"headline": "News"}}})},
			object{"headline": "News", "raw": object{"headline": "News"}, "succeeded": true}, []string{"prompt/0/0", "announce/0/0"}},
		"functions that do not exist": {`
version: "1.0.0"
tasks:
  - {name: begin, action: pk.noop, publish: [{at: "{{ now() }}"}, {dir: "/tmp/{{ uuid() }}"}, {n: 1}], on_success: fetch}
  - {name: fetch, action: pk.fetch, publish: [{packs: "{{ task.fetch.result.packs }}"}], on_success: check}
  - name: check
    action: pk.noop
    input: {message: "{{ task.fetch.result.success_count }} packs"}
    next:
      - {when: "{{ not parameters.skip }}", do: [deps]}
      - {when: "{{ parameters.skip }}", do: [build]}
  - {name: deps, action: pk.deps, input: {paths: "{{ vars.packs | map(attribute='path') | list }}"}, on_success: build, on_failure: clean}
  - {name: build, action: pk.build}
  - {name: clean, action: pk.noop}
output_map: {n: "{{ n }}", at: "{{ at }}", packs: "{{ packs }}"}
`, object{"skip": false}, map[string]end{"fetch": ok(object{"data": object{"packs": []any{"a"}, "success_count": 1}})},
			object{"n": 1.0, "packs": []any{"a"}, "succeeded": true}, []string{"begin/0/0", "fetch/0/0", "check/0/0", "clean/0/0"}},
		"a loop that monitors": {`
version: "1.0.0"
tasks:
  - {name: begin, action: pk.noop, next: [{do: [poll]}]}
  - {name: poll, action: pk.poll, next: [{when: "{{ result().state == 'ready' }}", do: [last]}, {when: "{{ result().state != 'ready' }}", do: [wait]}]}
  - {name: wait, action: pk.wait, next: [{do: [poll]}]}
  - {name: last, action: pk.last}
`, nil, map[string]end{"poll": ok(object{"data": object{"state": "busy"}})},
			object{"succeeded": true}, []string{"begin/0/0", "poll/0/0", "wait/0/0"}},
		"one item that is no list": {`
version: "1.0.0"
tasks:
  - {name: each, action: pk.each, with_items: "{{ parameters.region }}", input: {region: "{{ item }}", ordinal: "{{ index }}"}, next: [{when: "{{ succeeded() }}", publish: [{regions: "{{ parameters.region }}"}]}]}
  - {name: none, next: [{do: [never]}]}
  - {name: never, action: pk.never}
output_map: {regions: "{{ workflow.regions }}"}
`, object{"region": "eu"}, nil, object{"regions": "eu", "succeeded": true}, []string{"each/0/0"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			w.does = func(task string, _, _ int) end {
				if given, known := c.gives[task]; known {
					return given
				}
				return ok(nil)
			}
			require.Equal(t, c.want, w.completes(w.request(w.define("pk.published", c.definition), c.params)))
			require.Equal(t, c.ran, w.ran)
		})
	}
}
