package catalog

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/attune-go/attune/core/pack"
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
