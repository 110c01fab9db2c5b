package expr

import (
	"encoding/json"
	"math"
	"strings"
)

func (ev *evaluation) unary(n node) (any, error) {
	operand, err := ev.lazy(n.parts[0])
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
	case json.Number:
		text, negative := strings.CutPrefix(v.String(), "-")
		if !negative {
			text = "-" + text
		}
		return given(json.Number(text)), nil
	default:
		return nil, ev.fail(n, "%s cannot be negative", a(operand))
	}
}

func (ev *evaluation) binary(n node) (any, error) {
	if n.text == "and" || n.text == "or" {
		return ev.either(n)
	}
	left, err := ev.value(n.parts[0])
	if err != nil {
		return nil, err
	}
	if n.text == "in" {
		right, err := ev.lazy(n.parts[1])
		if err != nil {
			return nil, err
		}
		return ev.within(n, left, right)
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
	case "+":
		return ev.add(n, left, right)
	default:
		return ev.arithmetic(n, left, right)
	}
}

// either evaluates and and or, whose right side may not matter.
func (ev *evaluation) either(n node) (any, error) {
	left, err := ev.lazy(n.parts[0])
	if err != nil {
		return nil, err
	}
	if Truthy(left) == (n.text == "or") {
		return n.text == "or", nil
	}
	right, err := ev.lazy(n.parts[1])
	if err != nil {
		return nil, err
	}
	return Truthy(right), nil
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
	l, err := ev.operand(n, left)
	if err != nil {
		return nil, err
	}
	r, err := ev.operand(n, right)
	if err != nil {
		return nil, err
	}
	return ev.floats(n, l, r)
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
