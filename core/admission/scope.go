package admission

import (
	"fmt"
	"time"

	"github.com/attune-go/attune/core/policy"
)

// ScopeKey names a limit that queues share.
type ScopeKey struct {
	Kind policy.SharedKind
	Key  string
}

// scope is the working copy of one locked row of admission_scope.
type scope struct {
	scopeColumns

	id       int64
	kind     policy.SharedKind
	rule     *policy.SharedLimit // the present policy; nil: only release
	reserved int                 // slots reserved for earlier executions that wait for something else
	awaited  bool                // an earlier execution must be read first
	before   scopeColumns
}

// scopeColumns are the values of the row that a batch may change.
type scopeColumns struct {
	max    int
	active int
	due    time.Time // rate: when the next evenly spaced start is due
	period time.Time // quota: the period counted last
	used   int       // quota: starts in that period
}

// closed returns what blocks an execution at this limit now, nil if nothing does.
func (s *scope) closed(clock time.Time) *obstacle {
	if s.rule == nil {
		return nil // its policy was deleted
	}
	if s.awaited {
		return s.obstacle("executions that have waited longer are read first", time.Time{})
	}
	switch s.kind {
	case policy.SharedPack, policy.SharedGlobal:
		if s.max-s.active-s.reserved > 0 {
			return nil
		}
		if s.max == 1 {
			return s.obstacle("the one slot of policy "+s.rule.PolicyRef+" is taken", time.Time{})
		}
		return s.obstacle(fmt.Sprintf("all %d slots of policy %s are taken", s.max, s.rule.PolicyRef), time.Time{})
	case policy.SharedRate:
		ready := s.rate().Ready(s.due)
		if !ready.After(clock) {
			return nil
		}
		return s.obstacle(fmt.Sprintf("policy %s allows %s in %s", s.rule.PolicyRef, starts(s.max), s.rule.Window),
			ready)
	case policy.SharedQuota:
		if s.quota().Left(clock, s.period, s.used) > 0 {
			return nil
		}
		return s.obstacle(fmt.Sprintf("the quota of policy %s, %s in %s, is used up", s.rule.PolicyRef, starts(s.max),
			s.rule.Window),
			s.quota().Reset(clock))
	}
	return nil
}

func starts(n int) string {
	if n == 1 {
		return "one start"
	}
	return fmt.Sprintf("%d starts", n)
}

func (s *scope) obstacle(reason string, until time.Time) *obstacle {
	return &obstacle{scope: s.id, reason: reason, until: until}
}

func (s *scope) rate() policy.Rate {
	return policy.Rate{Max: s.max, Window: s.rule.Window, Burst: s.rule.Burst}
}

func (s *scope) quota() policy.Quota { return policy.Quota{Max: s.max, Window: s.rule.Window} }

// take counts one start.
func (s *scope) take(clock time.Time) {
	switch s.kind {
	case policy.SharedPack, policy.SharedGlobal:
		s.active++
	case policy.SharedRate:
		if s.rule != nil {
			s.due = s.rate().Start(clock, s.due)
		}
	case policy.SharedQuota:
		if s.rule == nil {
			return
		}
		s.period, s.used = s.quota().Counted(clock, s.period, s.used)
		s.used++
	}
}

// SetScope sets the policy of a shared limit for this batch.
func (l *Ledger) SetScope(id int64, rule policy.SharedLimit) {
	s := l.scopes[id]
	if s == nil {
		return
	}
	s.rule, s.max = &rule, rule.Max
	if s.kind == policy.SharedRate {
		s.due = s.rate().Due(l.Clock, s.due)
	}
}
