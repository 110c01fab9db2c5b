package rule

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/attune-go/attune/core/expr"
)

var keys = []string{"field", "operator", "value"}

// Check returns all mistakes in new conditions. It is stricter than ParseConditions, which must
// accept stored rules: a condition must name its value. Warnings are about parts without effect.
func Check(rule string, raw []byte) (mistakes, warnings []*Error) {
	c, mistakes := read(rule, raw)
	value, err := expr.FromJSON(raw)
	if c == nil || err != nil {
		return mistakes, nil
	}
	part, list := "conditions", value
	if object, ok := value.(map[string]any); ok {
		if _, counts := object["expression"].(string); counts {
			return mistakes, c.unknown("conditions", object, []string{"expression"})
		}
		part, list = part+"."+c.mode, object[c.mode]
	}
	items, _ := list.([]any)
	for i, item := range items {
		if object, ok := item.(map[string]any); ok {
			at := fmt.Sprintf("%s[%d]", part, i)
			mistakes = append(mistakes, c.noValue(at, object)...)
			warnings = append(warnings, c.unknown(at, object, keys)...)
			warnings = append(warnings, c.never(at, object)...)
		}
	}
	return mistakes, warnings
}

func (c *Conditions) noValue(at string, object map[string]any) []*Error {
	operator, _ := object["operator"].(string)
	if _, given := object["value"]; given || !slices.Contains(Operators(), operator) {
		return nil
	}
	return c.wrong(at+".value", fmt.Errorf("the operator %s needs a value; write value: null to mean null", operator))
}

// never warns about values that contains cannot find.
func (c *Conditions) never(at string, object map[string]any) []*Error {
	value, given := object["value"]
	if _, isText := value.(string); isText || !given || object["operator"] != OperatorContains {
		return nil
	}
	return c.wrong(at+".value",
		fmt.Errorf("%s is not a text, and only a text is contained in another: it never holds", show(value)))
}

// unknown warns of keys that have no effect.
func (c *Conditions) unknown(at string, object map[string]any, known []string) []*Error {
	var warnings []*Error
	for _, key := range slices.Sorted(maps.Keys(object)) {
		if !slices.Contains(known, key) {
			warnings = append(warnings,
				c.error(at+"."+key, errors.New("it has no effect; known here is "+strings.Join(known, ", "))))
		}
	}
	return warnings
}
