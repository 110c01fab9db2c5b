package rule

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/attune-go/attune/core/expr"
)

// How the conditions of a list are combined, spelled as the type of the column
// enforcement.condition.
const (
	All = "all"
	Any = "any"
)

// Operators of conditions.
const (
	OperatorEquals    = "equals"
	OperatorNotEquals = "not_equals"
	OperatorContains  = "contains"
)

// Operators lists the operators.
func Operators() []string { return []string{OperatorEquals, OperatorNotEquals, OperatorContains} }

// Error is a mistake in a rule.
type Error struct {
	Rule string // its reference
	Part string // such as conditions[2].operator or action_params.message
	Err  error
}

// Error names the rule, the part and the reason.
func (e *Error) Error() string {
	text := e.Err.Error()
	if e.Part != "" {
		text = e.Part + ": " + text
	}
	if e.Rule == "" {
		return text
	}
	return "rule " + e.Rule + ": " + text
}

// Unwrap is the reason.
func (e *Error) Unwrap() error { return e.Err }

// Conditions are the parsed conditions of one rule.
type Conditions struct {
	rule       string
	mode       string
	list       []condition
	expression *expr.Expression
	source     string // the expression of the rule, with its braces
	shift      int    // number of characters of source before the expression
}

type condition struct {
	part     string
	field    string
	operator string
	value    any
}

// ParseConditions reads the conditions of a rule. The error is an *Error, the first mistake that
// Check reports.
func ParseConditions(rule string, raw []byte) (*Conditions, error) {
	c, wrong := read(rule, raw)
	if len(wrong) > 0 {
		return c, wrong[0]
	}
	return c, nil
}

// read reads conditions and all mistakes in them. The conditions are nil if they are unreadable.
func read(rule string, raw []byte) (*Conditions, []*Error) {
	c := &Conditions{rule: rule, mode: All}
	if len(bytes.TrimSpace(raw)) == 0 {
		return c, nil
	}
	value, err := expr.FromJSON(raw)
	if err != nil {
		return nil, c.wrong("conditions", err)
	}
	switch v := value.(type) {
	case nil:
		return c, nil
	case []any:
		return c, c.readList("conditions", v)
	case map[string]any:
		return c, c.readObject(v)
	}
	return nil, c.wrong("conditions",
		errors.New(`they must be a list, {"all": […]}, {"any": […]} or {"expression": "…"}`))
}

func (c *Conditions) wrong(part string, err error) []*Error {
	return []*Error{c.error(part, err)}
}

func (c *Conditions) error(part string, err error) *Error {
	return &Error{Rule: c.rule, Part: part, Err: err}
}

func (c *Conditions) readObject(object map[string]any) []*Error {
	if len(object) == 0 {
		return nil
	}
	// An expression takes precedence over everything else, as it always has.
	if source, ok := object["expression"].(string); ok {
		return c.readExpression(source)
	}
	if len(object) > 1 {
		return c.wrong("conditions", errors.New("an object has one of the keys all, any and expression"))
	}
	for key, value := range object {
		switch key {
		case All, Any:
			list, ok := value.([]any)
			if !ok {
				return c.wrong("conditions."+key, errors.New("it must be a list of {field, operator, value}"))
			}
			c.mode = key
			return c.readList("conditions."+key, list)
		case "expression":
			return c.wrong("conditions.expression", errors.New("it must be a text"))
		default:
			return c.wrong("conditions", fmt.Errorf("the key %q is unknown: use all, any or expression", key))
		}
	}
	return nil
}

func (c *Conditions) readExpression(source string) []*Error {
	inner := strings.TrimSpace(source)
	if body, ok := strings.CutPrefix(inner, "{{"); ok {
		if body, ok = strings.CutSuffix(body, "}}"); ok {
			inner = strings.TrimSpace(body)
		}
	}
	c.source, c.shift = source, strings.Index(source, inner)
	expression, err := expr.Parse(inner)
	if err != nil {
		return c.wrong("conditions.expression", c.moved(err))
	}
	c.expression = expression
	return nil
}

// moved converts the position in an expression's error to one in the rule's text.
func (c *Conditions) moved(err error) error {
	if inner, ok := errors.AsType[*expr.Error](err); ok {
		return &expr.Error{Source: c.source, Offset: c.shift + inner.Offset, Text: inner.Text}
	}
	return err
}

func (c *Conditions) readList(part string, list []any) []*Error {
	var wrong []*Error
	for i, item := range list {
		wrong = append(wrong, c.readCondition(fmt.Sprintf("%s[%d]", part, i), item)...)
	}
	return wrong
}

func (c *Conditions) readCondition(at string, item any) []*Error {
	object, ok := item.(map[string]any)
	if !ok {
		return c.wrong(at, errors.New("it must be an object with field, operator and value"))
	}
	var wrong []*Error
	one := condition{part: at, value: object["value"]}
	if one.field, ok = object["field"].(string); !ok || one.field == "" {
		wrong = append(wrong, c.error(at+".field", errors.New("it must name a field of the payload")))
	}
	one.operator, ok = object["operator"].(string)
	switch {
	case !ok:
		wrong = append(wrong,
			c.error(at+".operator", fmt.Errorf("it must be one of %s", strings.Join(Operators(), ", "))))
	case !slices.Contains(Operators(), one.operator):
		wrong = append(wrong, c.error(at+".operator",
			fmt.Errorf("%q is unknown: use %s", one.operator, strings.Join(Operators(), ", "))))
	}
	if len(wrong) == 0 {
		c.list = append(c.list, one)
	}
	return wrong
}

// Mode is All or Any: how the conditions are combined.
func (c *Conditions) Mode() string { return c.mode }

// None reports whether there are no conditions.
func (c *Conditions) None() bool { return c.expression == nil && len(c.list) == 0 }

// Payload lists the fields of the payload that the conditions read, each as a path.
func (c *Conditions) Payload() [][]string {
	var paths [][]string
	for _, one := range c.list {
		paths = append(paths, strings.Split(one.field, "."))
	}
	if c.expression != nil {
		for _, read := range c.expression.Reads() {
			if read.Root == "event" && len(read.Path) > 1 && read.Path[0] == "payload" {
				paths = append(paths, read.Path[1:])
			}
		}
	}
	return paths
}

// Verdict is the result of matching an event with the conditions of a rule.
type Verdict struct {
	Matched bool
	Why     string // for users
	Err     error  // of an expression, which does not match then; an *Error
}

// Match compares an event with the conditions.
func (c *Conditions) Match(event Event) Verdict {
	switch {
	case c.None():
		return Verdict{Matched: true, Why: "the rule has no conditions"}
	case event.Payload == nil:
		return Verdict{Matched: true, Why: "the event has no payload, which meets any conditions"}
	case c.expression != nil:
		return c.evaluate(event)
	}
	return c.compare(event)
}

func (c *Conditions) evaluate(event Event) Verdict {
	scope := expr.Names{"event": event.names(true)}
	value, err := c.expression.Eval(scope)
	if err != nil {
		err = c.moved(err)
		return Verdict{
			Why: "the expression could not be evaluated: " + err.Error(),
			Err: c.error("conditions.expression", err),
		}
	}
	if expr.Truthy(value) {
		return Verdict{Matched: true, Why: "the expression is " + show(value)}
	}
	return Verdict{Why: "the expression " + short(c.expression.Source()) + " is " + show(value) + c.operands(scope)}
}

// maxOperands bounds the values in a reason.
const maxOperands = 6

// Explain is Match, with the values of a matching expression in the reason.
func (c *Conditions) Explain(event Event) Verdict {
	verdict := c.Match(event)
	if verdict.Matched && c.expression != nil && event.Payload != nil {
		verdict.Why = "the expression " + short(c.expression.Source()) + " matched" +
			c.operands(expr.Names{"event": event.names(true)})
	}
	return verdict
}

// operands are the values of an expression.
func (c *Conditions) operands(scope expr.Scope) string {
	all := c.expression.Operands(scope)
	var shown []string
	for _, o := range all[:min(len(all), maxOperands)] {
		shown = append(shown, o.Name+" is "+show(o.Value))
	}
	if len(shown) == 0 {
		return ""
	}
	return ": " + strings.Join(shown, ", ")
}

// maxReasons bounds the reasons if no condition holds.
const maxReasons = 5

// compare evaluates the list. The reason of a failure is the first failing condition, or for Any
// all of them.
func (c *Conditions) compare(event Event) Verdict {
	var failed []string
	for _, one := range c.list {
		holds, why := one.holds(event.Payload)
		switch {
		case holds && c.mode == Any:
			return Verdict{Matched: true, Why: why}
		case !holds && c.mode == All:
			return Verdict{Why: why}
		case !holds:
			failed = append(failed, why)
		}
	}
	if c.mode == Any {
		more := ""
		if left := len(failed) - maxReasons; left > 0 {
			failed, more = failed[:maxReasons], fmt.Sprintf("; and %d more", left)
		}
		return Verdict{Why: "none of the conditions holds: " + strings.Join(failed, "; ") + more}
	}
	if len(c.list) == 1 {
		return Verdict{Matched: true, Why: "the condition holds"}
	}
	return Verdict{Matched: true, Why: fmt.Sprintf("all %d conditions hold", len(c.list))}
}

func (c condition) holds(payload any) (holds bool, why string) {
	value, ok := find(payload, c.field)
	if !ok {
		return false, fmt.Sprintf("the payload has no field %s", c.field)
	}
	switch c.operator {
	case OperatorEquals:
		if expr.Equal(value, c.value) {
			return true, fmt.Sprintf("%s is %s", c.field, show(value))
		}
		return false, fmt.Sprintf("%s is %s, not %s", c.field, show(value), show(c.value))
	case OperatorNotEquals:
		if expr.Equal(value, c.value) {
			return false, fmt.Sprintf("%s is %s", c.field, show(value))
		}
		return true, fmt.Sprintf("%s is %s, not %s", c.field, show(value), show(c.value))
	}
	text, isText := value.(string)
	part, partIsText := c.value.(string)
	switch {
	case !isText:
		return false, fmt.Sprintf("%s is %s, and only a text contains another", c.field, show(value))
	case !partIsText:
		return false, fmt.Sprintf("%s is not a text, and only a text is contained in another", show(c.value))
	case strings.Contains(text, part):
		return true, fmt.Sprintf("%s contains %s", c.field, show(part))
	}
	return false, fmt.Sprintf("%s is %s and does not contain %s", c.field, show(value), show(part))
}

// find follows keys from the root of the payload. Lists have no keys.
func find(payload any, field string) (any, bool) {
	value := payload
	for key := range strings.SplitSeq(field, ".") {
		object, ok := value.(map[string]any)
		if !ok {
			return nil, false
		}
		if value, ok = object[key]; !ok {
			return nil, false
		}
	}
	return value, true
}
