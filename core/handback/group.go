package handback

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/attune-go/attune/core/jsonvalue"
	"github.com/attune-go/attune/core/policy"
)

// maxKey is longer than any group key that fits the unique index of the admission states.
const maxKey = 2500

// groupKey returns the group key in the other executor's form: compact JSON of path and value, keys sorted
// bytewise, numbers by their text. It is empty without paths. fallback replaces a key that is too long.
func groupKey(paths []string, params map[string]any, fallback string) string {
	if len(paths) == 0 {
		return ""
	}
	var values []string
	for _, path := range slices.Compact(slices.Sorted(slices.Values(paths))) {
		values = append(values, compact(path)+":"+compact(written(policy.Lookup(params, path))))
	}
	key := "{" + strings.Join(values, ",") + "}"
	if len(key) > maxKey {
		return fallback
	}
	return key
}

func compact(value any) string {
	text, err := jsonvalue.Encode(value)
	if err != nil {
		return "null" // impossible for decoded JSON
	}
	return string(text)
}

// written gives numbers the other executor's text.
func written(value any) any {
	return jsonvalue.Map(value, func(leaf any) any {
		if n, ok := leaf.(json.Number); ok {
			return number(n.String())
		}
		return leaf
	})
}

// number keeps whole numbers of 64 bits and writes all others as the shortest exact decimal, with a
// fraction or an exponent.
func number(text string) json.Number {
	if _, err := strconv.ParseInt(text, 10, 64); err == nil {
		return json.Number(text)
	}
	if _, err := strconv.ParseUint(text, 10, 64); err == nil {
		return json.Number(text)
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return json.Number(text)
	}
	mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(f, 'e', -1, 64), "e")
	power, err := strconv.Atoi(exponent)
	if err != nil || power < -5 || power > 15 {
		return json.Number(mantissa + "e" + strconv.Itoa(power))
	}
	plain := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(plain, ".") {
		plain += ".0"
	}
	return json.Number(plain)
}
