package pack

import "github.com/attune-go/attune/core/policy"

// rules checks what a policy must keep by itself. A value that could not be
// used has been reported already and is not judged again.
func (r *reader) rules(p *Policy, broken map[string]bool) {
	if !p.given("ref") {
		r.mistakef(p.Place, "the policy has no ref")
	}
	if !p.given("threshold") {
		r.mistakef(p.Place, "the policy%s has no threshold", of(p))
	}
	if broken["kind"] {
		return // nobody knows which keys belong to it
	}
	r.kindRules(p)
	r.adaptiveRules(p, broken)
}

// of names the policy where it has a ref.
func of(p *Policy) string {
	if p.Ref == "" {
		return ""
	}
	return " " + p.Ref
}

// kindRules checks the keys that belong to some kinds only.
func (r *reader) kindRules(p *Policy) {
	switch {
	case p.Kind == policy.KindConcurrency && p.given("window"):
		r.mistakef(p.At("window"), "window is for the kinds rate and quota; this policy is of kind concurrency")
	case p.Kind != policy.KindConcurrency && !p.given("window"):
		r.mistakef(p.Place, "the policy%s has no window, and one of kind %s needs it, for example window: 60s", of(p), p.Kind)
	}
	if p.Kind != policy.KindRate && p.given("burst") {
		r.mistakef(p.At("burst"), "burst is for the kind rate; this policy is of kind %s", p.Kind)
	}
}

// adaptiveRules checks the limit that follows how executions do: only the
// queues of one action have their own.
func (r *reader) adaptiveRules(p *Policy, broken map[string]bool) {
	var first string
	for _, key := range []string{"adaptive", "adaptive.min", "adaptive.latency", "adaptive.latency_ms"} {
		if p.given(key) {
			first = key
			break
		}
	}
	if first == "" || broken["adaptive"] {
		return
	}
	if p.Kind != policy.KindConcurrency || !p.given("action") {
		r.mistakef(p.At(first), "adaptive is for a concurrency policy of one action")
		return
	}
	if p.given("adaptive.latency") && p.given("adaptive.latency_ms") {
		r.mistakef(p.At("adaptive.latency"), "adaptive has latency and latency_ms: keep one")
	}
	if !p.given("adaptive.min") {
		p.AdaptiveMin = 1
	}
	if p.Threshold > 0 && p.AdaptiveMin > p.Threshold {
		r.mistakef(p.At("adaptive.min"), "adaptive.min is %d and above the threshold, %d", p.AdaptiveMin, p.Threshold)
	}
}

// Duplicates reports every ref that more than one policy has, at each place but
// the first.
func Duplicates(policies []Policy) []Mistake {
	var mistakes []Mistake
	first := map[string]Place{}
	for i := range policies {
		p := &policies[i]
		if p.Ref == "" {
			continue
		}
		at := p.At("ref")
		if earlier, ok := first[p.Ref]; ok {
			mistakes = append(mistakes, Mistake{at, "the policy " + p.Ref + " is given twice, also at " + earlier.String()})
			continue
		}
		first[p.Ref] = at
	}
	return mistakes
}
