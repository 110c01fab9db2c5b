package placement

import (
	"fmt"
	"slices"
	"strings"
)

// unmet is the first hard rule of the need that the worker breaks, whatever its standing and load.
// It is false if there is none.
func (n Need) unmet(w *Worker) (rejection, bool) {
	if n.rules == nil {
		if why, broken := (tolerations{}).unmet(w); broken {
			return why, true
		}
	} else {
		for _, rule := range n.rules.list {
			if rule == nil { // its field is invalid
				continue
			}
			if why, broken := rule.unmet(w); broken {
				return why, true
			}
		}
	}
	return rejection{"does", "do", "not refuse dispatches of older attempts"}, n.Fence && !w.AttemptFence
}

// preference returns the sum of the preferences that the worker matches, and whether a soft taint without a toleration
// prefers other workers.
func (n Need) preference(w *Worker) (weight int, shunned bool) {
	var tolerated tolerations
	if n.rules != nil {
		for _, rule := range n.rules.list {
			switch rule := rule.(type) {
			case tolerations:
				tolerated = rule
			case affinity:
				for _, p := range rule.preferred {
					if p.term.matches(w) {
						weight += p.weight
					}
				}
			}
		}
	}
	return weight, slices.ContainsFunc(w.Taints, func(t Taint) bool {
		return t.Effect == PreferNoSchedule && !tolerated.cover(t)
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
