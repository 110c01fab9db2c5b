package catalog

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/attune-go/attune/core/pack"
	"github.com/attune-go/attune/core/store"
)

// How is what an application does to an item.
type How string

// What an application does.
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
	Fields []FieldChange // of a new item what it sets
	Place  pack.Place    // where the file describes it
	Folder string        // the pack in whose folder a policy is described; empty: in none
	// Pace is how far apart the starts of a rate are that was applied, which its threshold
	// does not tell; zero for all else.
	Pace time.Duration
	// Superseded is the newer concurrency policy of the same scope that counts in
	// place of this one; empty: none.
	Superseded string
}

// NoEffect says that a newer policy counts in place of this one.
func (c Change) NoEffect() string {
	return c.Ref + " has no effect: " + c.Superseded + " is a newer concurrency policy of the same scope"
}

// Paced says how far apart starts are; empty if that is not known.
func (c Change) Paced() string {
	if c.Pace == 0 {
		return ""
	}
	return fmt.Sprintf("%s starts one execution every %s; `burst` is how many may start together", c.Ref, c.Pace)
}

// FieldChange is one key that differs. An empty text means that it is not set.
type FieldChange struct {
	Key string `json:"key"`
	Old string `json:"old"`
	New string `json:"new"`
}

// limits reports whether the change is about more than words.
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

// row is the statement that makes the table have it.
func (s state) row() store.ApplyPolicyParams {
	return store.ApplyPolicyParams{
		Ref: s.Ref, Name: s.Name, Description: s.Description, Tags: s.Tags,
		Action: s.Action, ActionRef: s.ActionRef, Pack: s.Pack, PackRef: s.PackRef,
		Kind: s.Kind, Threshold: s.Threshold, WindowSeconds: s.WindowSeconds, Burst: s.Burst, Method: s.Method,
		Parameters: s.Parameters, MaxQueueLength: s.MaxQueueLength, QueueTimeoutSeconds: s.QueueTimeoutSeconds,
		RetryPlace: s.RetryPlace, AdaptiveMin: s.AdaptiveMin, AdaptiveLatencyMs: s.AdaptiveLatencyMs,
	}
}

// fields are the values in the order of the keys, as people read them. Two
// values are the same if and only if their texts are.
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

// difference lists the fields that are not the same.
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

// duration writes 1h instead of 1h0m0s.
func duration(n int32, unit time.Duration) string {
	if n == 0 {
		return ""
	}
	text := (time.Duration(n) * unit).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// list writes texts one after the other; one that holds a comma or a quote, or
// nothing, stands in quotes, so that different lists stay different.
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
