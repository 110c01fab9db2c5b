package workflow

import (
	"errors"
	"slices"
	"strings"

	"github.com/attune-go/attune/core/expr"
	"github.com/attune-go/attune/core/yamldoc"
)

// Condition is an expression that is asked for its truth. It is written as an
// expression, or as a template that is nothing but one.
type Condition struct {
	source     string
	inner      string // without the braces
	expression *expr.Expression
	broken     error  // instead of the expression, if it cannot be read
	text       *Value // the source as a text with templates; nil without braces
}

var errMixed = errors.New("a condition is one expression, alone or as {{ expression }}")

// NewCondition reads a condition. The error is an *expr.Error, with the position in
// the source, wherever one can be given. The condition that is returned with it keeps
// the source, and gives the error whenever it is evaluated.
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
		c.broken = &expr.Error{Source: source, Offset: 0, Text: errMixed.Error()}
		return c, c.broken
	}
	expression, err := expr.Parse(inner)
	if e := (*expr.Error)(nil); errors.As(err, &e) {
		err = &expr.Error{Source: source, Offset: from + e.Offset, Text: e.Text}
	}
	c.expression, c.broken = expression, err
	return c, err
}

// Source is the condition as it was written.
func (c *Condition) Source() string { return c.source }

// Expression is the expression without braces and blanks around it.
func (c *Condition) Expression() string { return c.inner }

// Holds reports whether the condition is true.
func (c *Condition) Holds(scope expr.Scope) (bool, error) {
	return c.holdsWithin(scope, &expr.Budget{})
}

// holdsWithin counts what the expression costs.
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

// maxOperands bounds how many values are shown of a condition that is false.
const maxOperands = 6

// unshown are names whose values are not shown, as they may be secret.
var unshown = []string{"keystore", "config"}

// operands are the values behind a condition that is false, for the log. Secrets are
// not shown: neither their markers nor what comes from the keystore or the configuration.
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

// conditionKind is the call that decides about the condition of a transition.
type conditionKind string

// The kinds, in the order in which they are looked for.
const (
	kindSucceeded conditionKind = "succeeded()"
	kindFailed    conditionKind = "failed()"
	kindTimedOut  conditionKind = "timed_out()"
	kindCustom    conditionKind = "" // no call: the condition is evaluated
)

// kind is the first of the calls that the text mentions, wherever it stands.
func (c *Condition) kind() conditionKind {
	text := strings.ReplaceAll(strings.ToLower(c.source), " ", "")
	for _, kind := range []conditionKind{kindSucceeded, kindFailed, kindTimedOut} {
		if strings.Contains(text, string(kind)) {
			return kind
		}
	}
	return kindCustom
}

// holdsFor reports whether a task that has ended so is what a kind asks for.
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

// truthOf is the truth of a text that a condition was rendered to.
func truthOf(text string) bool {
	return !slices.Contains([]string{"", "false", "0", "no"}, strings.ToLower(strings.TrimSpace(text)))
}

// unquoted is an expression with blanks where its strings were.
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
