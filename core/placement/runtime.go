package placement

import "strings"

var runtimeNames = map[string]string{
	"nodejs": "node", "node.js": "node",
	"python3": "python",
	"bash":    "shell", "sh": "shell",
	"builtin": "native", "standalone": "native",
	"rb":     "ruby",
	"golang": "go",
	"jdk":    "java", "openjdk": "java",
	"perl5":   "perl",
	"rscript": "r",
}

// NormalizeRuntime maps the spellings of a runtime's name to one: node, nodejs and node.js are
// node; bash, sh and shell are shell; and so on. Other names become lower case.
func NormalizeRuntime(name string) string {
	lower := strings.ToLower(strings.TrimSpace(name))
	if known, ok := runtimeNames[lower]; ok {
		return known
	}
	return lower
}

// NormalizeRuntimes maps every name and drops repetitions, keeping order.
func NormalizeRuntimes(names []string) []string {
	out := make([]string, 0, len(names))
	seen := map[string]bool{}
	for _, name := range names {
		n := NormalizeRuntime(name)
		if n != "" && !seen[n] {
			seen[n] = true
			out = append(out, n)
		}
	}
	return out
}
