package monitor

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/attune-go/attune/core/attune"
)

// ExecutionFilter selects executions. The zero value selects all.
type ExecutionFilter struct {
	// Statuses keeps these statuses; empty keeps all.
	Statuses []attune.Status `json:"statuses,omitempty"`
	// Action keeps actions whose ref matches; a star stands for anything.
	Action string `json:"action,omitempty"`
	// Worker keeps executions of one worker, given by id or by name; Workers those of
	// any of several, NotWorkers all but theirs. One that does not exist has none.
	Worker     string   `json:"worker,omitempty"`
	Workers    []string `json:"workers,omitempty"`
	NotWorkers []string `json:"not_workers,omitempty"`
	// MaxAge keeps executions requested within it, MinAge those requested before;
	// zero keeps all.
	MaxAge time.Duration `json:"max_age_ns,omitempty"`
	MinAge time.Duration `json:"min_age_ns,omitempty"`
	// Parent keeps the children of one execution; zero keeps all. Parented keeps
	// those that have one, or that have none.
	Parent   int64  `json:"parent,omitempty"`
	Parented string `json:"parented,omitempty"`
	// IDs keeps these executions; empty keeps all.
	IDs []int64 `json:"ids,omitempty"`
	// MinID and MaxID keep the ids from one to the other, both included; zero is no
	// bound.
	MinID int64 `json:"min_id,omitempty"`
	MaxID int64 `json:"max_id,omitempty"`
	// Params keeps executions whose parameters match all of these.
	Params []ParamMatch `json:"params,omitempty"`
	// Match are expressions that the action's ref must all contain, Unmatch those of
	// which it must contain none; capitals do not matter. Reasons and NotReasons are
	// the same for why an execution ended as it did.
	Match      []string `json:"match,omitempty"`
	Unmatch    []string `json:"unmatch,omitempty"`
	Reasons    []string `json:"reasons,omitempty"`
	NotReasons []string `json:"not_reasons,omitempty"`
	// MinTries and MaxTries bound how often it was repeated.
	MinTries int64  `json:"min_tries,omitempty"`
	MaxTries *int64 `json:"max_tries,omitempty"`
	// Or are further filters: what one of them selects is selected too. Their own
	// limits and alternatives are ignored.
	Or []ExecutionFilter `json:"or,omitempty"`
	// Oldest begins with the oldest instead of the newest.
	Oldest bool `json:"oldest,omitempty"`
	// Limit bounds a page; zero means DefaultPage.
	Limit int `json:"limit,omitempty"`
	// WithParams reads the parameters of the rows of a page too.
	WithParams bool `json:"with_params,omitempty"`

	// windowed looks at every row of a range, so that the search can go on where it
	// stopped.
	windowed bool
}

// The values of Parented.
const (
	ParentedAny  = "any"
	ParentedNone = "none"
)

// NoLimit is a number of tries that nothing reaches.
const NoLimit int64 = math.MaxInt32

// sifted reports whether the filter asks for something that no index finds.
func (f *ExecutionFilter) sifted() bool {
	return len(f.Workers) > 0 || len(f.NotWorkers) > 0 || len(f.IDs) > 0 || len(f.Match) > 0 || len(f.Unmatch) > 0 ||
		len(f.Params) > 0 || f.windowed || f.Parented != "" || f.MinTries > 0 || f.MaxTries != nil || f.reasoned() ||
		f.Parent != 0 && (f.Action != "" || f.Worker != "" || f.MaxAge > 0)
}

// ByParams reports whether parameters have to be opened.
func (f *ExecutionFilter) ByParams() bool {
	return len(f.Params) > 0 || slices.ContainsFunc(f.Or, func(other ExecutionFilter) bool { return len(other.Params) > 0 })
}

// reasoned reports whether results have to be opened.
func (f *ExecutionFilter) reasoned() bool { return len(f.Reasons) > 0 || len(f.NotReasons) > 0 }

// String says the filter in words.
func (f *ExecutionFilter) String() string {
	var terms []string
	add := func(name string, values ...string) {
		if len(values) > 0 && values[0] != "" {
			terms = append(terms, name+strings.Join(values, ","))
		}
	}
	words := make([]string, len(f.Statuses))
	for i, s := range f.Statuses {
		words[i] = string(s)
	}
	add("status:", words...)
	add("action:", f.Action)
	add("worker:", f.Worker)
	if f.Parent != 0 {
		add("parent:", strconv.FormatInt(f.Parent, 10))
	}
	if f.MaxAge > 0 {
		add("age<", f.MaxAge.String())
	}
	if f.MinAge > 0 {
		add("age>", f.MinAge.String())
	}
	return strings.Join(terms, " ")
}
