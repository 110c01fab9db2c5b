package act

import (
	"maps"
	"slices"
)

// Kinds are all kinds of acts.
func Kinds() []Kind { return slices.Sorted(maps.Keys(acts)) }
