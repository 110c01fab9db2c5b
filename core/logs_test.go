package core_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// onlyNames are the attributes of log lines that name one thing, by other names of it.
var onlyNames = map[string]string{
	"execution": "execution_id", "exec_id": "execution_id", "id": "the kind and _id",
	"event": "event_id", "enforcement": "enforcement_id", "inquiry": "inquiry_id",
	"dead_letter": "dead_letter_id", "action": "action_ref", "trigger": "trigger_ref",
	"worker_name": "worker", "trace": "trace_id", "traceparent": "trace_id", "err": "error",
}

// logCalls are the methods that take attributes, with the position of the first one.
var logCalls = map[string]int{
	"DebugContext": 2, "InfoContext": 2, "WarnContext": 2, "ErrorContext": 2,
	"Debug": 1, "Info": 1, "Warn": 1, "Error": 1,
}

// A search for one attribute finds every line about a thing.
func TestLogAttributesHaveOneName(t *testing.T) {
	t.Parallel()
	var wrong []string
	seen := 0
	for _, top := range []string{"../core", "../cmd", "../tui"} {
		require.NoError(t, filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") ||
				strings.Contains(path, "lab/installation/") { // it imitates the lines of another program
				return err
			}
			files := token.NewFileSet()
			parsed, err := parser.ParseFile(files, path, nil, 0)
			if err != nil {
				return err
			}
			ast.Inspect(parsed, func(node ast.Node) bool {
				call, ok := node.(*ast.CallExpr)
				if !ok {
					return true
				}
				for _, key := range attributes(call) {
					seen++
					if better, ok := onlyNames[key]; ok {
						wrong = append(wrong,
							fmt.Sprintf("%s: attribute %q: write %s", files.Position(call.Pos()), key, better))
					}
				}
				return true
			})
			return nil
		}))
	}
	require.Greater(t, seen, 300, "the lines are found")
	slices.Sort(wrong)
	require.Empty(t, wrong, strings.Join(wrong, "\n"))
}

// attributes lists the constant names of the attributes of a log line.
func attributes(call *ast.CallExpr) (keys []string) {
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return nil
	}
	if pkg, ok := method.X.(*ast.Ident); ok && pkg.Name == "slog" && len(call.Args) == 2 { // slog.Int64 and its like
		return literals(call.Args[:1])
	}
	first, ok := logCalls[method.Sel.Name]
	if !ok || len(call.Args) <= first {
		return nil
	}
	if len(literals(call.Args[first-1:first])) == 0 { // the message
		if _, named := call.Args[first-1].(*ast.Ident); !named {
			return nil
		}
	}
	for i := first; i < len(call.Args); i += 2 {
		keys = append(keys, literals(call.Args[i:i+1])...)
	}
	return keys
}

func literals(list []ast.Expr) (texts []string) {
	for _, one := range list {
		if text, ok := one.(*ast.BasicLit); ok && text.Kind == token.STRING {
			if value, err := strconv.Unquote(text.Value); err == nil {
				texts = append(texts, value)
			}
		}
	}
	return texts
}
