package placement

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

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

// givenTerm is a term in its JSON form.
type givenTerm struct {
	MatchLabels      map[string]string `json:"match_labels"`
	MatchExpressions []struct {
		Key      string   `json:"key"`
		Operator string   `json:"operator"`
		Values   []string `json:"values"`
	} `json:"match_expressions"`
}

func affinityRule(s *Spec) (rule, error) {
	var given struct {
		Required  []givenTerm `json:"required"`
		Preferred []struct {
			Weight     *int      `json:"weight"`
			Preference givenTerm `json:"preference"`
		} `json:"preferred"`
		Anti []givenTerm `json:"anti_affinity"`
	}
	if err := decode(s.Affinity, &given, "an object of required, preferred and anti_affinity"); err != nil {
		return nil, err
	}
	var a affinity
	var err error
	if a.required, err = terms("required", given.Required); err != nil {
		return nil, err
	}
	if a.anti, err = terms("anti_affinity", given.Anti); err != nil {
		return nil, err
	}
	for i, g := range given.Preferred {
		p := preference{weight: 1}
		if g.Weight != nil {
			p.weight = *g.Weight
		}
		if p.weight < 1 || p.weight > 100 {
			return nil, fmt.Errorf("preferred %d has the weight %d, which is not between 1 and 100", i+1,
				p.weight)
		}
		if p.term, err = g.Preference.term(); err != nil {
			return nil, fmt.Errorf("preferred %d: %w", i+1, err)
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
func (a affinity) unmet(w *Worker) (rejection, bool) {
	switch {
	case len(a.required) > 0 && !anyTerm(a.required, w):
		return rejection{"matches", "match", "none of the required affinity terms"}, true
	case anyTerm(a.anti, w):
		return rejection{"matches", "match", "an anti-affinity term"}, true
	default:
		return rejection{}, false
	}
}

func anyTerm(terms []term, w *Worker) bool {
	return slices.ContainsFunc(terms, func(t term) bool { return t.matches(w) })
}

func (t term) matches(w *Worker) bool {
	return !slices.ContainsFunc(t.labels, func(l label) bool { return !l.on(w) }) &&
		!slices.ContainsFunc(t.expressions, func(e expression) bool { return !e.matches(w) })
}

func (e expression) matches(w *Worker) bool {
	value, has := w.Labels[e.key]
	switch e.operator {
	case opIn:
		return has && slices.Contains(e.values, value)
	case opNotIn:
		return !has || !slices.Contains(e.values, value)
	case opExists:
		return has
	default:
		return !has
	}
}
