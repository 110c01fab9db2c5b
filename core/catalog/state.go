package catalog

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/attune-go/attune/core/config"
	"github.com/attune-go/attune/core/pack"
	"github.com/attune-go/attune/core/store"
)

// How is the change of an item by an application.
type How string

// The changes.
const (
	Added     How = "new"
	Changed   How = "changed"
	Unchanged How = "unchanged"
	Deleted   How = "deleted"
)

// Change is one item of an application.
type Change struct {
	Kind   pack.Kind
	Ref    string
	How    How
	Fields []FieldChange // for a new item its values
	Place  pack.Place    // where the file describes it
	Folder string        // the pack in whose folder a policy is described; empty without one
	// Pace is the interval between the starts of an applied rate, which its threshold does not
	// show; zero otherwise.
	Pace time.Duration
	// Superseded is the newer concurrency policy of the same scope that replaces this one; empty:
	// none.
	Superseded string
}

// NoEffect says that a newer policy replaces this one.
func (c Change) NoEffect() string {
	return c.Ref + " has no effect: " + c.Superseded + " is a newer concurrency policy of the same scope"
}

// Paced describes the interval between starts; empty if unknown.
func (c Change) Paced() string {
	if c.Pace == 0 {
		return ""
	}
	return fmt.Sprintf("%s starts one execution every %s; `burst` is how many may start together", c.Ref, c.Pace)
}

// FieldChange is one changed key. An empty text means unset.
type FieldChange struct {
	Key string `json:"key"`
	Old string `json:"old"`
	New string `json:"new"`
}

// limits reports whether the change affects more than texts.
func (c Change) limits() bool {
	for _, f := range c.Fields {
		switch f.Key {
		case "name", "description", "tags":
		default:
			return true
		}
	}
	return false
}

// state is a policy as the table has it or should have it.
type state struct{ store.CatalogPoliciesRow }

// row is the parameter of the statement that writes it.
func (s state) row() store.ApplyPolicyParams {
	return store.ApplyPolicyParams{
		Ref: s.Ref, Name: s.Name, Description: s.Description, Tags: s.Tags,
		Action: s.Action, ActionRef: s.ActionRef, Pack: s.Pack, PackRef: s.PackRef,
		Kind: s.Kind, Threshold: s.Threshold, WindowSeconds: s.WindowSeconds, Burst: s.Burst, Method: s.Method,
		Parameters: s.Parameters, MaxQueueLength: s.MaxQueueLength, QueueTimeoutSeconds: s.QueueTimeoutSeconds,
		RetryPlace: s.RetryPlace, AdaptiveMin: s.AdaptiveMin, AdaptiveLatencyMs: s.AdaptiveLatencyMs,
	}
}

// fields are the values in the order of the keys, in the form for users. Two values are equal if
// and only if their texts are.
func (s state) fields() [][2]string {
	return [][2]string{
		{"kind", s.Kind},
		{"action", s.ActionRef},
		{"pack", s.PackRef},
		{"threshold", number(s.Threshold)},
		{"window", duration(s.WindowSeconds, time.Second)},
		{"burst", number(s.Burst)},
		{"method", s.Method},
		{"parameters", list(s.Parameters)},
		{"max_queue_length", number(s.MaxQueueLength)},
		{"queue_timeout", duration(s.QueueTimeoutSeconds, time.Second)},
		{"retry_place", s.RetryPlace},
		{"adaptive.min", number(s.AdaptiveMin)},
		{"adaptive.latency", duration(s.AdaptiveLatencyMs, time.Millisecond)},
		{"name", s.Name},
		{"description", s.Description},
		{"tags", list(s.Tags)},
	}
}

func difference(was, wanted state) []FieldChange {
	changes := []FieldChange{}
	before := was.fields()
	for i, after := range wanted.fields() {
		if before[i] != after {
			changes = append(changes, FieldChange{Key: after[0], Old: before[i][1], New: after[1]})
		}
	}
	return changes
}

func number(n int32) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(int(n))
}

func duration(n int32, unit time.Duration) string {
	if n == 0 {
		return ""
	}
	return config.DurationText(time.Duration(n) * unit)
}

// list joins texts with commas; a text with a comma or a quote, and an empty one, is quoted, so
// that different lists stay different.
func list(texts []string) string {
	shown := make([]string, len(texts))
	for i, text := range texts {
		if text == "" || strings.ContainsAny(text, `,"\`) {
			text = strconv.Quote(text)
		}
		shown[i] = text
	}
	return strings.Join(shown, ", ")
}
