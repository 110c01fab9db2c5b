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
	// ChoiceBound is how many executions Choose reads.
	ChoiceBound = 50_000
	// paramBound is how many executions a page reads.
	paramBound = 5_000
	// paramsLine bounds the parameters of a row in runes.
	paramsLine = 300
	// paramDigits is the longest text that is compared as a number.
	paramDigits = 40
)

const (
	// Masked replaces a secret on screens.
	Masked = "‹redacted›"
	// SecretNames matches the names of fields that hold secrets even if no schema marks them.
	SecretNames = `(?i)pass(word|wd|phrase)|secret|token|api_?key|authorization|private_?key|credential` //nolint:gosec // names, no secret
)

var (
	secretName = regexp.MustCompile(SecretNames)
	// addressPassword is the password in an address such as amqp://user:password@host.
	addressPassword = regexp.MustCompile(`(://[^/\s:@"]*:)[^/\s@"]+@`)
)

// ParamMatch selects executions by a parameter. It matches texts, numbers and booleans. It never
// matches secrets: sealed or marked values, names like SecretNames and passwords in addresses.
// Defaults outside the row and parameters above MaxDocument bytes are not read.
type ParamMatch struct {
	// Path names the parameter. Dots lead into objects, numbers into lists.
	Path string `json:"path"`
	// Values are alternatives. A star matches anything, case does not matter.
	Values []string `json:"values"`
	Not    bool     `json:"not,omitempty"`
}

// NamesSecret reports whether the name is that of a secret.
func (p *ParamMatch) NamesSecret() bool { return secretName.MatchString(p.Path) }

// expression is the regular expression for the database.
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

// trimmed drops the trailing zeros of a decimal number, as the database does.
func trimmed(text string) string {
	if !strings.Contains(text, ".") || strings.Trim(text, "-.0123456789") != "" || len(text) > paramDigits {
		return text
	}
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

// hideSecrets excludes the parameters that their action marks as secret.
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

// maxIndex is the highest index of a list in a path.
const maxIndex = 1_000

// secretAt reports whether a schema may mark the parameter at a path as secret.
func secretAt(rules []byte, path string) bool {
	marks, err := schema.Parse(rules)
	if err != nil {
		return true // the schema cannot be read
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

// Chosen are the executions that a filter selects, in the order of the list.
type Chosen struct {
	Reading
	IDs []int64 `json:"ids"`
	// Bounded is true when the search stopped at its bound, More when more match than were
	// requested.
	Looked  int64 `json:"looked"`
	Bounded bool  `json:"bounded"`
	More    bool  `json:"more"`
}

// Choose finds at most so many executions that match a filter. It reads at most ChoiceBound of the
// rows that statuses, times and ids leave. Searches by parent or ids have no bound.
func (m *Monitor) Choose(ctx context.Context, filter ExecutionFilter, most int) (*Chosen, error) {
	c := &Chosen{IDs: []int64{}}
	filter.InOrder = true
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

// readParams adds the parameters of a page.
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

// ParamsLine writes parameters in one line, named as filters name them; empty if they are no JSON.
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

// flat appends the parameters of a value.
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
