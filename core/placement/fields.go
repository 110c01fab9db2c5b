package placement

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// runtimeNeed is an additional runtime that a worker must have.
type runtimeNeed struct {
	name    string
	version Constraint
}

// label is a required label with its value.
type label struct{ key, value string }

// toleration allows an execution on workers with a taint.
type toleration struct {
	key    string
	exists bool // matches every value of the taint
	value  string
	effect Effect // empty: any
}

type affinity struct {
	required  []term // one of them must match, if there are any
	preferred []preference
	anti      []term // none may match
}

type preference struct {
	weight int
	term   term
}

// term matches a worker if all its parts match.
type term struct {
	labels      []label
	expressions []expression
}

type expression struct {
	key      string
	operator string
	values   []string
}

// The operators of an expression.
const (
	opIn           = "in"
	opNotIn        = "not_in" // a worker without the label matches
	opExists       = "exists"
	opDoesNotExist = "does_not_exist"
)

// fieldError adds the name of the field to an error.
func fieldError(field string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", field, err)
}

// decode reads a JSON field; an empty one or null leaves into unchanged.
func decode(raw []byte, into any, shape string) error {
	if raw = bytes.TrimSpace(raw); len(raw) == 0 {
		return nil
	}
	err := json.Unmarshal(raw, into)
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &syntax):
		return fmt.Errorf("it is not JSON: %w", err)
	case errors.As(err, &kind) && kind.Field != "":
		return fmt.Errorf("it must be %s: %s is %s", shape, kind.Field, article(kind.Value))
	case errors.As(err, &kind):
		return fmt.Errorf("it must be %s, not %s", shape, article(kind.Value))
	default:
		return fmt.Errorf("it must be %s: %w", shape, err)
	}
}

func article(kind string) string {
	if strings.HasPrefix(kind, "array") || strings.HasPrefix(kind, "object") {
		return "an " + kind
	}
	return "a " + kind
}

func parseRequired(raw []byte) ([]runtimeNeed, error) {
	var given map[string]string
	if err := decode(raw, &given, "an object of version constraints by runtime"); err != nil {
		return nil, err
	}
	var list []runtimeNeed
	for _, name := range slices.Sorted(maps.Keys(given)) {
		one := runtimeNeed{name: NormalizeRuntime(name)}
		if one.name == "" {
			return nil, errors.New("a runtime has no name")
		}
		var err error
		if one.version, err = ParseConstraint(given[name]); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		list = append(list, one)
	}
	return list, nil
}

func labels(given map[string]string) ([]label, error) {
	var list []label
	for _, key := range slices.Sorted(maps.Keys(given)) {
		if strings.TrimSpace(key) == "" {
			return nil, errors.New("a label has no name")
		}
		if strings.TrimSpace(given[key]) == "" {
			return nil, fmt.Errorf("the label %s has no value", key)
		}
		list = append(list, label{key, given[key]})
	}
	return list, nil
}

func parseTolerations(raw []byte) ([]toleration, error) {
	var given []struct {
		Key      string  `json:"key"`
		Operator *string `json:"operator"`
		Value    *string `json:"value"`
		Effect   *string `json:"effect"`
	}
	if err := decode(raw, &given, "a list of tolerations"); err != nil {
		return nil, err
	}
	list := make([]toleration, len(given))
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

// givenTerm is a term in its JSON form.
type givenTerm struct {
	MatchLabels      map[string]string `json:"match_labels"`
	MatchExpressions []struct {
		Key      string   `json:"key"`
		Operator string   `json:"operator"`
		Values   []string `json:"values"`
	} `json:"match_expressions"`
}

func parseAffinity(raw []byte) (affinity, error) {
	var given struct {
		Required  []givenTerm `json:"required"`
		Preferred []struct {
			Weight     *int      `json:"weight"`
			Preference givenTerm `json:"preference"`
		} `json:"preferred"`
		Anti []givenTerm `json:"anti_affinity"`
	}
	if err := decode(raw, &given, "an object of required, preferred and anti_affinity"); err != nil {
		return affinity{}, err
	}
	var a affinity
	var err error
	if a.required, err = terms("required", given.Required); err != nil {
		return affinity{}, err
	}
	if a.anti, err = terms("anti_affinity", given.Anti); err != nil {
		return affinity{}, err
	}
	for i, g := range given.Preferred {
		p := preference{weight: 1}
		if g.Weight != nil {
			p.weight = *g.Weight
		}
		if p.weight < 1 || p.weight > 100 {
			return affinity{}, fmt.Errorf("preferred %d has the weight %d, which is not between 1 and 100", i+1,
				p.weight)
		}
		if p.term, err = g.Preference.term(); err != nil {
			return affinity{}, fmt.Errorf("preferred %d: %w", i+1, err)
		}
		a.preferred = append(a.preferred, p)
	}
	return a, nil
}

func terms(name string, given []givenTerm) ([]term, error) {
	list := make([]term, len(given))
	for i, g := range given {
		var err error
		if list[i], err = g.term(); err != nil {
			return nil, fmt.Errorf("%s %d: %w", name, i+1, err)
		}
	}
	return list, nil
}

func (g givenTerm) term() (term, error) {
	var t term
	var err error
	if t.labels, err = labels(g.MatchLabels); err != nil {
		return term{}, err
	}
	for _, e := range g.MatchExpressions {
		if strings.TrimSpace(e.Key) == "" {
			return term{}, errors.New("an expression has no key")
		}
		switch e.Operator {
		case opIn, opNotIn:
			if len(e.Values) == 0 ||
				slices.ContainsFunc(e.Values, func(v string) bool { return strings.TrimSpace(v) == "" }) {
				return term{}, fmt.Errorf("the expression on %s needs values that are not empty", e.Key)
			}
		case opExists, opDoesNotExist:
			if len(e.Values) > 0 {
				return term{}, fmt.Errorf("the expression on %s takes no values with %s", e.Key, e.Operator)
			}
		default:
			return term{},
				fmt.Errorf(
					"the expression on %s has the operator %q, which is none of in, not_in, exists, does_not_exist",
					e.Key, e.Operator)
		}
		t.expressions = append(t.expressions, expression{e.Key, e.Operator, e.Values})
	}
	return t, nil
}
