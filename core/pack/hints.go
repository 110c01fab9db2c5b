package pack

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/attune-go/attune/core/expr"
	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/core/rule"
	"github.com/attune-go/attune/core/schema"
	"github.com/attune-go/attune/core/yamldoc"
)

const askAction = "core.ask"

// askParams are the parameters of core.ask.
var askParams = []string{"prompt", "response_schema", "assigned_to"}

// ask reports parameters that core.ask refuses: unknown ones, and unknown keywords of the schema.
func (c *itemChecker) ask(use Use) {
	refuse := func(format string, args ...any) { c.Mistakef(use.Place, format, args...) }
	for _, name := range slices.Sorted(maps.Keys(use.Input)) {
		if !slices.Contains(askParams, name) && name != "timeout_seconds" {
			refuse("the task %s will fail: %s has no parameter %s%s", use.Task, askAction, name,
				phrase.DidYouMean(name, askParams))
		}
	}
	form, ok := use.Input["response_schema"].(map[string]any)
	if !ok || strings.Contains(expr.JSON(form), "{{") {
		return // the values of templates are unknown
	}
	parsed, err := schema.FromValue(expr.Value(form))
	if err != nil {
		refuse("the task %s will fail: response_schema: %s", use.Task, yamldoc.OneLine(err.Error()))
		return
	}
	for _, ignored := range parsed.Ignored() {
		refuse("the task %s will fail: response_schema: %s", use.Task, ignored)
	}
}

// templates warns of unknown paths in the parameters of a rule.
func (c *itemChecker) templates(item *Item) {
	var payload []string
	if trigger, ok := c.after.found(KindTrigger, item.Trigger); ok && trigger.OutSchema != nil {
		if parsed, err := schema.FromValue(expr.Value(trigger.OutSchema)); err == nil {
			payload = parsed.Names()
		}
	}
	for _, wrong := range rule.Misnamed(item.Columns["action_params"], payload) {
		c.Warnf(item.At("action_params"), "%s: {{ %s }} will be null: %s is not known%s",
			wrong.At, wrong.Path, wrong.Unknown, phrase.DidYouMean(wrong.Name, wrong.Known))
	}
}

// reads warns of unknown fields in the expressions of a workflow: of its parameters, and of the results of its actions.
// A schema describes only the result of an action that prints JSON.
func (c *itemChecker) reads(item *Item) {
	for _, read := range item.Reads {
		in := ""
		if read.Task != "" {
			in = "task " + read.Task + ": "
		}
		action, known := c.after.found(KindAction, read.Action)
		switch {
		case read.Action == "":
			c.lacks(read.At, in+"the workflow has no parameter ", item.Columns["param_schema"], read.Path)
		case !known || action.OutSchema == nil:
		case read.Path[0] == "data":
			c.lacks(read.At, in+"the output of "+read.Action+" has no field ", action.OutSchema, read.Path[1:])
		case action.Prints && !slices.Contains(ofResults, read.Path[0]): // a field of data
			c.lacks(read.At, in+"the output of "+read.Action+" has no field ", action.OutSchema, read.Path)
		}
	}
}

// ofResults are the fields of results other than those of its data.
var ofResults = []string{
	"cancelled", "data", "duration_ms", "error", "exit_code", "output_error", "queue_ack", "response", "result",
	"stderr", "stderr_log", "stderr_truncated", "stdout", "stdout_log", "stdout_truncated", "succeeded", "timed_out",
}

// lacks warns of a path that a schema does not have.
func (c *itemChecker) lacks(at Place, what string, described any, path []string) {
	parsed, err := schema.FromValue(expr.Value(described))
	if err != nil || described == nil {
		return
	}
	if i, known := parsed.Lacks(path); i >= 0 {
		c.Warnf(at, "%s%s%s", what, strings.Join(path[:i+1], "."), phrase.DidYouMean(path[i], known))
	}
}

// conditions warns of payload fields in the conditions of a rule that the events of its trigger do not have.
func (c *itemChecker) conditions(item *Item) {
	trigger, ok := c.after.found(KindTrigger, item.Trigger)
	raw, err := json.Marshal(item.Columns["conditions"])
	if !ok || err != nil {
		return
	}
	conditions, err := rule.ParseConditions(item.Ref, raw)
	if err != nil {
		return // finishRule has reported it
	}
	for _, path := range conditions.Payload() {
		c.lacks(item.At("conditions"), "the events of "+item.Trigger+" have no field ", trigger.OutSchema, path)
	}
}
