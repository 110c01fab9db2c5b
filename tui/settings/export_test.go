package settings

import (
	"fmt"
	"strings"

	"github.com/attune-go/attune/core/yamldoc"
)

// Template is a commented file with every setting.
func Template() string {
	var b strings.Builder
	write := func(indent string, keys []yamldoc.Key) {
		for _, key := range keys {
			if example := key.Tag.Get("example"); example != "" {
				fmt.Fprintf(&b, "%-42s # %s\n", indent+key.Name+": "+example, helpOf(key.Name, keys))
			}
		}
	}
	write("", yamldoc.KeysOf(file{}))
	b.WriteString("contexts:\n  staging:\n")
	write("    ", yamldoc.KeysOf(Context{}))
	return b.String()
}
