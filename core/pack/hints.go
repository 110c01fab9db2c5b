package pack

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/attune-go/attune/core/expr"
	"github.com/attune-go/attune/core/rule"
	"github.com/attune-go/attune/core/schema"
)

// askAction is the action that asks a person, and askParams are its parameters.
const askAction = "core.ask"

var askParams = []string{"prompt", "response_schema", "assigned_to"}

// asks warns of what core.ask will refuse: parameters that it has not, and what a
// schema says that is not understood.
func (c *itemChecker) asks(use Use) {
	warn := func(format string, args ...any) {
		c.warnings = append(c.warnings, Mistake{use.Place, fmt.Sprintf(format, args...)})
	}
	for _, name := range slices.Sorted(maps.Keys(use.Input)) {
		if !slices.Contains(askParams, name) && name != "timeout_seconds" {
			warn("the task %s will fail: %s has no parameter %s%s", use.Task, askAction, name, nearest(name, askParams))
		}
	}
	form, ok := use.Input["response_schema"].(map[string]any)
	if !ok || strings.Contains(expr.JSON(form), "{{") {
		return // what a template stands for is not known
	}
	parsed, err := schema.FromValue(expr.Value(form))
	if err != nil {
		warn("the task %s will fail: response_schema: %s", use.Task, oneLine(err.Error()))
		return
	}
	for _, ignored := range parsed.Ignored() {
		warn("the task %s will fail: response_schema: %s", use.Task, ignored)
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
		c.warnings = append(c.warnings, Mistake{item.At("action_params"), fmt.Sprintf(
			"%s: {{ %s }} leads to nothing and will be null: %s is not known%s", wrong.At, wrong.Path, wrong.Unknown, nearest(wrong.Name, wrong.Known))})
	}
}
