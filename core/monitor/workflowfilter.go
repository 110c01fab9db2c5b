package monitor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/attune-go/attune/core/attune"
	"github.com/attune-go/attune/core/store"
)

// WorkflowPaused stands among the statuses for workflows that have not ended and start
// nothing, since they or one above them are paused.
const WorkflowPaused = "paused"

// WorkflowFilter selects workflows. The zero value selects all.
type WorkflowFilter struct {
	// Statuses keeps these statuses of the executions that workflows run for, and
	// WorkflowPaused.
	Statuses []string `json:"statuses,omitempty"`
	// Action keeps actions whose ref matches; a star stands for anything.
	Action string `json:"action,omitempty"`
	// Paused keeps those that start nothing more until they, or one above them, are
	// resumed; NotPaused all others.
	Paused    bool `json:"paused,omitempty"`
	NotPaused bool `json:"not_paused,omitempty"`
	// Trouble keeps those that have ended badly, are paused, or have a task that failed.
	Trouble bool `json:"trouble,omitempty"`
	// MaxAge keeps those requested within it, MinAge those requested before; zero
	// keeps all.
	MaxAge time.Duration `json:"max_age_ns,omitempty"`
	MinAge time.Duration `json:"min_age_ns,omitempty"`
	// Match are expressions that the action's ref must all contain, Unmatch those of
	// which it must contain none; capitals do not matter. Errors and NotErrors are the
	// same for why it failed, Tasks and NotTasks for the names of the tasks that are on
	// their way or have failed.
	Match     []string `json:"match,omitempty"`
	Unmatch   []string `json:"unmatch,omitempty"`
	Errors    []string `json:"errors,omitempty"`
	NotErrors []string `json:"not_errors,omitempty"`
	Tasks     []string `json:"tasks,omitempty"`
	NotTasks  []string `json:"not_tasks,omitempty"`
	// MinFailed and MaxFailed bound how many of its tasks have failed.
	MinFailed int64  `json:"min_failed,omitempty"`
	MaxFailed *int64 `json:"max_failed,omitempty"`
	// Parent keeps those that an execution has started; zero keeps all. Parented keeps
	// those that were started by one, or by none.
	Parent   int64  `json:"parent,omitempty"`
	Parented string `json:"parented,omitempty"`
	// IDs keeps the workflows of these executions; empty keeps all.
	IDs []int64 `json:"ids,omitempty"`
	// Or are further filters: what one of them selects is selected too. Their own
	// limits and alternatives are ignored.
	Or []WorkflowFilter `json:"or,omitempty"`
	// Limit bounds a page; zero means DefaultPage.
	Limit int `json:"limit,omitempty"`
}

// Check says what is wrong with a filter, so that a mistyped one is never applied
// as something else.
func (f *WorkflowFilter) Check() error {
	for _, word := range f.Statuses {
		if word != WorkflowPaused && !slices.Contains(attune.Statuses, attune.Status(word)) {
			var words []string
			for _, status := range attune.Statuses {
				words = append(words, string(status))
			}
			return fmt.Errorf("%w names an unknown status %q: use one of %s", ErrFilter, word, strings.Join(words, ", "))
		}
	}
	if f.Limit < 0 {
		return fmt.Errorf("%w has a negative number", ErrFilter)
	}
	for i := range f.Or {
		if err := f.Or[i].Check(); err != nil {
			return err
		}
	}
	return nil
}

// alternatives are the filter and those of Or, each by itself.
func (f *WorkflowFilter) alternatives() []WorkflowFilter {
	all := append([]WorkflowFilter{*f}, f.Or...)
	for i := range all {
		all[i].Or, all[i].Limit = nil, f.Limit
	}
	return all
}

// live reports whether only workflows can match that have not ended, ended whether
// only such that have.
func (f *WorkflowFilter) live() bool {
	return f.Paused || len(f.Statuses) > 0 && !slices.ContainsFunc(f.Statuses, terminal)
}

func (f *WorkflowFilter) ended() bool {
	return !f.Paused && len(f.Statuses) > 0 && !slices.ContainsFunc(f.Statuses, func(word string) bool { return !terminal(word) })
}

func terminal(word string) bool { return attune.Status(word).Terminal() }

// allLive is live of every alternative.
func (f *WorkflowFilter) allLive() bool {
	return !slices.ContainsFunc(f.alternatives(), func(one WorkflowFilter) bool { return !one.live() })
}

// unfiltered reports whether every row matches that is looked at.
func (f *WorkflowFilter) unfiltered() bool {
	return f.Action == "" && len(f.Statuses) == 0 && !f.Paused && !f.NotPaused && !f.Trouble && f.MinFailed == 0 && f.MaxFailed == nil &&
		f.Parent == 0 && f.Parented == "" && len(f.IDs)+len(f.Match)+len(f.Unmatch)+len(f.Errors)+len(f.NotErrors)+len(f.Tasks)+len(f.NotTasks) == 0
}

// params are what the database is asked, but for which rows it looks at.
func (f *WorkflowFilter) params() store.ViewWorkflowPageParams {
	arg := store.ViewWorkflowPageParams{
		Pattern: pattern(f.Action, false), Statuses: list(f.Statuses), OnlyPaused: f.Paused, NotPaused: f.NotPaused, OnlyTrouble: f.Trouble,
		Match: list(f.Match), Unmatch: list(f.Unmatch), Errors: list(f.Errors), NotErrors: list(f.NotErrors), Tasks: list(f.Tasks), NotTasks: list(f.NotTasks),
		MinFailed: f.MinFailed, MaxFailed: NoLimit, Parent: f.Parent, Parented: f.Parented, Ids: list(f.IDs),
		Page: int32(min(cmp.Or(f.Limit, DefaultPage), scanBound)),
	}
	if f.MaxFailed != nil {
		arg.MaxFailed = *f.MaxFailed
	}
	return arg
}
