package placement

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Limits of the names in a reason.
const (
	maxReasons = 4
	maxNames   = 3
)

// text is the standing of a worker as the end of a sentence.
func (w *Worker) text() string {
	switch {
	case w.Note == "":
		return w.Standing.text()
	case w.Standing == Suspect:
		return w.Standing.text() + " (" + w.Note + ")"
	case w.Standing == Unwell:
		return w.Standing.text() + ": " + w.Note
	default:
		return w.Standing.text() + " " + w.Note
	}
}

func (s Standing) text() string {
	switch s {
	case Live:
		return "is live"
	case Deaf:
		return "is cut off from the broker"
	case Occupied:
		return "reports that it is busy"
	case Suspect:
		return "is suspected"
	case Unwell:
		return "is unhealthy"
	case Silent:
		return "is silent"
	case Cordoned:
		return "is cordoned"
	case Draining:
		return "is draining"
	case Inactive:
		return "is inactive"
	default:
		return "cannot be used"
	}
}

func (w *Worker) label() string {
	return cmp.Or(w.Name, fmt.Sprintf("worker %d", w.ID))
}

// named describes the first few workers by name.
func named(list []*Worker) string {
	texts := make([]string, 0, maxNames+1)
	for _, w := range list[:min(len(list), maxNames)] {
		texts = append(texts, w.label()+" "+w.text())
	}
	if more := len(list) - maxNames; more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(texts, ", ")
}

// busy is the reason when all fitting workers are full.
func (fit *fitting) busy(s sieve, open int) string {
	if s.plain() {
		return fit.text(Busy, func() string { return fit.busyText(s, open) })
	}
	return fit.busyText(s, open)
}

func (fit *fitting) busyText(s sieve, open int) string {
	which := "fitting worker"
	if len(s.avoid) > 0 && s.tier != tierSelf {
		which = "fitting worker on which it has not failed"
	}
	text := "waiting for a worker: the only " + which + " is busy"
	if open > 1 {
		text = fmt.Sprintf("waiting for a worker: all %d %s are busy", open,
			strings.Replace(which, "worker", "workers", 1))
	}
	if len(fit.waited) > 0 {
		text += "; " + named(fit.waited)
	}
	return text
}

// text builds a text once and caches it.
func (fit *fitting) text(about Outcome, text func() string) string {
	if known, ok := fit.texts[about]; ok {
		return known
	}
	if fit.texts == nil {
		fit.texts = make(map[Outcome]string)
	}
	fit.texts[about] = text()
	return fit.texts[about]
}

// noWorkers is the verdict without any live worker.
func (f *Fleet) noWorkers(need Need) Verdict {
	fit := f.fitting(need)
	v := Verdict{Outcome: NoWorkers, Reason: "no workers available", Renewed: fit.renewed}
	if absent := without(fit.absent, need.Except); len(absent) > 0 {
		v.missing(absent)
		v.Detail = fit.text(NoWorkers, func() string { return would(absent) })
	}
	return v
}

// missing notes the absent workers that would fit.
func (v *Verdict) missing(absent []*Worker) {
	v.Absent = len(absent) > 0
	for _, w := range absent {
		v.Seen, v.Accepts = later(v.Seen, w.Seen), later(v.Accepts, w.Accepts)
	}
}

// would names the absent workers that would fit.
func would(absent []*Worker) string {
	if len(absent) == 1 {
		return absent[0].label() + " would fit but " + absent[0].text()
	}
	return fmt.Sprintf("%d workers would fit but are not there: %s", len(absent), named(absent))
}

func without(list []*Worker, id int64) []*Worker {
	if id == 0 || !slices.ContainsFunc(list, func(w *Worker) bool { return w.ID == id }) {
		return list
	}
	return slices.DeleteFunc(slices.Clone(list), func(w *Worker) bool { return w.ID == id })
}

func (f *Fleet) refuse(fit *fitting, need Need) Verdict {
	if waited := without(fit.waited, need.Except); len(waited) > 0 {
		return Verdict{
			Outcome: Busy,
			Reason:  "waiting for a worker: the fitting workers receive no work now: " + named(waited),
		}
	}
	absent := without(fit.absent, need.Except)
	v := Verdict{Outcome: Incompatible, Renewed: fit.renewed}
	v.missing(absent)
	if need.Except == 0 {
		v.Reason = fit.text(Incompatible, func() string { return f.incompatible(need, absent) })
	} else {
		v.Reason = f.incompatible(need, absent)
	}
	return v
}

// incompatible names the rules that the live workers break, the most frequent first.
func (f *Fleet) incompatible(need Need, absent []*Worker) string {
	counts := map[rejection]int{}
	for i := range f.workers {
		w := &f.workers[i]
		if w.Standing.Absent() {
			continue
		}
		if why, ok := need.rejects(w); ok {
			counts[why]++
		}
	}
	list := make([]rejection, 0, len(counts))
	for why := range counts {
		list = append(list, why)
	}
	slices.SortFunc(list, func(a, b rejection) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), strings.Compare(a.rest, b.rest))
	})
	texts, what, rest := []string{}, "live workers", 0
	for i, why := range list {
		if i >= maxReasons {
			rest += counts[why]
			continue
		}
		texts = append(texts, why.about(counts[why], what))
		what = ""
	}
	if rest > 0 {
		texts = append(texts, fmt.Sprintf("%d do not fit for other reasons", rest))
	}
	if len(absent) > 0 { // an absent worker may return: waiting or a retry can succeed
		return "no workers available that fit: " + strings.Join(append([]string{would(absent)}, texts...), "; ")
	}
	return "no compatible worker: " + strings.Join(texts, "; ")
}

// rejects is unmet, plus the excepted worker.
func (n Need) rejects(w *Worker) (rejection, bool) {
	if n.Except != 0 && w.ID == n.Except {
		return rejection{"is", "are", "where it is to be taken from"}, true
	}
	return n.unmet(w)
}

// Answer is the relation of a worker to a need.
type Answer string

// The answers.
const (
	AnswerRoom     Answer = "room"     // it fits and has capacity
	AnswerFull     Answer = "full"     // it fits and has no capacity
	AnswerAvoided  Answer = "avoided"  // it fits, but an attempt failed there, so other workers come first
	AnswerWaited   Answer = "waited"   // it fits and lives, but may receive nothing now
	AnswerAbsent   Answer = "absent"   // it is absent
	AnswerRejected Answer = "rejected" // it does not fit
)

// Explained is one worker with its answer and the reason.
type Explained struct {
	Worker *Worker
	Answer Answer
	// Reason is the explanation, and Kind the same without details of the worker.
	Reason, Kind string
	Fits         bool // no hard rule excludes it, whatever its standing
	Weight       int  // of the preferences that it matches
}

// Explain returns the answer of every worker to a need. It takes no capacity.
func (f *Fleet) Explain(need Need) []Explained {
	s, _ := f.sieve(f.fitting(need), need)
	list := make([]Explained, len(f.workers))
	for i := range f.workers {
		list[i] = f.workers[i].explain(need, s)
	}
	return list
}

func (w *Worker) explain(need Need, s sieve) Explained {
	why, rejected := need.rejects(w)
	e := Explained{Worker: w, Fits: !rejected}
	e.Weight, _ = need.preference(w)
	say := func(answer Answer, kind, reason string) Explained {
		e.Answer, e.Kind, e.Reason = answer, kind, reason
		return e
	}
	standing := func(text string) string { return strings.TrimPrefix(text, "is ") }
	switch {
	case w.Standing.Absent() && rejected:
		return say(AnswerAbsent, standing(w.Standing.text()), standing(w.text())+", and "+why.String())
	case w.Standing.Absent():
		return say(AnswerAbsent, standing(w.Standing.text()), standing(w.text()))
	case rejected:
		return say(AnswerRejected, why.String(), why.String())
	case w.Standing != Live:
		return say(AnswerWaited, standing(w.Standing.text()), standing(w.text()))
	case s.tierOf(w) > s.tier && s.tierOf(w) == tierSelf:
		return say(AnswerAvoided, "avoided", "avoided, since an earlier attempt failed on it")
	case s.tierOf(w) > s.tier:
		return say(AnswerAvoided, "avoided", "avoided, since an earlier attempt failed on its host "+w.Host)
	case w.Room() <= 0:
		return say(AnswerFull, "busy", "busy "+w.load())
	default:
		if w.Health == Degraded {
			return say(AnswerRoom, "has room and is degraded",
				"has room, "+w.load()+"; degraded: "+cmp.Or(w.HealthReason, "no reason reported"))
		}
		return say(AnswerRoom, "has room", "has room, "+w.load())
	}
}

// load is a worker's assigned share of its capacity.
func (w *Worker) load() string {
	if w.Assigned > w.Capacity {
		return fmt.Sprintf("%d of %d (+%d waiting)", w.Capacity, w.Capacity, w.Assigned-w.Capacity)
	}
	return fmt.Sprintf("%d of %d", w.Assigned, w.Capacity)
}
