package operations

import (
	"strconv"
	"strings"

	"github.com/attune-go/attune/core/monitor"
)

// said is an act in words: pause queue for queue.pause.
func said(kind string) string {
	object, verb, ok := strings.Cut(kind, ".")
	if !ok {
		return kind
	}
	return strings.NewReplacer("_", " ", "-", " ").Replace(verb + " " + object)
}

// texts are what a row says in words.
type texts struct{ kind, target, who, audit, reason, problem string }

func (r *row) texts() texts {
	t := texts{audit: "-"}
	if a := r.audit; a != nil {
		t = texts{kind: a.Action, target: a.Target, who: a.Actor, audit: strconv.FormatInt(a.ID, 10), reason: a.Reason,
			problem: a.Error}
	}
	op := r.op
	if op == nil {
		return t
	}
	t.kind, t.target, t.who = string(op.Order.Kind), op.Order.Target.Name, "this session"
	if op.Reason != "" {
		t.reason = op.Reason
	}
	if op.Err != "" {
		t.problem = op.Err
	}
	if op.Receipt != nil && len(op.Receipt.Audits) > 0 {
		t.audit = strconv.FormatInt(op.Receipt.Audits[0], 10)
	}
	return t
}

// Row is what makes rows of acts that were not read, and whether the filter lets them through.
// It touches nothing of the view.
func (v *Operations) Row() func(a *monitor.AuditEntry) (id int64, value any, wanted bool) {
	matches := v.Matcher()
	return func(a *monitor.AuditEntry) (int64, any, bool) {
		r := row{at: a.At, audit: a}
		r.says = r.texts()
		return a.ID, recorded(a), matches(&r)
	}
}
