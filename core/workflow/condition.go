package workflow

import (
	"errors"
	"slices"
	"strings"

	"github.com/attune-go/attune/core/expr"
	"github.com/attune-go/attune/core/yamldoc"
)

// Condition is an expression with a truth value, written plainly or as one template.
type Condition struct {
	source     string
	inner      string // without the braces
	expression *expr.Expression
	broken     error  // of an unreadable expression
	text       *Value // the source as a text with templates; nil without braces
}

// NewCondition reads a condition. The error is an *expr.Error with the position in the source, if there is a position.
// The condition that comes with an error returns it at every evaluation.
func NewCondition(source string) (*Condition, error) {
	inner, from := source, 0
	trimmed := strings.TrimSpace(source)
	if strings.HasPrefix(trimmed, "{{") && strings.HasSuffix(trimmed, "}}") && len(trimmed) >= 4 {
		from = strings.Index(source, "{{") + 2
		inner = source[from:strings.LastIndex(source, "}}")]
	}
	c := &Condition{source: source, inner: strings.TrimSpace(inner)}
	if strings.Contains(unquoted(source), "{{") {
		var err error
		if c.text, err = NewValue(source); err != nil {
			c.broken = err
			return c, err
		}
	}
	if strings.Contains(unquoted(inner), "{{") {
		c.broken = &expr.Error{
			Source: source, Offset: 0,
			Text: "a condition is one expression, alone or as {{ expression }}",
		}
		return c, c.broken
	}
	expression, err := expr.Parse(inner)
	if e := (*expr.Error)(nil); errors.As(err, &e) {
		err = &expr.Error{Source: source, Offset: from + e.Offset, Text: e.Text}
	}
	c.expression, c.broken = expression, err
	return c, err
}

// Source is the condition as in the file.
func (c *Condition) Source() string { return c.source }

// Expression is the expression without braces and surrounding blanks.
func (c *Condition) Expression() string { return c.inner }

// holdsWithin reports whether the condition is true, within one budget.
func (c *Condition) holdsWithin(scope expr.Scope, all *expr.Budget) (bool, error) {
	if c.broken != nil {
		return false, c.broken
	}
	value, err := c.expression.EvalWithin(scope, all)
	if err != nil {
		return false, err
	}
	return expr.Truthy(value), nil
}

// maxOperands bounds the values of a false condition in the log.
const maxOperands = 6

// unshown are names whose values may be secret.
var unshown = []string{"keystore", "config"}

// operands are the values of a false condition, for the log. Secrets are hidden: their markers, and values of the
// keystore and the configuration.
func (c *Condition) operands(scope expr.Scope) string {
	var shown []string
	for _, o := range c.expression.Operands(scope) {
		root, _, _ := strings.Cut(o.Name, ".")
		text := expr.JSON(o.Value)
		if slices.Contains(unshown, root) || strings.Contains(text, expr.Secret) {
			text = "(secret)"
		}
		if shown = append(shown, o.Name+" is "+yamldoc.Shorten(text)); len(shown) == maxOperands {
			break
		}
	}
	if len(shown) == 0 {
		return ""
	}
	return ": " + strings.Join(shown, ", ")
}

// conditionKind is the call that decides about a transition whose condition has an error.
type conditionKind string

const (
	kindSucceeded conditionKind = "succeeded()"
	kindFailed    conditionKind = "failed()"
	kindTimedOut  conditionKind = "timed_out()"
	kindCustom    conditionKind = "" // no call: the condition is evaluated
)

// kind is the first of these calls that the text has anywhere.
func (c *Condition) kind() conditionKind {
	text := strings.ReplaceAll(strings.ToLower(c.source), " ", "")
	for _, kind := range []conditionKind{kindSucceeded, kindFailed, kindTimedOut} {
		if strings.Contains(text, string(kind)) {
			return kind
		}
	}
	return kindCustom
}

// holdsFor reports whether the call is true for a task with the status.
func (k conditionKind) holdsFor(status TaskStatus) bool {
	switch k {
	case kindSucceeded:
		return status == TaskCompleted || status == TaskSkipped
	case kindFailed:
		return status == TaskFailed || status == TaskCancelled
	case kindTimedOut:
		return status == TaskTimeout
	default:
		return false
	}
}

// truthOf is the truth value of the rendered text of a condition.
func truthOf(text string) bool {
	return !slices.Contains([]string{"", "false", "0", "no"}, strings.ToLower(strings.TrimSpace(text)))
}

// unquoted replaces the strings of an expression by blanks.
func unquoted(s string) string {
	out := []byte(s)
	quote := byte(0)
	for i := 0; i < len(out); i++ {
		c := out[i]
		switch {
		case quote == 0 && (c == '"' || c == '\''):
			quote = c
		case quote != 0 && c == '\\' && i+1 < len(out):
			out[i], out[i+1] = ' ', ' '
			i++
			continue
		case c == quote:
			quote = 0
		case quote == 0:
			continue
		}
		out[i] = ' '
	}
	return string(out)
}
