package expr

import (
	"fmt"
	"math"
	"strings"
)

// Scope is what the names of an expression stand for.
type Scope interface {
	// Lookup returns the value of a name, and whether there is one. The value is
	// one that Value returns, and is not changed.
	Lookup(name string) (any, bool)
	// Call calls a function that is not built in; known is false if there is none.
	Call(name string, arguments []any) (value any, known bool, err error)
}

// Names is a Scope without functions.
type Names map[string]any

// Lookup implements Scope.
func (n Names) Lookup(name string) (any, bool) {
	value, ok := n[name]
	return value, ok
}

// Call implements Scope.
func (Names) Call(string, []any) (any, bool, error) { return nil, false, nil }

// Bounds of one evaluation.
const (
	maxSteps = 100_000
	maxSize  = 4 << 20 // of everything that is built, in bytes as JSON has them, roughly
)

// Eval evaluates the expression.
func (e *Expression) Eval(scope Scope) (any, error) {
	ev := evaluation{source: e.source, scope: scope}
	return ev.value(e.root)
}

// evaluation is one evaluation, with what it has cost so far.
type evaluation struct {
	source string
	scope  Scope
	steps  int
	size   int
}

func (ev *evaluation) fail(n node, format string, args ...any) error {
	return &Error{Source: ev.source, Offset: n.at, Text: fmt.Sprintf(format, args...)}
}

// spend counts steps, so that nothing takes for ever.
func (ev *evaluation) spend(n node, steps int) error {
	if ev.steps += steps; ev.steps > maxSteps {
		return ev.fail(n, "the evaluation takes more than %d steps", maxSteps)
	}
	return nil
}

// grow counts what is built, so that nothing takes all memory.
func (ev *evaluation) grow(n node, size int) error {
	if ev.size += size; size > maxSize || ev.size > maxSize {
		return ev.fail(n, "the evaluation builds more than %d bytes", maxSize)
	}
	return nil
}

func (ev *evaluation) value(n node) (any, error) {
	if err := ev.spend(n, 1); err != nil {
		return nil, err
	}
	switch n.kind {
	case nodeValue:
		return n.value, nil
	case nodeName:
		value, ok := ev.scope.Lookup(n.text)
		if !ok {
			return nil, ev.fail(n, "there is no %s", n.text)
		}
		return value, nil
	case nodeList:
		return ev.values(n)
	case nodeField:
		return ev.field(n)
	case nodeIndex:
		return ev.index(n)
	case nodeCall:
		return ev.call(n)
	case nodeUnary:
		return ev.unary(n)
	default:
		return ev.binary(n)
	}
}

func (ev *evaluation) values(n node) ([]any, error) {
	list := make([]any, len(n.parts))
	for i, part := range n.parts {
		var err error
		if list[i], err = ev.value(part); err != nil {
			return nil, err
		}
	}
	return list, ev.grow(n, 8*len(list))
}

func (ev *evaluation) field(n node) (any, error) {
	of, err := ev.value(n.parts[0])
	if err != nil {
		return nil, err
	}
	object, ok := of.(map[string]any)
	if !ok {
		return nil, ev.fail(n, "%s has no field %s", a(of), n.text)
	}
	value, ok := object[n.text]
	if !ok {
		return nil, ev.fail(n, "there is no field %s", n.text)
	}
	return value, nil
}

func (ev *evaluation) index(n node) (any, error) {
	of, err := ev.value(n.parts[0])
	if err != nil {
		return nil, err
	}
	index, err := ev.value(n.parts[1])
	if err != nil {
		return nil, err
	}
	switch of := of.(type) {
	case map[string]any:
		key, ok := index.(string)
		if !ok {
			return nil, ev.fail(n, "the key of an object is a string, not %s", a(index))
		}
		value, ok := of[key]
		if !ok {
			return nil, ev.fail(n, "there is no field %s", key)
		}
		return value, nil
	case []any:
		i, ok := whole(index)
		if !ok {
			return nil, ev.fail(n, "the index of a list is an integer, not %s", a(index))
		}
		if i < 0 {
			i += int64(len(of))
		}
		if i < 0 || i >= int64(len(of)) {
			return nil, ev.fail(n, "the index %s is beyond the %d items of the list", Text(index), len(of))
		}
		return of[i], nil
	case string:
		i, ok := whole(index)
		runes := []rune(of)
		if !ok {
			return nil, ev.fail(n, "the index of a string is an integer, not %s", a(index))
		}
		if i < 0 {
			i += int64(len(runes))
		}
		if i < 0 || i >= int64(len(runes)) {
			return nil, ev.fail(n, "the index %s is beyond the %d characters of the string", Text(index), len(runes))
		}
		return string(runes[i]), ev.spend(n, len(of)/100)
	default:
		return nil, ev.fail(n, "%s has no items", a(of))
	}
}

// whole is an integer, or a float that is one.
func whole(v any) (int64, bool) {
	switch v := v.(type) {
	case int64:
		return v, true
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<62 {
			return int64(v), true
		}
	}
	return 0, false
}

// a is a value in an error: its kind, not what it says, which may be secret.
func a(v any) string {
	switch kind := kindOf(v); kind {
	case "null":
		return kind
	case "array", "object":
		return "an " + kind
	default:
		return "a " + kind
	}
}

func (ev *evaluation) unary(n node) (any, error) {
	operand, err := ev.value(n.parts[0])
	if err != nil {
		return nil, err
	}
	if n.text == "not" {
		return !Truthy(operand), nil
	}
	switch v := operand.(type) {
	case int64:
		if v == math.MinInt64 {
			return nil, ev.fail(n, "the result has more than 64 bits")
		}
		return -v, nil
	case float64:
		return -v, nil
	default:
		return nil, ev.fail(n, "%s cannot be negative", a(operand))
	}
}

func (ev *evaluation) binary(n node) (any, error) {
	left, err := ev.value(n.parts[0])
	if err != nil {
		return nil, err
	}
	switch n.text {
	case "and", "or":
		if Truthy(left) == (n.text == "or") {
			return n.text == "or", nil
		}
		right, err := ev.value(n.parts[1])
		return Truthy(right), err
	}
	right, err := ev.value(n.parts[1])
	if err != nil {
		return nil, err
	}
	switch n.text {
	case "==", "!=":
		if err := ev.spend(n, weight(left)); err != nil {
			return nil, err
		}
		return Equal(left, right) == (n.text == "=="), nil
	case "<", ">", "<=", ">=":
		return ev.ordered(n, left, right)
	case "in":
		return ev.within(n, left, right)
	case "+":
		return ev.add(n, left, right)
	default:
		return ev.arithmetic(n, left, right)
	}
}

// weight is what going through a value costs.
func weight(v any) int {
	switch v := v.(type) {
	case string:
		return len(v) / 100
	case []any:
		total := len(v)
		for _, item := range v {
			total += weight(item)
		}
		return total
	case map[string]any:
		total := len(v)
		for _, item := range v {
			total += weight(item)
		}
		return total
	default:
		return 0
	}
}

func (ev *evaluation) ordered(n node, left, right any) (any, error) {
	if err := ev.spend(n, weight(left)); err != nil {
		return nil, err
	}
	order, ok := compare(left, right)
	if !ok {
		return nil, ev.fail(n, "%s and %s have no order", a(left), a(right))
	}
	switch n.text {
	case "<":
		return order < 0, nil
	case ">":
		return order > 0, nil
	case "<=":
		return order <= 0, nil
	default:
		return order >= 0, nil
	}
}

func (ev *evaluation) within(n node, needle, hay any) (bool, error) {
	if err := ev.spend(n, weight(hay)); err != nil {
		return false, err
	}
	switch hay := hay.(type) {
	case []any:
		for _, item := range hay {
			if Equal(item, needle) {
				return true, nil
			}
		}
		return false, nil
	case map[string]any:
		key, ok := needle.(string)
		if !ok {
			return false, ev.fail(n, "the key of an object is a string, not %s", a(needle))
		}
		_, ok = hay[key]
		return ok, nil
	case string:
		part, ok := needle.(string)
		if !ok {
			return false, ev.fail(n, "%s cannot be part of a string", a(needle))
		}
		return strings.Contains(hay, part), nil
	default:
		return false, ev.fail(n, "nothing can be in %s", a(hay))
	}
}

func (ev *evaluation) add(n node, left, right any) (any, error) {
	switch l := left.(type) {
	case string:
		if r, ok := right.(string); ok {
			if err := ev.grow(n, len(l)+len(r)); err != nil {
				return nil, err
			}
			return l + r, nil
		}
	case []any:
		if r, ok := right.([]any); ok {
			if err := ev.grow(n, 8*(len(l)+len(r))); err != nil {
				return nil, err
			}
			return append(append(make([]any, 0, len(l)+len(r)), l...), r...), nil
		}
	}
	return ev.arithmetic(n, left, right)
}

func (ev *evaluation) arithmetic(n node, left, right any) (any, error) {
	if kindOf(left) != "number" || kindOf(right) != "number" {
		return nil, ev.fail(n, "%s does not go between %s and %s", n.text, a(left), a(right))
	}
	x, xWhole := left.(int64)
	y, yWhole := right.(int64)
	if xWhole && yWhole {
		return ev.integers(n, x, y)
	}
	return ev.floats(n, float(left), float(right))
}

func float(v any) float64 {
	if n, ok := v.(int64); ok {
		return float64(n)
	}
	f, _ := v.(float64)
	return f
}

func (ev *evaluation) integers(n node, x, y int64) (any, error) {
	var result int64
	exact := true
	switch n.text {
	case "+":
		result = x + y
		exact = (result > x) == (y > 0)
	case "-":
		result = x - y
		exact = (result < x) == (y > 0)
	case "*":
		result = x * y
		exact = x == 0 || result/x == y && (x != -1 || y != math.MinInt64)
	default:
		if y == 0 {
			return nil, ev.fail(n, "division by zero")
		}
		if y == -1 { // the one division that overflows
			if n.text == "%" {
				return int64(0), nil
			}
			return ev.integers(node{at: n.at, text: "-"}, 0, x)
		}
		if n.text == "%" {
			return x % y, nil
		}
		if x%y != 0 {
			return float64(x) / float64(y), nil
		}
		result = x / y
	}
	if !exact {
		return nil, ev.fail(n, "the result has more than 64 bits")
	}
	return result, nil
}

func (ev *evaluation) floats(n node, x, y float64) (any, error) {
	var result float64
	switch n.text {
	case "+":
		result = x + y
	case "-":
		result = x - y
	case "*":
		result = x * y
	default:
		if y == 0 {
			return nil, ev.fail(n, "division by zero")
		}
		result = x / y
		if n.text == "%" {
			result = math.Mod(x, y)
		}
	}
	if math.IsInf(result, 0) || math.IsNaN(result) {
		return nil, ev.fail(n, "the result is too large")
	}
	return result, nil
}

// call calls a function: of the scope, if it has it, else one that is built in.
func (ev *evaluation) call(n node) (any, error) {
	arguments, err := ev.values(n)
	if err != nil {
		return nil, err
	}
	value, known, err := ev.scope.Call(n.text, arguments)
	if err != nil {
		return nil, ev.fail(n, "%s: %v", n.text, err)
	}
	if known {
		return value, nil
	}
	function, ok := builtins[n.text]
	if !ok {
		return nil, ev.fail(n, "there is no function %s", n.text)
	}
	if count := len(arguments); count < function.least || count > function.most {
		return nil, ev.fail(n, "%s takes %s, not %d", n.text, function.takes(), count)
	}
	for _, argument := range arguments {
		if err := ev.spend(n, weight(argument)); err != nil {
			return nil, err
		}
	}
	value, err = function.do(call{ev, n}, arguments)
	if err != nil {
		return nil, err
	}
	return value, nil
}
