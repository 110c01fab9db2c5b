package operator

import (
	"maps"
	"slices"

	"github.com/attune-go/attune/tui/act"
)

// Kinds are all kinds of acts.
func Kinds() []act.Kind { return slices.Sorted(maps.Keys(planners)) }
