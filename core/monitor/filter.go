package monitor

import (
	"fmt"
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
	// Worker keeps executions of one worker, given by id or by name.
	Worker string `json:"worker,omitempty"`
	// MaxAge keeps executions requested within it; zero keeps all.
	MaxAge time.Duration `json:"max_age_ns,omitempty"`
	// Parent keeps the children of one execution; zero keeps all.
	Parent int64 `json:"parent,omitempty"`
	// Limit bounds a page; zero means DefaultPage.
	Limit int `json:"limit,omitempty"`
}

// Terms lists the words that ParseExecutionFilter understands, for help texts.
var Terms = []string{"status:failed,timeout", "action:core.*", "worker:7", "parent:700", "age<1h", "a bare word matches the action"}

// ParseExecutionFilter reads the filter that people type, such as
// "status:failed,timeout action:core.* age<1h". Terms are joined by "and". A
// term it does not know is an error that quotes it, so that a mistyped filter
// is never applied as something wider.
func ParseExecutionFilter(text string) (ExecutionFilter, error) {
	var f ExecutionFilter
	for term := range strings.FieldsSeq(text) {
		if err := f.add(term); err != nil {
			return ExecutionFilter{}, err
		}
	}
	return f, nil
}

func (f *ExecutionFilter) add(term string) error {
	name, value, ok := strings.Cut(term, ":")
	if !ok {
		return f.addBare(term)
	}
	if value == "" {
		return fmt.Errorf("filter term %q has no value", term)
	}
	switch name {
	case "status":
		return f.addStatuses(value)
	case "action":
		f.Action = value
	case "worker":
		f.Worker = value
	case "parent":
		id, err := strconv.ParseInt(value, 10, 64)
		if err != nil || id < 1 {
			return fmt.Errorf("filter term %q needs an execution id", term)
		}
		f.Parent = id
	case "age":
		return f.addAge(strings.TrimPrefix(value, "<"), term)
	default:
		return fmt.Errorf("unknown filter term %q", term)
	}
	return nil
}

func (f *ExecutionFilter) addBare(term string) error {
	if age, ok := strings.CutPrefix(term, "age<"); ok {
		return f.addAge(age, term)
	}
	if strings.ContainsAny(term, "<>=") {
		return fmt.Errorf("unknown filter term %q", term)
	}
	f.Action = "*" + term + "*"
	return nil
}

func (f *ExecutionFilter) addStatuses(list string) error {
	for word := range strings.SplitSeq(list, ",") {
		s, err := attune.ParseStatus(word)
		if err != nil {
			return fmt.Errorf("filter: %w", err)
		}
		f.Statuses = append(f.Statuses, s)
	}
	return nil
}

func (f *ExecutionFilter) addAge(value, term string) error {
	if days, ok := strings.CutSuffix(value, "d"); ok {
		n, err := strconv.ParseFloat(days, 64)
		if err == nil && n > 0 {
			f.MaxAge = time.Duration(n * 24 * float64(time.Hour))
			return nil
		}
	}
	d, err := time.ParseDuration(value)
	if err != nil || d <= 0 {
		return fmt.Errorf("filter term %q needs an age such as 90s, 1h or 2d", term)
	}
	f.MaxAge = d
	return nil
}

// String writes the filter as ParseExecutionFilter reads it.
func (f *ExecutionFilter) String() string {
	var terms []string
	if len(f.Statuses) > 0 {
		words := make([]string, len(f.Statuses))
		for i, s := range f.Statuses {
			words[i] = string(s)
		}
		terms = append(terms, "status:"+strings.Join(words, ","))
	}
	if f.Action != "" {
		terms = append(terms, "action:"+f.Action)
	}
	if f.Worker != "" {
		terms = append(terms, "worker:"+f.Worker)
	}
	if f.Parent != 0 {
		terms = append(terms, "parent:"+strconv.FormatInt(f.Parent, 10))
	}
	if f.MaxAge > 0 {
		terms = append(terms, "age<"+f.MaxAge.String())
	}
	return strings.Join(terms, " ")
}
