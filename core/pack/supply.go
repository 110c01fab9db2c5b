package pack

import (
	"slices"

	"github.com/attune-go/attune/core/placement"
)

// Supply returns the set with the well-known runtimes that its actions name and that do not exist yet, since a fresh
// database has none.
func (s *Set) Supply(world World) *Set {
	supplied := *s
	after := world.With(s)
	for _, item := range s.Items {
		if item.Runtime == "" || after.FindRuntime(item.Runtime) != nil {
			continue
		}
		normal := placement.NormalizeRuntime(item.Runtime)
		for _, known := range placement.WellKnown {
			if known.Spellings[0] != normal {
				continue
			}
			supplied.Items = append(slices.Clip(supplied.Items), &Item{
				Kind: KindRuntime, Ref: known.Ref, Place: item.At("runtime"),
				Columns: map[string]any{
					"name": known.Name, "aliases": anyList(known.Spellings), "distributions": emptyObject,
					"execution_config": emptyObject,
					"description":      nil, "installation": nil,
				},
			})
			after = world.With(&supplied)
		}
	}
	slices.SortStableFunc(supplied.Items, func(x, y *Item) int { return order(x.Kind) - order(y.Kind) })
	return &supplied
}
