package policy

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/attune-go/attune/core/jsonvalue"
	"github.com/attune-go/attune/core/schema"
)

// A key is part of unique indexes, which hold about 2,700 bytes of it. A longer key contains
// digests instead of values longer than a digest.
const (
	maxKey    = 2000
	maxDigest = len(`"sha256:"`) + 2*sha256.Size
)

// GroupKey forms the group key of an execution: the compact JSON object of path and value with its
// keys sorted bytewise. A path is split on dots and follows objects only; a missing value is null.
// Without paths there is no group and the second result is false. Numbers are compared by value: 1,
// 1.0 and 1e0 are one group. In a key of more than 2,000 bytes the text "sha256:…" replaces long
// values.
//
// params are the execution's parameters with the action's defaults (see WithDefaults).
func GroupKey(paths []string, params map[string]any) (string, bool) {
	if len(paths) == 0 {
		return "", false
	}
	sorted := slices.Clone(paths)
	slices.Sort(sorted)
	sorted = slices.Compact(sorted)
	key := groupKey(sorted, params, func(value []byte) []byte { return value })
	if len(key) > maxKey {
		key = groupKey(sorted, params, digest)
	}
	return key, true
}

func groupKey(paths []string, params map[string]any, shown func([]byte) []byte) string {
	var b strings.Builder
	b.WriteByte('{')
	for i, path := range paths {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(compact(path))
		b.WriteByte(':')
		b.Write(shown(compact(plain(Lookup(params, path)))))
	}
	b.WriteByte('}')
	return b.String()
}

// plain gives every number its canonical form: whole numbers without a fraction, others in the
// shortest exact form. A number that no float can hold stays unchanged.
func plain(value any) any {
	return jsonvalue.Map(value, func(leaf any) any {
		if n, ok := leaf.(json.Number); ok {
			return number(n)
		}
		return leaf
	})
}

// exact is the limit up to which a float holds every whole number.
const exact = 1 << 53

func number(n json.Number) json.Number {
	if !strings.ContainsAny(n.String(), ".eE") {
		return n // however large
	}
	f, err := n.Float64()
	if err != nil {
		return n
	}
	if f == math.Trunc(f) && math.Abs(f) < exact {
		return json.Number(strconv.FormatInt(int64(f), 10))
	}
	return json.Number(strconv.FormatFloat(f, 'g', -1, 64))
}

func digest(value []byte) []byte {
	if len(value) <= maxDigest {
		return value
	}
	return fmt.Appendf(nil, `"sha256:%x"`, sha256.Sum256(value))
}

// WithDefaults returns the parameters with the defaults of a parameter schema, of either form, for
// missing and null keys. Parameters or a schema that are not an object count as empty. Numbers keep
// their digits.
func WithDefaults(params, paramSchema []byte) map[string]any {
	out := object(params)
	for name, raw := range schema.RawDefaults(paramSchema) {
		if out[name] != nil {
			continue
		}
		var value any
		if jsonvalue.Decode(raw, &value) == nil {
			out[name] = value
		}
	}
	return out
}

func object(raw []byte) map[string]any {
	out := map[string]any{}
	// Exact, since 10000000000000001 must not become another group.
	if err := jsonvalue.Decode(raw, &out); err != nil || out == nil {
		return map[string]any{}
	}
	return out
}

// Lookup is the value at a path of the parameters: it is split on dots and follows objects only;
// nil if it is missing.
func Lookup(params map[string]any, path string) any {
	var value any = params
	for key := range strings.SplitSeq(path, ".") {
		fields, ok := value.(map[string]any)
		if !ok {
			return nil
		}
		value = fields[key]
	}
	return value
}

func compact(value any) []byte {
	raw, err := jsonvalue.Encode(value)
	if err != nil {
		return []byte("null") // cannot happen for decoded JSON
	}
	return raw
}
