package placement

import (
	"fmt"
	"slices"
	"strings"
)

// unmet is the first hard rule of the need that the worker breaks, whatever its standing and load.
// It is false if there is none.
func (n Need) unmet(w *Worker) (rejection, bool) {
	if r, ok := n.rules.unmet(w); ok {
		return r, true
	}
	if n.Fence && !w.AttemptFence {
		return rejection{"does", "do", "not refuse dispatches of older attempts"}, true
	}
	return rejection{}, false
}

func (r *rules) unmet(w *Worker) (rejection, bool) {
	if r == nil {
		return untolerated(w, nil)
	}
	if !r.runtime(w) {
		return lacks("runtime " + join(strings.Join(r.runtimes, " or "), r.version)), true
	}
	for _, need := range r.required {
		if !need.met(w) {
			return lacks("the required runtime " + join(need.name, need.version)), true
		}
	}
	if missing := r.missing(w); len(missing) == 1 {
		return lacks("the label " + missing[0]), true
	} else if len(missing) > 1 {
		return lacks("the labels " + strings.Join(missing, ", ")), true
	}
	if why, ok := untolerated(w, r.tolerations); ok {
		return why, true
	}
	switch {
	case len(r.affinity.required) > 0 && !anyTerm(r.affinity.required, w):
		return rejection{"matches", "match", "none of the required affinity terms"}, true
	case anyTerm(r.affinity.anti, w):
		return rejection{"matches", "match", "an anti-affinity term"}, true
	default:
		return rejection{}, false
	}
}

// runtime reports whether the worker has the action's runtime under any of its names, in an allowed
// version.
func (r *rules) runtime(w *Worker) bool {
	if len(r.runtimes) == 0 {
		return true
	}
	has := false
	for _, name := range r.runtimes {
		has = has || slices.Contains(w.Runtimes, name)
	}
	if !has || r.version.Any() {
		return has
	}
	for _, name := range r.runtimes {
		if slices.ContainsFunc(w.Versions[name], r.version.Admits) {
			return true
		}
	}
	return false
}

func join(name string, version Constraint) string {
	if version.Any() {
		return name
	}
	return name + " " + version.String()
}

func (n runtimeNeed) met(w *Worker) bool {
	if !slices.Contains(w.Runtimes, n.name) {
		return false
	}
	return n.version.Any() || slices.ContainsFunc(w.Versions[n.name], n.version.Admits)
}

func (l label) on(w *Worker) bool {
	value, ok := w.Labels[l.key]
	return ok && value == l.value
}

// missing names the labels of the selector that the worker lacks.
func (r *rules) missing(w *Worker) (list []string) {
	for _, l := range r.selector {
		if !l.on(w) {
			list = append(list, l.key+"="+l.value)
		}
	}
	return list
}

// untolerated is the first hard taint without a toleration.
func untolerated(w *Worker, tolerations []toleration) (rejection, bool) {
	for _, t := range w.Taints {
		if t.Effect != PreferNoSchedule && !t.tolerated(tolerations) {
			return rejection{"has", "have", "the taint " + t.String() + " that is not tolerated"}, true
		}
	}
	return rejection{}, false
}

func (t Taint) tolerated(by []toleration) bool {
	return slices.ContainsFunc(by, func(one toleration) bool {
		return one.key == t.Key && (one.effect == "" || one.effect == t.Effect) && (one.exists || one.value == t.Value)
	})
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

// weight is the sum of the preferences that the worker matches.
func (n Need) weight(w *Worker) int {
	if n.rules == nil {
		return 0
	}
	sum := 0
	for _, p := range n.rules.affinity.preferred {
		if p.term.matches(w) {
			sum += p.weight
		}
	}
	return sum
}

// shunned reports whether a soft taint without a toleration prefers other workers.
func (n Need) shunned(w *Worker) bool {
	var tolerations []toleration
	if n.rules != nil {
		tolerations = n.rules.tolerations
	}
	return slices.ContainsFunc(w.Taints, func(t Taint) bool {
		return t.Effect == PreferNoSchedule && !t.tolerated(tolerations)
	})
}

// rejection is a broken rule, as a sentence about one or several workers.
type rejection struct{ one, several, rest string }

func lacks(what string) rejection { return rejection{"lacks", "lack", what} }

func (r rejection) String() string { return r.one + " " + r.rest }

// about is the sentence about n workers.
func (r rejection) about(n int, what string) string {
	verb := r.several
	if n == 1 {
		verb = r.one
		what = strings.TrimSuffix(what, "s")
	}
	if what != "" {
		what += " "
	}
	return fmt.Sprintf("%d %s%s %s", n, what, verb, r.rest)
}
