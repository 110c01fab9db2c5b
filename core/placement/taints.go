package placement

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Effect is the effect of a taint on executions that do not tolerate it.
type Effect string

// The effects.
const (
	NoSchedule       Effect = "no_schedule"        // they are not placed there
	PreferNoSchedule Effect = "prefer_no_schedule" // they are placed elsewhere if there is room
)

// Taint keeps executions away from a worker.
type Taint struct {
	Key    string
	Value  string // empty without one
	Effect Effect
}

// String writes a taint as key=value:effect.
func (t Taint) String() string {
	text := t.Key
	if t.Value != "" {
		text += "=" + t.Value
	}
	return text + ":" + string(t.Effect)
}

// unreadable replaces taints that cannot be read: to exclude the worker is the safe choice.
const unreadable = "(unreadable)"

func taints(raw json.RawMessage) []Taint {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	var rows []json.RawMessage
	if !read(raw, &rows) {
		return []Taint{{Key: unreadable, Effect: NoSchedule}}
	}
	list := make([]Taint, len(rows))
	for i, row := range rows {
		var one struct {
			Key    string          `json:"key"`
			Value  json.RawMessage `json:"value"`
			Effect Effect          `json:"effect"`
		}
		if !read(row, &one) || strings.TrimSpace(one.Key) == "" {
			list[i] = Taint{Key: unreadable, Effect: NoSchedule}
			continue
		}
		list[i] = Taint{Key: one.Key, Effect: NoSchedule}
		list[i].Value, _ = scalar(one.Value)
		if one.Effect == PreferNoSchedule {
			list[i].Effect = PreferNoSchedule
		}
	}
	return list
}

type tolerations []toleration

// toleration allows an execution on workers with a taint.
type toleration struct {
	key    string
	exists bool // matches every value of the taint
	value  string
	effect Effect // empty: any
}

func tolerationsRule(s *Spec) (rule, error) {
	var given []struct {
		Key      string  `json:"key"`
		Operator *string `json:"operator"`
		Value    *string `json:"value"`
		Effect   *string `json:"effect"`
	}
	if err := decode(s.Tolerations, &given, "a list of tolerations"); err != nil {
		return nil, err
	}
	list := make(tolerations, len(given))
	for i, g := range given {
		t := toleration{key: g.Key}
		if strings.TrimSpace(g.Key) == "" {
			return nil, fmt.Errorf("toleration %d has no key", i+1)
		}
		switch orElse(g.Operator, "equal") {
		case "equal":
			if g.Value != nil && strings.TrimSpace(*g.Value) == "" {
				return nil, fmt.Errorf("the toleration of %s has an empty value", g.Key)
			}
			t.value = orElse(g.Value, "")
		case "exists":
			t.exists = true
		default:
			return nil, fmt.Errorf("the toleration of %s has the operator %q, which is neither equal nor exists", g.Key,
				*g.Operator)
		}
		t.effect = Effect(orElse(g.Effect, ""))
		if g.Effect != nil && t.effect != NoSchedule && t.effect != PreferNoSchedule {
			return nil,
				fmt.Errorf(
					"the toleration of %s has the effect %q, which is neither no_schedule nor prefer_no_schedule",
					g.Key, *g.Effect)
		}
		list[i] = t
	}
	return list, nil
}

func orElse(given *string, otherwise string) string {
	if given == nil {
		return otherwise
	}
	return *given
}

// unmet is about the first hard taint without a toleration.
func (t tolerations) unmet(w *Worker) (rejection, bool) {
	for _, taint := range w.Taints {
		if taint.Effect != PreferNoSchedule && !t.cover(taint) {
			return rejection{"has", "have", "the taint " + taint.String() + " that is not tolerated"}, true
		}
	}
	return rejection{}, false
}

func (t tolerations) cover(taint Taint) bool {
	return slices.ContainsFunc(t, func(one toleration) bool {
		return one.key == taint.Key && (one.effect == "" || one.effect == taint.Effect) &&
			(one.exists || one.value == taint.Value)
	})
}
