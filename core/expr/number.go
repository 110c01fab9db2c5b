package expr

import (
	"cmp"
	"encoding/json"
	"math"
	"strconv"
	"strings"
)

// given is a number of JSON: an int64 if it is one, else with its digits.
func given(n json.Number) any {
	if whole, err := strconv.ParseInt(n.String(), 10, 64); err == nil {
		return whole
	}
	return n
}

// Float is a number for arithmetic. It is infinite if it is too large.
func Float(v any) float64 {
	switch v := v.(type) {
	case int64:
		return float64(v)
	case float64:
		return v
	case json.Number:
		f, _ := v.Float64() // too large is infinite
		return f
	}
	return 0
}

// operand refuses a given number that arithmetic cannot represent.
func (ev *evaluation) operand(n node, v any) (float64, error) {
	f, number := Float(v), ""
	if given, ok := v.(json.Number); ok {
		number = given.String()
	}
	switch {
	case math.IsInf(f, 0):
		return 0, ev.fail(n, "the number is too large")
	case number != "" && !strings.ContainsAny(number, ".eE"):
		return 0, ev.fail(n, "the number has more than 64 bits")
	}
	return f, nil
}

// decimal is the number 0.DIGITS × 10^point. Zero has no digits; otherwise the first and the last one are not 0.
type decimal struct {
	negative bool
	digits   string
	point    int
}

func decimalOf(v any) decimal {
	text := ""
	switch v := v.(type) {
	case int64:
		text = strconv.FormatInt(v, 10)
	case float64:
		if math.IsInf(v, 0) { // beyond every given number
			return decimal{negative: v < 0, digits: "1", point: math.MaxInt}
		}
		text = strconv.FormatFloat(v, 'e', -1, 64)
	case json.Number:
		text = v.String()
	}
	var d decimal
	text, d.negative = strings.CutPrefix(text, "-")
	exponent := 0
	if at := strings.IndexAny(text, "eE"); at >= 0 {
		exponent, _ = strconv.Atoi(text[at+1:]) // too large is the largest int
		exponent = min(max(exponent, math.MinInt32), math.MaxInt32)
		text = text[:at]
	}
	whole, fraction, _ := strings.Cut(text, ".")
	d.digits = strings.TrimLeft(whole+fraction, "0")
	d.point = exponent + len(d.digits) - len(fraction)
	if d.digits = strings.TrimRight(d.digits, "0"); d.digits == "" {
		return decimal{}
	}
	return d
}

// order compares the sizes of numbers of one sign.
func (d decimal) order(other decimal) int {
	if d.digits == "" || other.digits == "" {
		return cmp.Compare(len(d.digits), len(other.digits))
	}
	return cmp.Or(cmp.Compare(d.point, other.point), strings.Compare(d.digits, other.digits))
}

// IsWhole reports whether a value is a whole number, also one like 3.0 or one of more than 64 bits.
func IsWhole(v any) bool {
	switch v := v.(type) {
	case int64:
		return true
	case float64:
		return v == math.Trunc(v)
	case json.Number:
		d := decimalOf(v)
		return d.point >= len(d.digits)
	}
	return false
}

// CompareNumbers orders two numbers, a given one with all its digits; false if one is no number or NaN.
func CompareNumbers(a, b any) (int, bool) {
	if kindOf(a) != "number" || kindOf(b) != "number" || math.IsNaN(Float(a)) || math.IsNaN(Float(b)) {
		return 0, false
	}
	_, aGiven := a.(json.Number)
	_, bGiven := b.(json.Number)
	if aGiven || bGiven {
		return compareDecimals(decimalOf(a), decimalOf(b)), true
	}
	switch x := a.(type) {
	case int64:
		if y, ok := b.(int64); ok {
			return cmp.Compare(x, y), true
		}
		return -compareIntFloat(Float(b), x), true
	default:
		if y, ok := b.(int64); ok {
			return compareIntFloat(Float(a), y), true
		}
		return cmp.Compare(Float(a), Float(b)), true
	}
}

func compareDecimals(a, b decimal) int {
	switch {
	case a.negative && b.negative:
		return b.order(a)
	case a.negative:
		return -1
	case b.negative:
		return 1
	}
	return a.order(b)
}

// compareIntFloat orders f and n without converting n to a float, which loses digits.
func compareIntFloat(f float64, n int64) int {
	switch {
	case f >= math.MaxInt64:
		return 1
	case f < math.MinInt64:
		return -1
	}
	whole := math.Floor(f)
	if order := cmp.Compare(int64(whole), n); order != 0 {
		return order
	}
	return cmp.Compare(f, whole)
}

// parts splits a given number without an exponent into its whole part and its fraction.
func parts(n json.Number) (whole int64, fraction float64, ok bool) {
	before, after, _ := strings.Cut(n.String(), ".")
	whole, err := strconv.ParseInt(before, 10, 64)
	if err != nil || strings.ContainsAny(after, "eE") {
		return 0, 0, false
	}
	sign := "0."
	if strings.HasPrefix(before, "-") {
		sign = "-0."
	}
	fraction, err = strconv.ParseFloat(sign+after+"0", 64)
	return whole, fraction, err == nil
}
