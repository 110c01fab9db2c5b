package pack

import (
	"slices"

	"github.com/attune-go/attune/core/placement"
)

// wellKnown are the runtimes that workers detect, with the names that they announce.
var wellKnown = []struct {
	short, name string
	aliases     []any
}{
	{"go", "Go", []any{"go", "golang"}},
	{"java", "Java", []any{"java", "jdk", "openjdk"}},
	{"nodejs", "Node.js", []any{"node", "nodejs", "node.js"}},
	{"perl", "Perl", []any{"perl", "perl5"}},
	{"python", "Python", []any{"python", "python3"}},
	{"r", "R", []any{"r", "rscript"}},
	{"ruby", "Ruby", []any{"ruby", "rb"}},
	{"shell", "Shell", []any{"shell", "bash", "sh"}},
}

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
		for _, known := range wellKnown {
			if placement.NormalizeRuntime(known.short) != normal {
				continue
			}
			supplied.Items = append(slices.Clip(supplied.Items), &Item{
				Kind: KindRuntime, Ref: "core." + known.short, Place: item.At("runtime"),
				Columns: map[string]any{
					"name": known.name, "aliases": known.aliases, "distributions": emptyObject,
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
