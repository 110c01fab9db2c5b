package pack

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/attune-go/attune/core/expr"
	"github.com/attune-go/attune/core/nearest"
	"github.com/attune-go/attune/core/rule"
	"github.com/attune-go/attune/core/schema"
	"github.com/attune-go/attune/core/yamldoc"
)

// askAction is the action that asks a person, and askParams are its parameters.
const askAction = "core.ask"

var askParams = []string{"prompt", "response_schema", "assigned_to"}

// asks reports what core.ask will refuse: parameters that it has not, and what a
// schema says that is not understood.
func (c *itemChecker) asks(use Use) {
	refuse := func(format string, args ...any) { c.Mistakef(use.Place, format, args...) }
	for _, name := range slices.Sorted(maps.Keys(use.Input)) {
		if !slices.Contains(askParams, name) && name != "timeout_seconds" {
			refuse("the task %s will fail: %s has no parameter %s%s", use.Task, askAction, name,
				nearest.Hint(name, askParams))
		}
	}
	form, ok := use.Input["response_schema"].(map[string]any)
	if !ok || strings.Contains(expr.JSON(form), "{{") {
		return // what a template stands for is not known
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

// templates warns of paths in the parameters of a rule that lead to nothing.
func (c *itemChecker) templates(item *Item) {
	var payload []string
	if trigger, ok := c.after.found(KindTrigger, item.Trigger); ok && trigger.OutSchema != nil {
		if parsed, err := schema.FromValue(expr.Value(trigger.OutSchema)); err == nil {
			payload = parsed.Names()
		}
	}
	for _, wrong := range rule.Misnamed(item.Columns["action_params"], payload) {
		c.Warnf(item.At("action_params"), "%s: {{ %s }} leads to nothing and will be null: %s is not known%s",
			wrong.At, wrong.Path, wrong.Unknown, nearest.Hint(wrong.Name, wrong.Known))
	}
}

// reads warns of fields that the expressions of a workflow read and that the schemas do
// not have: of its parameters, and of the results of its actions. Results that are not
// what an action prints are not described.
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

// ofResults are the fields that a result may have besides those of its data.
var ofResults = []string{
	"cancelled", "data", "duration_ms", "error", "exit_code", "output_error", "queue_ack", "response", "result",
	"stderr", "stderr_log",
	"stderr_truncated", "stdout", "stdout_log", "stdout_truncated", "succeeded", "timed_out",
}

// lacks warns of a path that a schema does not have.
func (c *itemChecker) lacks(at Place, what string, described any, path []string) {
	parsed, err := schema.FromValue(expr.Value(described))
	if err != nil || described == nil {
		return
	}
	if i, known := parsed.Lacks(path); i >= 0 {
		c.Warnf(at, "%s%s%s", what, strings.Join(path[:i+1], "."), nearest.Hint(path[i], known))
	}
}

// conditions warns of fields of the payload that the conditions of a rule read and that
// the events of its trigger do not have.
func (c *itemChecker) conditions(item *Item) {
	trigger, ok := c.after.found(KindTrigger, item.Trigger)
	raw, err := json.Marshal(item.Columns["conditions"])
	if !ok || err != nil {
		return
	}
	conditions, err := rule.ParseConditions(item.Ref, raw)
	if err != nil {
		return // that was said
	}
	for _, path := range conditions.Payload() {
		c.lacks(item.At("conditions"), "the events of "+item.Trigger+" have no field ", trigger.OutSchema, path)
	}
}
