// Package policy decides which limits apply to an execution, in which queue of its action it waits,
// and when the next start under a rate or a quota is due. It is pure: policies, parameters, ids and
// times come in, decisions come out. It uses no database and no clock.
//
// The rules of concurrency are Attune's: a policy has a threshold (the maximum of concurrent
// executions), a method (wait in the queue, or be refused) and optional parameter paths. With
// paths, every distinct combination of their values is a group of its own with the full threshold.
// Beyond them, policies stack: the newest concurrency policy of the action, of its pack and the
// global one apply together, and so do all rates and quotas.
package policy

import (
	"cmp"
	"slices"
	"strconv"
	"time"
)

// Method is what happens to an execution without a free slot, spelled as in the database type
// policy_method_enum.
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
	KindConcurrency Kind = "concurrency" // concurrent executions
	KindRate        Kind = "rate"        // starts in a window, evenly spaced except for a burst
	KindQuota       Kind = "quota"       // starts in a calendar period
)

// Scope is where a policy applies.
type Scope int

// The scopes, from narrow to wide, in the order in which they are checked.
const (
	ScopeAction Scope = iota
	ScopePack
	ScopeGlobal
)

// String is the scope's name for users.
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
	Parameters   []string      // dotted paths of the group key; empty means one group
	Window       time.Duration // rate and quota
	Burst        int           // rate: starts that may come at once; at least 1
	MaxQueued    int           // length limit of the queue; 0 means the installation's
	QueueTimeout time.Duration // longest wait; 0 means the installation's
	RetryPlace   Place         // where a retry joins the queue; empty means the installation's
	Adaptive     *Adaptive     // nil: the threshold is fixed
	Created      time.Time
}

// Place is where a retry joins its queue.
type Place string

// The places of a retry.
const (
	PlaceBack  Place = "back"  // like a new execution
	PlaceFront Place = "front" // before all waiting executions of its lane
)

// Limit is the limit of an action's own queues.
type Limit struct {
	Unlimited  bool     // no policy applies; Max is meaningless
	Max        int      // executions at once, per group
	Method     Method   // what happens without a free slot
	Parameters []string // paths of the group key, also of an unlimited queue
	PolicyRef  string   // the policy that set it; empty when Unlimited
	Adaptive   *Adaptive
}

// None is the limit of an action without a policy: any number at once, in order of arrival.
var None = Limit{Unlimited: true, Method: MethodEnqueue}

// SharedKind is what a shared limit counts, spelled as in the column admission_scope.kind.
type SharedKind string

// The kinds of shared limits.
const (
	SharedPack   SharedKind = "pack"
	SharedGlobal SharedKind = "global"
	SharedRate   SharedKind = "rate"
	SharedQuota  SharedKind = "quota"
)

// Slots reports whether executions hold slots of such a limit until they end. The other kinds only
// count starts.
func (k SharedKind) Slots() bool { return k == SharedPack || k == SharedGlobal }

// SharedLimit is one limit that an execution needs besides its queue's.
type SharedLimit struct {
	Kind       SharedKind
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
func (w SharedLimit) Key(params map[string]any) string {
	group, grouped := GroupKey(w.Parameters, params)
	if !grouped {
		return w.Base
	}
	return w.Base + " " + group
}

// Limits is everything that limits the executions of one action.
type Limits struct {
	Queue        Limit
	Shared       []SharedLimit // in the order in which they are checked
	MaxQueued    int           // 0: the installation's
	QueueTimeout time.Duration // 0: the installation's
	RetryPlace   Place         // empty: the installation's
}

// Compose turns the policies that apply to an action of a pack into its limits. Of several
// concurrency policies of one scope the newest counts; rates and quotas all count. Settings of the
// queue (its length limit, its timeout, the place of retries) come from the narrowest policy that
// has them.
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
				continue // the newest has replaced it
			}
			counted[p.Scope] = true
		}
		limits.add(packID, p)
		limits.MaxQueued = cmp.Or(limits.MaxQueued, p.MaxQueued)
		limits.QueueTimeout = cmp.Or(limits.QueueTimeout, p.QueueTimeout)
		limits.RetryPlace = cmp.Or(limits.RetryPlace, p.RetryPlace)
	}
	slices.SortStableFunc(limits.Shared, func(a, b SharedLimit) int { return cmp.Compare(rank(a.Kind), rank(b.Kind)) })
	if limits.Queue.Unlimited {
		limits.Queue.Parameters = limits.shape()
	}
	return limits
}

// shape is the parameters by which executions wait in separate queues if their action has no limit
// of its own: all parameters of the shared limits, so that a waiting group blocks no other. SQL has
// the same rule as attune_queue_shape.
func (l *Limits) shape() []string {
	var paths []string
	for _, wide := range l.Shared {
		paths = append(paths, wide.Parameters...)
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// rank is the order in which shared limits are checked: those with slots first, so that a start is
// counted only if a slot is free.
func rank(k SharedKind) int {
	return map[SharedKind]int{SharedPack: 0, SharedGlobal: 1, SharedRate: 2, SharedQuota: 3}[k]
}

func (l *Limits) add(packID int64, p Policy) {
	if p.Scope == ScopeAction && p.Kind != KindRate && p.Kind != KindQuota {
		l.Queue = Limit{
			Max: p.Threshold, Method: p.Method, Parameters: p.Parameters, PolicyRef: p.Ref, Adaptive: p.Adaptive,
		}
		return
	}
	wide := SharedLimit{
		Max: p.Threshold, Method: p.Method, Parameters: p.Parameters, Window: p.Window, Burst: max(p.Burst, 1),
		PolicyID: p.ID, PolicyRef: p.Ref,
	}
	switch {
	case p.Kind == KindRate:
		wide.Kind, wide.Base = SharedRate, strconv.FormatInt(p.ID, 10)
	case p.Kind == KindQuota:
		wide.Kind, wide.Base = SharedQuota, strconv.FormatInt(p.ID, 10)
	case p.Scope == ScopePack:
		wide.Kind, wide.Base = SharedPack, strconv.FormatInt(packID, 10)
	default:
		wide.Kind = SharedGlobal
	}
	l.Shared = append(l.Shared, wide)
}
