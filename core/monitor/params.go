package monitor

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/attune-go/attune/core/schema"
	"github.com/attune-go/attune/core/secret"
	"github.com/attune-go/attune/core/store"
)

// The bounds of searches by parameters.
const (
	// ChoiceBound is how many executions Choose looks at.
	ChoiceBound = 50_000
	// paramBound is how many executions a page looks at.
	paramBound = 5_000
	// paramsLine bounds the parameters of a row in a list, in runes.
	paramsLine = 300
	// paramDigits is the longest number that is compared as one.
	paramDigits = 40
)

const (
	// Masked stands in place of a secret on screens.
	Masked = "‹redacted›"
	// SecretNames fits the names of fields that are taken for secrets, whatever marks them.
	SecretNames = `(?i)pass(word|wd|phrase)|secret|token|api_?key|authorization|private_?key|credential` //nolint:gosec // names, no secret
)

var (
	secretName = regexp.MustCompile(SecretNames)
	// addressPassword is the password in an address such as amqp://user:password@host.
	addressPassword = regexp.MustCompile(`(://[^/\s:@"]*:)[^/\s@"]+@`)
)

// ParamMatch selects executions by one of their parameters. Texts, numbers and booleans
// match. Missing parameters, nulls, objects, lists and secrets do not: sealed ones, those
// that the action marks as secret, those with a name like SecretNames, and the passwords
// of addresses. Defaults of the action that the row does not hold, and
// parameters above MaxDocument bytes, are not looked at.
type ParamMatch struct {
	// Path names the parameter; dots lead into objects, and by number into lists.
	Path string `json:"path"`
	// Values are the texts of which one must match. A star stands for anything;
	// capitals do not matter.
	Values []string `json:"values"`
	// Not selects the executions that do not match.
	Not bool `json:"not,omitempty"`
}

// NamesSecret reports whether the parameter's name is one of a secret.
func (p *ParamMatch) NamesSecret() bool { return secretName.MatchString(p.Path) }

// expression is what the database compares.
func (p *ParamMatch) expression() string {
	if p.NamesSecret() {
		return "x^" // matches nothing
	}
	var parts []string
	add := func(value string) {
		pieces := strings.Split(value, "*")
		for i, piece := range pieces {
			pieces[i] = regexp.QuoteMeta(piece)
		}
		parts = append(parts, "^"+strings.Join(pieces, ".*")+"$")
	}
	for _, v := range p.Values {
		add(v)
		if number := trimmed(v); number != v {
			add(number)
		}
	}
	return strings.Join(parts, "|")
}

// trimmed writes a decimal number without trailing zeros, as the database does.
func trimmed(text string) string {
	if !strings.Contains(text, ".") || strings.Trim(text, "-.0123456789") != "" || len(text) > paramDigits {
		return text
	}
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

// hideSecrets names the parameters that may be secrets, by the actions that mark them.
func hideSecrets(ctx context.Context, tx *store.Tx, params []ParamMatch, sift *store.MonitorSiftParams) error {
	rows, err := tx.MonitorSecretSchemas(ctx, sift.Ids)
	if err != nil {
		return fmt.Errorf("read which parameters are secret: %w", err)
	}
	for _, r := range rows {
		for _, p := range params {
			if secretAt(r.ParamSchema, p.Path) {
				sift.SecretActions, sift.SecretParams = append(sift.SecretActions, r.Ref),
					append(sift.SecretParams, p.Path)
			}
		}
	}
	return nil
}

// maxIndex is the highest place of a list that a path may name.
const maxIndex = 1_000

// secretAt reports whether a schema marks the parameter at a path, or may do so.
func secretAt(rules []byte, path string) bool {
	marks, err := schema.Parse(rules)
	if err != nil {
		return true // no one can tell
	}
	for _, lists := range []bool{false, true} {
		var value any = ""
		names := strings.Split(path, ".")
		for _, name := range slices.Backward(names) {
			at, err := strconv.Atoi(name)
			switch {
			case err != nil || !lists:
				value = map[string]any{name: value}
			case at < 0 || at > maxIndex:
				return true
			default:
				items := make([]any, at+1)
				items[at] = value
				value = items
			}
		}
		if len(marks.SecretPaths(value)) > 0 {
			return true
		}
	}
	return false
}

// Chosen are the executions that a filter selects, in the order of its list.
type Chosen struct {
	Reading
	IDs []int64 `json:"ids"`
	// Looked is how many executions were looked at. Bounded is true when there are
	// further ones that were not, More when more match than were wanted.
	Looked  int64 `json:"looked"`
	Bounded bool  `json:"bounded"`
	More    bool  `json:"more"`
}

// Choose finds the executions that match a filter, at most so many, and looks at no more
// than ChoiceBound of those that its statuses, times and ids leave. Searches for one
// parent or by ids are not bounded so.
func (m *Monitor) Choose(ctx context.Context, filter ExecutionFilter, most int) (*Chosen, error) {
	c := &Chosen{IDs: []int64{}}
	filter.windowed = true
	filter.Limit = min(most, paramBound)
	err := m.Read(ctx, "executions", &c.Reading, func(ctx context.Context, tx *store.Tx, s Shape) error {
		for cursor := int64(0); ; {
			page, err := findExecutions(ctx, tx, s, filter, cursor)
			if err != nil {
				return err
			}
			c.IDs, c.Looked, cursor = append(c.IDs, page.ids...), c.Looked+page.looked, page.next
			if len(c.IDs) > most || len(c.IDs) == most && cursor != 0 {
				c.IDs, c.More = c.IDs[:most], true
				return nil
			}
			if cursor == 0 {
				return nil
			}
			if c.Looked >= ChoiceBound {
				c.Bounded = true
				return nil
			}
		}
	})
	return c, err
}

// readParams adds the parameters of a page, in a line each.
func readParams(ctx context.Context, tx *store.Tx, list []Execution) error {
	at := make(map[int64]int, len(list))
	for i := range list {
		at[list[i].ID] = i
	}
	rows, err := tx.MonitorParams(ctx, slices.Collect(maps.Keys(at)))
	if err != nil {
		return fmt.Errorf("read the parameters of %d executions: %w", len(list), err)
	}
	for _, r := range rows {
		list[at[r.ID]].Params = "(too long for a list)"
		if r.Config != "" {
			list[at[r.ID]].Params = ParamsLine(redacted(r.Config, []byte(r.ParamSchema), ""))
		}
	}
	return nil
}

// ParamsLine writes parameters in a line, sorted and named as filters name them. It is
// empty for parameters that are no JSON, as those that were cut are.
func ParamsLine(config string) string {
	decoder := json.NewDecoder(strings.NewReader(config))
	decoder.UseNumber()
	var value any
	if decoder.Decode(&value) != nil {
		return ""
	}
	line := []rune(strings.Join(flat("", value, nil), " "))
	if len(line) > paramsLine {
		return string(line[:paramsLine-1]) + "…"
	}
	return string(line)
}

// flat lists the parameters of a value.
func flat(path string, value any, into []string) []string {
	below := func(name string) string { return strings.TrimPrefix(path+"."+name, ".") }
	switch v := value.(type) {
	case map[string]any:
		if secret.IsMarker(v) {
			return append(into, path+"="+Masked)
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if v[name] != nil && secretName.MatchString(name) {
				into = append(into, below(name)+"="+Masked)
				continue
			}
			into = flat(below(name), v[name], into)
		}
	case []any:
		for i := range v {
			into = flat(below(strconv.Itoa(i)), v[i], into)
		}
	case nil:
	case string:
		v = addressPassword.ReplaceAllString(v, "${1}"+Masked+"@")
		if v == "" || strings.ContainsAny(v, " \t\r\n\"") {
			v = strconv.Quote(v)
		}
		return append(into, path+"="+v)
	default:
		return append(into, fmt.Sprintf("%s=%v", path, v))
	}
	return into
}
