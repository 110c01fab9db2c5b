package expr

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
)

func toNumber(c call, v []any) (any, error) {
	switch value := v[0].(type) {
	case int64, float64, json.Number:
		return value, nil
	case bool:
		if value {
			return 1.0, nil
		}
		return 0.0, nil
	case string:
		text := strings.TrimSpace(value)
		f, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
			return nil, c.bad("the string is no number")
		}
		if exact := given(json.Number(text)); json.Valid([]byte(text)) && !Equal(exact, f) {
			return exact, nil // a float would round it
		}
		return f, nil
	default:
		return nil, c.bad("%s cannot be a number", a(value))
	}
}

func toInt(c call, v []any) (any, error) {
	if text, ok := v[0].(string); ok {
		if n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64); err == nil {
			return n, nil
		}
	}
	number, err := toNumber(c, v)
	if err != nil {
		return nil, err
	}
	if n, ok := number.(int64); ok {
		return n, nil
	}
	if n, ok := number.(json.Number); ok {
		if whole, _, ok := parts(n); ok {
			return whole, nil
		}
	}
	return c.truncated(math.Trunc(Float(number)))
}

func (c call) truncated(f float64) (any, error) {
	if f >= math.MaxInt64 || f < math.MinInt64 || math.IsNaN(f) {
		return nil, c.bad("the number has more than 64 bits")
	}
	return int64(f), nil
}

func abs(c call, v []any) (any, error) {
	switch n := v[0].(type) {
	case int64:
		if n == math.MinInt64 {
			return nil, c.bad("the number has more than 64 bits")
		}
		return max(n, -n), nil
	case float64:
		return math.Abs(n), nil
	case json.Number:
		return given(json.Number(strings.TrimPrefix(n.String(), "-"))), nil
	}
	return nil, c.number(v[0])
}

func rounded(by func(float64) float64) func(call, []any) (any, error) {
	return func(c call, v []any) (any, error) {
		switch n := v[0].(type) {
		case int64:
			return n, nil
		case json.Number:
			if whole, fraction, ok := parts(n); ok {
				return c.arithmetic(node{at: c.node.at, text: "+"}, whole, int64(by(fraction)))
			}
			return c.truncated(by(Float(n)))
		case float64:
			return c.truncated(by(n))
		}
		return nil, c.number(v[0])
	}
}

// extreme finds the least or the greatest argument, or item of a single list.
func extreme(sign int) func(call, []any) (any, error) {
	return func(c call, v []any) (any, error) {
		if list, ok := v[0].([]any); ok && len(v) == 1 {
			v = list
		}
		if len(v) == 0 {
			return nil, c.bad("the array is empty")
		}
		best := v[0]
		for _, item := range v {
			order, ok := compare(item, best)
			if !ok {
				return nil, c.bad("%s and %s have no order", a(item), a(best))
			}
			if order*sign > 0 {
				best = item
			}
		}
		return best, nil
	}
}

func sum(c call, v []any) (any, error) {
	list, err := c.array(v[0])
	if err != nil {
		return nil, err
	}
	var total any = int64(0)
	for _, item := range list {
		if err := c.number(item); err != nil {
			return nil, err
		}
		if total, err = c.arithmetic(node{at: c.node.at, text: "+"}, total, item); err != nil {
			return nil, err
		}
	}
	return total, nil
}
