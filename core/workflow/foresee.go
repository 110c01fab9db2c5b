package workflow

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// mention matches task.NAME and task["NAME"].
var mention = regexp.MustCompile(`\btasks?\s*(?:\.\s*([A-Za-z_]\w*)|\[\s*(?:"([^"\\]+)"|'([^'\\]+)')\s*\])`)

// foresee adds the other missing results that a value mentions, so that one NeedError has all of them.
func (x *decision) foresee(need *NeedError, raw any) error {
	if len(need.Results) == 0 {
		return need
	}
	wanted := map[string]bool{}
	for _, name := range need.Results {
		wanted[name] = true
	}
	mentions(raw, func(name string) {
		if t := x.def.Task(name); t != nil {
			if _, _, err := x.result(t); err != nil {
				for _, missing := range needs(err).Results {
					wanted[missing] = true
				}
			}
		}
	})
	return &NeedError{Results: slices.Sorted(maps.Keys(wanted)), Items: need.Items, Children: need.Children}
}

func mentions(raw any, found func(task string)) {
	switch v := raw.(type) {
	case string:
		if !strings.Contains(v, "{{") {
			return
		}
		for _, m := range mention.FindAllStringSubmatch(v, -1) {
			found(m[1] + m[2] + m[3])
		}
	case []any:
		for _, item := range v {
			mentions(item, found)
		}
	case map[string]any:
		for _, item := range v {
			mentions(item, found)
		}
	}
}
