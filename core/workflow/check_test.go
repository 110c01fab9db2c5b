package workflow_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/attune-go/attune/core/workflow"
)

// task makes a definition of one task with more keys.
func task(keys string) string {
	return "version: 1\ntasks:\n  - name: a\n    action: core.echo\n" + keys
}

func TestMistakesHaveAPlaceAndAText(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, content string
		want          []string
	}{
		{"no mapping", "- a", []string{"1:1: this is not a workflow: write a mapping with version, tasks and so on"}},
		{"no YAML", "version: 1\ntasks: [", []string{"2: this is not YAML: did not find expected node content"}},
		{"nothing", "# nothing\n", []string{"the file is empty: a workflow has at least version and tasks"}},
		{
			"no version", "tasks: [{name: a, action: b.c}]",
			[]string{"1:1: version is missing; write version: \"1.0.0\""},
		},
		{"no tasks", "version: 1", []string{"1:1: tasks are missing: a workflow has at least one"}},
		{"empty tasks", "version: 1\ntasks: []", []string{"2:8: tasks must be a list of at least one task"}},
		{
			"two documents", task("---\nversion: 1\n"),
			[]string{"6:1: there is a second document: a file holds one workflow"},
		},
		{
			"version", "version: ''\ntasks: [{name: a, action: b.c}]",
			[]string{"1:10: version has 0 characters; it must have 1 to 50"},
		},
		{
			"no task", "version: 1\ntasks: [a]",
			[]string{"2:9: this is not a task: write a mapping with name, action and so on"},
		},
		{"no name", "version: 1\ntasks: [{action: b.c, timeout: 0}]", []string{
			"2:9: a task has no name", "2:32: a task without a name: timeout is 0; it must be at least 1",
		}},
		{"reserved", "version: 1\ntasks: [{name: item, action: b.c}]", []string{
			"2:16: a task cannot be named item: expressions know that name as something else",
		}},
		{"twice", "version: 1\ntasks: [{name: a, action: b.c},\n {name: a, action: b.c}]", []string{
			"3:9: there are two tasks named a, the first in line 2",
		}},
		{
			"twice within",
			"version: 1\ntasks: [{name: a, action: b.c},\n {name: p, type: parallel, tasks: [{name: a, action: b.c}]}]",
			[]string{
				"3:43: there are two tasks named a, the first in line 2",
			},
		},
		{
			strictly + "no action", "version: 1\ntasks: [{name: a}]",
			[]string{"2:16: task a: a task of type action has an action; without one it is skipped"},
		},
		{"ref", "version: 1\ntasks: [{name: a, action: echo}]", []string{
			"2:27: task a: action is \"echo\"; it must be a ref such as core.echo",
		}},
		{"type", "version: 1\ntasks: [{name: a, type: loop, action: b.c}]", []string{
			"2:25: task a: type is \"loop\"; it must be action, parallel or workflow",
		}},
		{"unknown target", task("    next:\n      - do: [aa, b]\n"), []string{
			"6:14: task a: it leads to aa, which is no task; the nearest is a",
			"6:18: task a: it leads to b, which is no task",
		}},
		{strictly + "expression", task("    input:\n      x: \"{{ 1 + }}\"\n"), []string{
			"6:18: task a: the expression ends where a value is expected",
		}},
		{
			strictly + "deep expression",
			task("    input:\n      list:\n        - {deep: \"é {{ parameters.x | upper }}\"}\n"),
			[]string{
				"7:37: task a: unexpected \"|\"",
			},
		},
		{
			strictly + "open template", task("    input: {x: 'a {{ b'}\n"),
			[]string{"5:19: task a: the template is not closed by }}"},
		},
		{strictly + "block", task("    input:\n      x: |\n        first\n        and {{ 1 ++ }}\n"), []string{
			"8:19: task a: unexpected +",
		}},
		{strictly + "condition", task("    when: \"{{ x }} and {{ y }}\"\n"), []string{
			"5:12: task a: when: a condition is one expression, alone or as {{ expression }}",
		}},
		{strictly + "bare condition", task("    next: [{when: succeeded() and}]\n"), []string{
			"5:34: task a: when: the expression ends where a value is expected",
		}},
		{
			strictly + "function", task("    input: {at: '{{ now() }}', id: \"x-{{ uuid() }}\", s: '{{ leength(a) }}'}\n"),
			[]string{
				"5:20: task a: there is no function now", "5:41: task a: there is no function uuid",
				"5:60: task a: there is no function leength; the nearest is length",
			},
		},
		{"retry", task("    retry: {count: 0, delay: -1}\n"), []string{
			"5:20: task a: count is 0; it must be at least 1", "5:30: task a: delay is -1; it must be at least 0",
		}},
		{"retry more", task("    retry: {count: 101, delay: 10, max_delay: 9, backoff: square}\n"), []string{
			"5:5: task a: retry waits 10 seconds at least, and max_delay allows 9",
			"5:20: task a: count is 101; it can be at most 100",
			"5:59: task a: backoff is \"square\"; it must be constant, linear or exponential",
		}},
		{"retry without count", task("    retry: {delay: 1}\n"), []string{
			"5:5: task a: retry has no count: say how often it is repeated, 1 to 100",
		}},
		{"numbers", task("    with_items: [1]\n    concurrency: 0\n    batch_size: many\n    timeout: 1.5\n"), []string{
			"6:18: task a: concurrency is 0; it must be at least 1",
			"7:17: task a: batch_size is \"many\"; it must be a whole number",
			"8:14: task a: timeout is 1.5; it must be a whole number",
		}},
		{"no list", task("    concurrency: 2\n    batch_size: 2\n"), []string{
			"5:5: task a: concurrency has a meaning only with with_items",
			"6:5: task a: batch_size has a meaning only with with_items",
		}},
		{
			strictly + "join",
			task("    next: [{do: b}]\n  - {name: b, action: c.d, join: 2}\n  - {name: c, action: c.d, join: all}\n"),
			[]string{
				"6:12: task b: join waits for 2, and only 1 lead to it",
				"7:12: task c: join waits for all that lead to it, and nothing does",
			},
		},
		{"join word", task("    join: some\n"), []string{"5:11: task a: join is \"some\"; it must be a whole number"}},
		{
			"parallel", "version: 1\ntasks:\n  - {name: p, type: parallel, action: a.b, retry: {count: 1}, tasks: []}\n",
			[]string{
				"3:12: task p: a parallel task has tasks, at least one",
				"3:31: task p: action has no meaning for a parallel task: give it to its tasks",
				"3:44: task p: retry has no meaning for a parallel task: give it to its tasks",
			},
		},
		{"within parallel", "version: 1\ntasks:\n  - name: p\n    type: parallel\n    tasks:\n" +
			"      - {name: x, action: a.b, next: [{do: p}], join: 1}\n      - {name: y, type: parallel, tasks: [{name: z, action: a.b}]}\n", []string{
			"6:32: task x: next has no meaning within a parallel task: what follows stands with the task around it",
			"6:49: task x: join has no meaning within a parallel task: what follows stands with the task around it",
			"7:35: task y: a parallel within a parallel is not supported: put its tasks into the outer one, which runs all at once",
		}},
		{
			"into a parallel",
			task("    next: [{do: x}]\n  - {name: p, type: parallel, tasks: [{name: x, action: a.b}]}\n"),
			[]string{
				"5:17: task a: it leads to x, which is a part of p: lead to that",
			},
		},
		{"tasks of an action", task("    tasks: [{name: x, action: a.b}]\n"), []string{
			"5:5: task a: tasks belong to a task of type parallel",
		}},
		{
			strictly + "circle",
			task("    next: [{do: b}]\n  - {name: b, action: c.d, next: [{do: [b]}, {do: c}]}\n  - {name: c, action: c.d}\n"),
			[]string{
				"6:12: the tasks lead in a circle: b → b; every task runs once, so repeat by retry or go over a list by with_items",
			},
		},
		{
			strictly + "circle apart",
			task("  - {name: b, action: c.d, next: [{do: c}]}\n  - {name: c, action: c.d, on_success: b, on_failure: d}\n" +
				"  - {name: d, action: c.d}\n"),
			[]string{
				"5:12: the tasks lead in a circle: b → c → b; every task runs once, so repeat by retry or go over a list by with_items",
				"7:12: task d is never reached: only what is never reached leads to it",
			},
		},
		{"not supported", task("    iterate_cache: {namespace: x}\n    wait_for: {inquiry: '{{ 1 }}'}\n"), []string{
			"5:5: task a: iterate_cache is not supported: have an action read the entries and go over its result by with_items",
			"6:5: task a: wait_for is not supported: ask by the action core.ask, or let the action open an inquiry by __inquiry in its result",
		}},
		{"variables", "version: 1\nvars: {a b: 1}\ntasks: [{name: a, action: b.c, next: [{publish: [x.y]}]}]", []string{
			"2:8: a b is not a name for a variable; it has letters, digits, _ and -",
			"3:50: task a: x.y is not a name for a variable; it has letters, digits, _ and -",
		}},
		{
			"keys twice",
			task("    input: {}\n    input: {a: 1}\n    permission_set_ref: a\n    permission_set_refs: b\n"),
			[]string{
				"6:5: task a: input is given twice, also in line 5",
				"8:5: task a: permission_set_refs and permission_set_ref in line 7 are the same: keep one",
			},
		},
		{"shapes", task("    input: [a]\n    next: {do: b}\n    when: [a]\n    retry: 3\n"), []string{
			"5:12: task a: input must be a mapping of parameters",
			"6:11: task a: next must be a list of transitions",
			"7:11: task a: when must be a text",
			"8:12: task a: retry must be a mapping with count, delay and so on",
		}},
		{
			strictly + "output", "version: 1\noutput_map: {a: '{{ ) }}'}\ntasks: [{name: a, action: b.c}]",
			[]string{"2:21: unexpected )"},
		},
		{
			strictly + "repeated on", task("    retry: {count: 1, on_error: '1 1'}\n"),
			[]string{"5:36: task a: on_error: unexpected 1"},
		},
		{
			"strict", "version: 1\nstrict: often\ntasks: [{name: a, action: b.c}]",
			[]string{"2:9: strict is \"often\"; it must be true or false"},
		},
		{"cancellation", "version: 1\ncancellation_policy: none\ntasks: [{name: a, action: b.c}]", []string{
			"2:22: cancellation_policy is \"none\"; it must be allow_finish or cancel_running",
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			content := test.content
			if strings.HasPrefix(test.name, strictly) {
				_, mistakes, warnings := workflow.Parse("w", []byte(content))
				require.Subset(t, bare(warnings), test.want[len(mistakes):], "without strict: true one is warned of it")
				content = strings.TrimSuffix(content, "\n") + "\nstrict: true\n"
			}
			_, mistakes, _ := workflow.Parse("w", []byte(content))
			require.Equal(t, test.want, bare(mistakes))
		})
	}
}

// strictly marks a mistake of strict workflows only.
const strictly = "strictly "

// bare are mistakes without the name of the file.
func bare(mistakes []workflow.Mistake) []string {
	got := texts(mistakes)
	for i := range got {
		got[i] = strings.TrimPrefix(strings.TrimPrefix(got[i], "w:"), " ")
	}
	return got
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	_, mistakes, warnings := workflow.Parse("w", []byte(`
version: 1
nme: check
vars: {a: "{{ parameters.x }}", known: 1}
output_map: {x: "{{ task.b.y }}", y: "{{ knwon + workflow.known }}"}
tasks:
  - name: a
    action: core.echo
    colour: 5
    __chart_meta__: {x: 1}
    input: {i: "{{ item }}", ok: "{{ known }}", quoted: "{{ 'task.nobody' }}"}
    on_success: a2
    next: [{when: "{{ succeeded() }}", publish: [{x: 1}, {x: 2}], x-doo: [a2], do: [a2]}]
  - name: a2
    action: core.echo
    with_items: "{{ parameters.list }}"
    input: {i: "{{ item }}", n: "{{ parametrs.x }}"}
`))
	require.Empty(t, texts(mistakes))
	require.Equal(t, []string{
		"w:3:1: nme is not a known key and is ignored",
		"w:4:11: vars are taken as they stand: the template in a is not evaluated",
		"w:5:20: there is no task b",
		"w:5:41: nothing is named knwon; the nearest is known",
		"w:9:5: task a: colour is not a known key of a task and is ignored",
		"w:11:19: task a: item stands for something only in a task with with_items",
		"w:12:5: task a: on_success is ignored beside next",
		"w:13:59: task a: x is published twice by one transition; the last value counts",
		"w:17:36: task a2: nothing is named parametrs; the nearest is parameters",
	}, texts(warnings))
}

// A key that resembles a known one is refused, and so is any unknown key where the rest
// would mean something else without the one that was meant. Definitions that are stored
// have been running with theirs.
func TestUnknownKeysAreRefused(t *testing.T) {
	t.Parallel()
	const content = `version: "1"
nme: x
paramters: {}
tasks:
  - name: a
    action: core.echo
    timeuot: 5
    retry: {count: 2, dealy: 3, jitter: 1, _own: 2}
    next:
      - {wen: succeeded(), do: b}
      - {label: fine, prio: 1, do: b, x-own: 1}
  - name: b
    action: core.echo
    with_items: "{{ [1] }}"
    paralell: 4
    concurency: 5
    decision: [{when: "{{ true }}", next: c, prio: 1}]
  - {name: c, action: core.echo, colour: red}
`
	_, mistakes, warnings := workflow.Parse("w", []byte(content))
	require.Equal(t, []string{
		"w:3:1: paramters is not a known key; the nearest is parameters",
		"w:7:5: task a: timeuot is not a known key of a task; the nearest is timeout",
		"w:8:23: task a: dealy is not a known key of retry; the nearest is delay",
		"w:8:33: task a: jitter is not a known key of retry; known are count, delay, backoff, max_delay, on_error",
		"w:10:10: task a: wen is not a known key of a transition; the nearest is when",
		"w:11:23: task a: prio is not a known key of a transition; known are when, publish, do",
		"w:15:5: task b: paralell is not a known key of a task",
		"w:16:5: task b: concurency is not a known key of a task; the nearest is concurrency",
		"w:17:46: task b: prio is not a known key of a branch; known are when, next, default",
	}, texts(mistakes))
	require.Equal(t, []string{
		"w:2:1: nme is not a known key and is ignored",
		"w:11:10: task a: label is not a known key of a transition and is ignored",
		"w:18:34: task c: colour is not a known key of a task and is ignored",
	}, texts(warnings))
	var stored map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(content), &stored))
	raw, err := json.Marshal(stored)
	require.NoError(t, err)
	_, err = workflow.ParseJSON(raw)
	require.NoError(t, err)
}

// The older keys become transitions in the published order.
func TestOlderKeysBecomeTransitions(t *testing.T) {
	t.Parallel()
	after := func(keys string) []string {
		others := "  - {name: s, action: c.d}\n  - {name: f, action: c.d}\n  - {name: c, action: c.d}\n  - {name: o, action: c.d}\n"
		d := parse(t, task(keys)+others)
		var list []string
		for _, next := range d.Task("a").Next {
			when := "always"
			if next.When != nil {
				when = next.When.Source()
			}
			for _, a := range next.Publish {
				when += fmt.Sprintf(" %s=%v", a.Name, a.Value.Raw())
			}
			list = append(list, when+" "+strings.Join(next.Do, ","))
		}
		return list
	}
	require.Equal(t, []string{"{{ succeeded() }} s", "{{ failed() }} f", "always c", "{{ timed_out() }} o"},
		after("    on_timeout: o\n    on_complete: c\n    on_failure: f\n    on_success: s\n"))
	require.Equal(t, []string{"{{ succeeded() }} x=1 y={{ result() }} s", "{{ failed() }} f"},
		after("    publish: [{x: 1}, y]\n    on_failure: f\n    on_success: s\n"))
	require.Equal(t, []string{"{{ failed() }} x=1 f"}, after("    publish: [{x: 1}]\n    on_failure: f\n"))
	require.Equal(t, []string{"{{ succeeded() }} x=1 "}, after("    publish: [{x: 1}]\n"))
	require.Equal(t,
		[]string{"{{ result().n > 1 }} s", "{{ not ((result().n > 1) or (workflow.n)) }} o", "workflow.n f"},
		after("    decision: [{when: '{{ result().n > 1 }}', next: s}, {default: true, next: o}, {when: workflow.n, next: f}]\n"))
	asked := "    decision: [{when: '{{ result().n > 1 }}', next: s}, {default: true, next: o}, {when: failed(), next: f}]\n"
	require.Equal(t, []string{"{{ result().n > 1 }} s", "{{ not ((result().n > 1) or (failed())) }} o", "failed() f"},
		after(asked))
	require.Equal(t, []string{"{{ succeeded() }} s"},
		after("    on_failure: f\n    next: [{when: '{{ succeeded() }}', do: s}]\n"))

	_, mistakes, _ := workflow.Parse("w", []byte(task(
		"    decision: [{next: a2}, {default: true, next: a2}, {default: true, next: a2}, {when: failed()}]\n  - {name: a2, action: c.d}\n")))
	require.Equal(t, []string{
		"w:5:16: task a: a branch of decision has neither when nor default",
		"w:5:55: task a: decision has two default branches",
		"w:5:82: task a: a branch of decision has no next",
	}, texts(mistakes))
}

// A workflow as large as a file may be is checked in reasonable time.
func TestLargeWorkflows(t *testing.T) {
	t.Parallel()
	var content strings.Builder
	content.WriteString("version: 1\ntasks:\n")
	const count = 10_000
	for i := range count {
		fmt.Fprintf(&content, "  - {name: t%d, action: a.b, next: [{do: [t%d, t%d]}]}\n", i, min(i+1, count),
			min(i+7, count))
	}
	fmt.Fprintf(&content, "  - {name: t%d, action: a.b, join: all}\n", count)
	d := parse(t, content.String())
	require.Equal(t, 7, d.Task(fmt.Sprintf("t%d", count)).Join)
	require.Nil(t, d.Cycle())
}
