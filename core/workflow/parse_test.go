package workflow_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/expr"
	"github.com/attune-go/attune/core/workflow"
)

// parse reads a definition that has nothing wrong.
func parse(t *testing.T, content string) *workflow.Definition {
	t.Helper()
	d, mistakes, _ := workflow.Parse("w.yaml", []byte(content))
	require.Empty(t, texts(mistakes))
	return d
}

func texts(mistakes []workflow.Mistake) []string {
	list := []string{}
	for _, m := range mistakes {
		list = append(list, m.String())
	}
	return list
}

// everything uses each key once.
const everything = `
ref: shop.checkout
label: Check out
description: Pays for a cart and ships it.
version: 1.2.0
strict: true
tags: [shop, money]
parameters:
  cart: {type: object, required: true}
output:
  order: {type: string}
vars:
  order: null
  limits: {low: 1, high: [2, 3.5]}
cancellation_policy: cancel_running
tasks:
  - name: reserve
    action: shop.reserve
    when: "{{ parameters.cart != null }}"
    input:
      cart: "{{ parameters.cart }}"
      note: "for {{ parameters.cart.owner }}"
    permission_set_refs: [shop.writer]
    worker_selector: {zone: "{{ parameters.zone }}"}
    worker_tolerations: [{key: dedicated, value: shop, effect: no_schedule}]
    worker_affinity: {required: []}
    timeout: 30
    retry:
      count: 3
      delay: 2
      backoff: exponential
      max_delay: 10
      on_error: "{{ result().code != 'sold_out' }}"
    next:
      - when: "{{ succeeded() }}"
        publish:
          - order: "{{ result().id }}"
          - whole
        do: [pay, prepare]
      - when: failed() and not timed_out()
        do: tell
  - name: pay
    type: workflow
    action: money.pay
    next:
      - do: [ship]
  - name: prepare
    type: parallel
    tasks:
      - name: box
        action: shop.box
      - name: label
        action: shop.label
    next:
      - do: [ship]
  - name: ship
    action: shop.ship
    join: all
    with_items: "{{ parameters.cart.parcels }}"
    concurrency: 4
    batch_size: 2
    input: {parcels: "{{ batch }}", first: "{{ index }}"}
  - name: tell
    action: core.echo
output_map:
  order: "{{ workflow.order }}"
  count: 1
`

func TestParseReadsEveryKey(t *testing.T) {
	t.Parallel()
	d, mistakes, warnings := workflow.Parse("w.yaml", []byte(everything))
	require.Empty(t, texts(mistakes))
	require.Empty(t, texts(warnings))
	requireEverything(t, d)
	require.Equal(t, "w.yaml:17:11", d.Task("reserve").At.String())
	require.True(t, d.Task("ship").JoinAll)
}

// requireEverything checks the parts that every form of the definition has.
func requireEverything(t *testing.T, d *workflow.Definition) {
	t.Helper()
	require.Equal(t, "shop.checkout", d.Ref)
	require.Equal(t, "1.2.0", d.Version)
	require.Equal(t, workflow.CancelRunning, d.Cancellation)
	require.True(t, d.Strict)
	require.Equal(t,
		map[string]any{"order": nil, "limits": map[string]any{
			"low": int64(1), "high": []any{int64(2), json.Number("3.5")},
		}}, d.Vars)
	require.Equal(t, []string{"reserve", "pay", "prepare", "box", "label", "ship", "tell"}, names(d.All()))
	require.Equal(t, []string{"reserve"}, names(d.Entries()))

	reserve := d.Task("reserve")
	require.Equal(t, "shop.reserve", reserve.Action)
	require.Equal(t, "parameters.cart != null", reserve.When.Expression())
	require.Equal(t, []any{"shop.writer"}, reserve.PermissionSets.Raw())
	require.Equal(t, map[string]any{"zone": "{{ parameters.zone }}"}, reserve.Selector.Raw())
	require.Len(t, reserve.Tolerations.Raw(), 1)
	require.Equal(t, map[string]any{"required": []any{}}, reserve.Affinity.Raw())
	require.Equal(t, 30, reserve.Timeout)
	require.Equal(t, 3, reserve.Retry.Count)
	require.Equal(t, 2*time.Second, reserve.Retry.Delay)
	require.Equal(t, 10*time.Second, reserve.Retry.MaxDelay)
	require.Equal(t, workflow.BackoffExponential, reserve.Retry.Backoff)
	require.Equal(t, "result().code != 'sold_out'", reserve.Retry.OnError.Expression())
	require.Equal(t, []string{"pay", "prepare", "tell"}, reserve.Outbound)
	require.Len(t, reserve.Next, 2)
	require.Equal(t, []string{"pay", "prepare"}, reserve.Next[0].Do)
	require.Equal(t, "order", reserve.Next[0].Publish[0].Name)
	require.Equal(t, "whole", reserve.Next[0].Publish[1].Name)
	require.Equal(t, "{{ result() }}", reserve.Next[0].Publish[1].Value.Raw())
	require.Equal(t, "failed() and not timed_out()", reserve.Next[1].When.Expression())

	require.Equal(t, workflow.KindWorkflow, d.Task("pay").Kind)
	require.Nil(t, d.Task("pay").Next[0].When)
	prepare := d.Task("prepare")
	require.Equal(t, workflow.KindParallel, prepare.Kind)
	require.Equal(t, []string{"box", "label"}, names(prepare.Tasks))
	require.Same(t, prepare, d.Task("box").Within)
	require.Nil(t, d.Task("box").Input, "the parameters of the workflow are passed on")
	require.Equal(t, 1, d.Task("box").Concurrency)

	ship := d.Task("ship")
	require.Equal(t, 2, ship.Join)
	require.Equal(t, []string{"pay", "prepare"}, ship.Inbound)
	require.Equal(t, 4, ship.Concurrency)
	require.Equal(t, 2, ship.BatchSize)
	require.Equal(t, "{{ parameters.cart.parcels }}", ship.WithItems.Raw())
	require.ElementsMatch(t, []string{"order", "count"}, []string{d.OutputMap[0].Name, d.OutputMap[1].Name})
	require.Nil(t, d.Task("nobody"))
}

func names(tasks []*workflow.Task) []string {
	list := make([]string, len(tasks))
	for i, task := range tasks {
		list[i] = task.Name
	}
	return list
}

func TestParseDefaults(t *testing.T) {
	t.Parallel()
	d := parse(t, "version: 2\ntasks: [{name: a, action: core.echo, input: {}, next: [], retry: null}]")
	require.Equal(t, "2", d.Version)
	require.Equal(t, workflow.AllowFinish, d.Cancellation)
	a := d.Task("a")
	require.Equal(t, workflow.KindAction, a.Kind)
	require.Nil(t, a.Input)
	require.Nil(t, a.Retry)
	require.Nil(t, a.PermissionSets)
	require.Zero(t, a.Join)

	bare := parse(t, "version: 1\ntasks: [{name: a, action: core.echo, permission_set_ref: null}]")
	require.NotNil(t, bare.Task("a").PermissionSets, "null takes the permissions away")
	require.Nil(t, bare.Task("a").PermissionSets.Raw())
}

func TestValuesAreEvaluated(t *testing.T) {
	t.Parallel()
	value, err := workflow.NewValue(map[string]any{
		"whole": "{{ n }}", "text": "n is {{ n }}",
		"list": []any{"{{ n + 1 }}", map[string]any{"deep": "{{ missing }}"}}, "plain": 1,
	})
	require.NoError(t, err)
	_, err = value.Eval(expr.Names{"n": int64(3)})
	require.ErrorContains(t, err, "list[1].deep: ")
	got, err := value.Eval(expr.Names{"n": int64(3), "missing": true})
	require.NoError(t, err)
	require.Equal(t, map[string]any{
		"whole": int64(3), "text": "n is 3", "list": []any{int64(4), map[string]any{"deep": true}}, "plain": int64(1),
	}, got)

	deep := any(1)
	for range 199 {
		deep = []any{deep}
	}
	_, err = value.Eval(expr.Names{"n": int64(3), "missing": deep})
	require.ErrorContains(t, err, "list[1].deep[0][0]")
	require.ErrorContains(t, err, "nested 201 levels deep; at most 200")

	condition, err := workflow.NewCondition(" {{ n > 2 }} ")
	require.NoError(t, err)
	holds, err := condition.Holds(expr.Names{"n": int64(3)})
	require.NoError(t, err)
	require.True(t, holds)
	condition, err = workflow.NewCondition(`text == "{{ }}"`)
	require.NoError(t, err)
	holds, err = condition.Holds(expr.Names{"text": "{{ }}"})
	require.NoError(t, err)
	require.True(t, holds)
}

func TestRetryWaits(t *testing.T) {
	t.Parallel()
	waits := func(r workflow.Retry) (list []int) {
		for n := 1; n <= 4; n++ {
			list = append(list, int(r.Wait(n)/time.Second))
		}
		return list
	}
	second := time.Second
	require.Equal(t, []int{2, 2, 2, 2}, waits(workflow.Retry{Delay: 2 * second, Backoff: workflow.BackoffConstant}))
	require.Equal(t, []int{2, 4, 6, 8}, waits(workflow.Retry{Delay: 2 * second, Backoff: workflow.BackoffLinear}))
	require.Equal(t, []int{2, 4, 8, 16}, waits(workflow.Retry{Delay: 2 * second, Backoff: workflow.BackoffExponential}))
	require.Equal(t, []int{2, 4, 7, 7},
		waits(workflow.Retry{Delay: 2 * second, MaxDelay: 7 * second, Backoff: workflow.BackoffExponential}))
	require.Equal(t, []int{2, 4, 5, 5},
		waits(workflow.Retry{Delay: 2 * second, MaxDelay: 5 * second, Backoff: workflow.BackoffLinear}))
	require.Equal(t, []int{0, 0, 0, 0}, waits(workflow.Retry{Backoff: workflow.BackoffExponential}))
	month := 30 * 24 * time.Hour
	for _, backoff := range []workflow.Backoff{workflow.BackoffLinear, workflow.BackoffExponential} {
		r := workflow.Retry{Delay: (1<<31 - 1) * second, Backoff: backoff}
		require.Equal(t, month, r.Wait(100), "an unlimited delay does not overflow")
	}
}

func TestParseAcceptsYAMLAsItIsWritten(t *testing.T) {
	t.Parallel()
	d := parse(t, `
version: "1"
vars: [{a: 1}, {b: "2"}]
x-common: &common
  action: core.echo
  retry: {count: 1, delay: 0}
tasks:
  - <<: *common
    name: one
    next: &next
      - publish: {seen: true, big: 12345678901234567890, when: 2020-01-01}
        do: [two, two]
  - {<<: *common, name: two, retry: {count: 2}}
`)
	require.Equal(t, map[string]any{"a": int64(1), "b": "2"}, d.Vars)
	require.Equal(t, "core.echo", d.Task("one").Action)
	require.Equal(t, 2, d.Task("two").Retry.Count)
	require.Equal(t, []string{"one"}, d.Task("two").Inbound)
	publish := d.Task("one").Next[0].Publish
	require.Equal(t, json.Number("12345678901234567890"), publish[1].Value.Raw())
	require.Equal(t, "2020-01-01", publish[2].Value.Raw())
}

func TestParseRefusesLargeFiles(t *testing.T) {
	t.Parallel()
	_, mistakes, _ := workflow.Parse("w.yaml", []byte(strings.Repeat("#", workflow.MaxSize+1)))
	require.Equal(t, []string{"w.yaml: the file has 1048577 bytes; a workflow may have 1048576"}, texts(mistakes))

	// Aliases of aliases count with their contents.
	var bomb strings.Builder
	bomb.WriteString("version: 1\nvars:\n  a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n")
	for i := 1; i < 12; i++ {
		before, now := string(rune('a'+i-1)), string(rune('a'+i))
		_ = before
		bomb.WriteString("  a" + now + ": &a" + now + " [")
		for range 10 {
			if i == 1 {
				bomb.WriteString("*a0, ")
			} else {
				bomb.WriteString("*a" + before + ", ")
			}
		}
		bomb.WriteString("]\n")
	}
	bomb.WriteString("tasks: [{name: a, action: core.echo}]\n")
	_, mistakes, _ = workflow.Parse("w.yaml", []byte(bomb.String()))
	require.Contains(t, strings.Join(texts(mistakes), "\n"), "there are more than 200000 values in the workflow")
}
