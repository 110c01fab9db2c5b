package deadletters

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/filter"
	"github.com/attune-go/attune/tui/screen"
)

var fields = filter.Schema{
	{Name: "reason", Kind: filter.Text, Values: []string{"expired", "rejected", "maxlen", "delivery_limit"}, Help: "why it died"},
	{Name: "action", Kind: filter.Text, Help: "the action it is about; a star stands for anything"},
	{Name: "type", Kind: filter.Text, Help: "its type"},
	{Name: "from", Kind: filter.Text, Help: "the worker it was on its way to, or where it died"},
	{Name: "worker", Kind: filter.Text, Help: "the same, as the commands call it"},
	{Name: "queue", Kind: filter.Text, Help: "the queue it died in"},
	{Name: "verdict", Kind: filter.Within, Values: []string{"requeue", "send", "stale", "blocked", "export", "wait", "repeated", "decided"}, Help: "what R would do"},
	{Name: "status", Kind: filter.Text, Help: "the status of its execution now"},
	{Name: "decision", Kind: filter.Text, Values: monitor.LetterDecisions, Help: "what was decided"},
	{Name: "by", Kind: filter.Text, Help: "who decided"},
	{Name: "error", Kind: filter.Within, Help: "what is said of it"},
	{Name: "execution", Kind: filter.ID, Help: "the execution it is about"},
	{Name: "id", Kind: filter.ID, Help: "its number in the ledger"},
	{Name: "try", Kind: filter.Number, Help: "how often its execution was repeated"},
	{Name: "age", Kind: filter.Age, Help: "how long ago it died"},
}

// Known lists the values of a field that are in the list.
func (v *DeadLetters) Known(field string) []string {
	var known screen.Distinct
	switch field {
	case "reason", "action", "type", "from", "worker", "queue", "status", "decision", "by":
		for i := range v.all {
			known.Add(asking{v, &v.all[i]}.Texts(field)...)
		}
	}
	return known.List()
}

// asking is a letter as filters see it.
type asking struct {
	v *DeadLetters
	r *row
}

// texts are how a row says what a field names.
var texts = map[string]func(*row) string{
	"reason": byReason, "action": byAction, "type": byType, "from": byFrom, "worker": byFrom, "error": byError, "queue": (*row).queue,
	"verdict": func(r *row) string { return r.verdict.text }, "status": func(r *row) string { return r.now },
	"decision":  func(r *row) string { return r.decision },
	"by":        func(r *row) string { return r.ledger.DecidedBy },
	"execution": func(r *row) string { return strconv.FormatInt(r.execution, 10) },
	"id":        func(r *row) string { return r.key },
}

// Texts are the texts of a field.
func (a asking) Texts(field string) []string {
	if of, ok := texts[field]; ok {
		return []string{of(a.r)}
	}
	r := a.r
	return []string{r.name, r.reason, r.action, r.kind, r.from, r.now, r.decision, r.problem, r.verdict.text, strconv.FormatInt(r.execution, 10), r.queue()}
}

// Number is the number of a field.
func (a asking) Number(field string) (float64, bool) {
	switch field {
	case "try":
		return float64(a.r.retries), a.r.tries != "-"
	case "age":
		if a.r.died != nil {
			return a.v.env.Since(*a.r.died).Seconds(), true
		}
	}
	return 0, false
}

// What the list can be sorted by.
const (
	byOrder = iota
	byDied
	byReasonOf
	byActionOf
	byFromOf
	byVerdict
	byTries
)

// sortKeys are the columns to sort by. First come those that wait.
var sortKeys = []string{"as listed", "died", "reason", "action", "from", "verdict", "tries"}

// compare puts two letters in the chosen order, those that are alike as they were
// listed.
func (v *DeadLetters) compare(a, b *row) int {
	var c int
	switch v.Order().Column {
	case byDied:
		c = compareDied(a, b)
	case byReasonOf:
		c = cmp.Compare(a.reason, b.reason)
	case byActionOf:
		c = cmp.Compare(a.action, b.action)
	case byFromOf:
		c = cmp.Compare(a.from, b.from)
	case byVerdict:
		c = cmp.Or(cmp.Compare(a.verdict.rank(), b.verdict.rank()), cmp.Compare(a.verdict.text, b.verdict.text))
	case byTries:
		c = cmp.Compare(b.retries, a.retries)
	default:
		return v.Order().Apply(cmp.Compare(a.at, b.at))
	}
	return cmp.Or(v.Order().Apply(c), cmp.Compare(a.at, b.at))
}

// compareDied puts the newest first; when nobody knows when one died it comes last.
func compareDied(a, b *row) int {
	switch {
	case a.died == nil || b.died == nil:
		return cmp.Compare(boolInt(a.died == nil), boolInt(b.died == nil))
	default:
		return b.died.Compare(*a.died)
	}
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// rank puts first what can be requeued, then what stands in the way.
func (v *verdict) rank() int { return slices.Index([]class{requeue, blocked, stale, other}, v.class) }

// troubles reports whether a letter waits for a person.
func (r *row) troubles() bool { return r.ledger.Open() }
