// Package policy says which limits apply to an execution, which queue of its
// action it waits in, and when the next start under a rate or a quota is
// due. It is pure: policies, parameters, ids and times come in, decisions come
// out, and nothing here touches the database or a clock.
//
// The rules of concurrency are Attune's: a policy names a threshold (at most
// that many executions at once), a method (wait in line, or be refused) and
// optionally parameter paths. With paths, every distinct combination of their
// values is a group of its own with the full threshold. Beyond them, policies
// stack: the newest concurrency policy of the action, that of its pack and the
// global one apply together, and so does every rate and every quota.
package policy

import (
	"cmp"
	"slices"
	"strconv"
	"time"
)

// Method is what happens to an execution that finds no free slot, spelled as
// the labels of the database type policy_method_enum.
type Method string

// The labels of policy_method_enum.
const (
	MethodEnqueue Method = "enqueue" // wait in FIFO order
	MethodCancel  Method = "cancel"  // end as cancelled, at once
)

// Kind is what a policy counts.
type Kind string

// The kinds of policies.
const (
	KindConcurrency Kind = "concurrency" // executions at once
	KindRate        Kind = "rate"        // starts a window, evenly spaced but for a burst
	KindQuota       Kind = "quota"       // starts a period of the calendar
)

// Scope is what a policy is about.
type Scope int

// The scopes, from narrow to wide; this is the order in which they are asked.
const (
	ScopeAction Scope = iota
	ScopePack
	ScopeGlobal
)

// String is the scope's name for people.
func (s Scope) String() string {
	return [...]string{"action", "pack", "global"}[s]
}

// Policy is one row of the policy table, as far as admission needs it.
type Policy struct {
	ID           int64
	Ref          string
	Scope        Scope
	Kind         Kind // empty counts as concurrency
	Threshold    int
	Method       Method
	Parameters   []string      // dotted paths that form the group key; empty means one group
	Window       time.Duration // rate and quota
	Burst        int           // rate: starts that may come at once; at least 1
	MaxQueued    int           // longest line; 0 means that of the installation
	QueueTimeout time.Duration // longest wait; 0 means that of the installation
	RetryPlace   Place         // where a retry joins the line; empty means that of the installation
	Adaptive     *Adaptive     // nil: the threshold stands
	Created      time.Time
}

// Place is where in its line a retry waits.
type Place string

// The places of a retry.
const (
	PlaceBack  Place = "back"  // like everybody who comes now
	PlaceFront Place = "front" // before all who wait in its lane
)

// Limit is the limit of an action's own queues.
type Limit struct {
	Unlimited  bool     // no policy applies; Max is meaningless
	Max        int      // executions at once, per group
	Method     Method   // what happens without a free slot
	Parameters []string // paths of the group key, also of an unlimited queue
	PolicyRef  string   // which policy said so; empty when Unlimited
	Adaptive   *Adaptive
}

// None is the limit of an action without a policy: any number at once, in
// order of arrival.
var None = Limit{Unlimited: true, Method: MethodEnqueue}

// WideKind is what a limit counts that queues share, spelled as in the column
// admission_scope.kind.
type WideKind string

// The kinds of shared limits.
const (
	WidePack   WideKind = "pack"
	WideGlobal WideKind = "global"
	WideRate   WideKind = "rate"
	WideQuota  WideKind = "quota"
)

// Slots reports whether executions hold slots of such a limit until they end.
// The others only count starts.
func (k WideKind) Slots() bool { return k == WidePack || k == WideGlobal }

// Wide is one limit that an execution needs besides its queue's.
type Wide struct {
	Kind       WideKind
	Base       string // the key of the limit, without a group
	Max        int
	Method     Method
	Parameters []string
	Window     time.Duration
	Burst      int
	PolicyID   int64
	PolicyRef  string
}

// Key is the limit's key for these parameters, unique within its kind.
func (w Wide) Key(params map[string]any) string {
	group, grouped := GroupKey(w.Parameters, params)
	if !grouped {
		return w.Base
	}
	return w.Base + " " + group
}

// Limits is everything that limits the executions of one action.
type Limits struct {
	Queue        Limit
	Wide         []Wide        // in the order in which they are asked
	MaxQueued    int           // 0: the installation's
	QueueTimeout time.Duration // 0: the installation's
	RetryPlace   Place         // empty: the installation's
}

// Compose turns the policies that apply to an action of a pack into its
// limits. Of several concurrency policies of one scope the newest counts;
// rates and quotas all count. What a policy says about the line (its length,
// its patience, the place of retries) is taken from the narrowest that says it.
func Compose(packID int64, policies []Policy) Limits {
	ordered := slices.Clone(policies)
	slices.SortStableFunc(ordered, func(a, b Policy) int {
		return cmp.Or(cmp.Compare(a.Scope, b.Scope), b.Created.Compare(a.Created), cmp.Compare(b.ID, a.ID))
	})
	limits := Limits{Queue: None}
	var counted [ScopeGlobal + 1]bool
	for _, p := range ordered {
		if p.Kind == KindConcurrency || p.Kind == "" {
			if counted[p.Scope] {
				continue // an older one that the newest has replaced
			}
			counted[p.Scope] = true
		}
		limits.add(packID, p)
		limits.MaxQueued = cmp.Or(limits.MaxQueued, p.MaxQueued)
		limits.QueueTimeout = cmp.Or(limits.QueueTimeout, p.QueueTimeout)
		limits.RetryPlace = cmp.Or(limits.RetryPlace, p.RetryPlace)
	}
	slices.SortStableFunc(limits.Wide, func(a, b Wide) int { return cmp.Compare(rank(a.Kind), rank(b.Kind)) })
	if limits.Queue.Unlimited {
		limits.Queue.Parameters = limits.shape()
	}
	return limits
}

// shape is by which parameters executions wait in lines of their own when their
// action has no limit of its own to keep in order: all that the shared limits
// are counted by, so that a group that has to wait keeps no other waiting. SQL
// knows it as attune_queue_shape.
func (l *Limits) shape() []string {
	var paths []string
	for _, wide := range l.Wide {
		paths = append(paths, wide.Parameters...)
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// rank is the order in which shared limits are asked: those that hold slots
// first, so that a start is counted only if there is room for it.
func rank(k WideKind) int {
	return map[WideKind]int{WidePack: 0, WideGlobal: 1, WideRate: 2, WideQuota: 3}[k]
}

func (l *Limits) add(packID int64, p Policy) {
	if p.Scope == ScopeAction && p.Kind != KindRate && p.Kind != KindQuota {
		l.Queue = Limit{
			Max: p.Threshold, Method: p.Method, Parameters: p.Parameters, PolicyRef: p.Ref, Adaptive: p.Adaptive,
		}
		return
	}
	wide := Wide{
		Max: p.Threshold, Method: p.Method, Parameters: p.Parameters, Window: p.Window, Burst: max(p.Burst, 1),
		PolicyID: p.ID, PolicyRef: p.Ref,
	}
	switch {
	case p.Kind == KindRate:
		wide.Kind, wide.Base = WideRate, strconv.FormatInt(p.ID, 10)
	case p.Kind == KindQuota:
		wide.Kind, wide.Base = WideQuota, strconv.FormatInt(p.ID, 10)
	case p.Scope == ScopePack:
		wide.Kind, wide.Base = WidePack, strconv.FormatInt(packID, 10)
	default:
		wide.Kind = WideGlobal
	}
	l.Wide = append(l.Wide, wide)
}
