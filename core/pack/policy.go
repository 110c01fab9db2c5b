package pack

import "github.com/attune-go/attune/core/policy"

// Policy is a policy as a file describes it. Texts and numbers that the file
// does not give are empty and 0, but for those that have a default.
type Policy struct {
	Ref         string
	Name        string // default: the ref
	Description string
	Tags        []string

	// Action and Pack are the scope: the executions of one action, those of one
	// pack, or, without either, all.
	Action string
	Pack   string

	Kind                policy.Kind // default: concurrency
	Threshold           int32
	WindowSeconds       int32         // of a rate or quota
	Burst               int32         // of a rate
	Method              policy.Method // default: enqueue
	Parameters          []string      // paths whose values divide the limit into groups
	MaxQueueLength      int32
	QueueTimeoutSeconds int32
	RetryPlace          policy.Place
	AdaptiveMin         int32 // 0: the limit is not adaptive
	AdaptiveLatencyMS   int32

	// Folder is the ref of the pack in whose folder the file is; empty: in none.
	Folder string

	// Place is where the policy begins.
	Place Place

	places map[string]Place
}

// At is where the key was given, or where the policy begins if it was not.
func (p *Policy) At(key string) Place {
	if at, ok := p.places[key]; ok {
		return at
	}
	return p.Place
}

// given reports whether the file has the key.
func (p *Policy) given(key string) bool {
	_, ok := p.places[key]
	return ok
}
