package pack

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"go.yaml.in/yaml/v3"

	"github.com/attune-go/attune/core/policy"
)

// policy reads one policy and checks the rules that it must keep by itself.
func (r *reader) policy(node *yaml.Node) {
	p := Policy{
		Kind: policy.KindConcurrency, Method: policy.MethodEnqueue, Tags: []string{}, Parameters: []string{},
		Place: r.at(node), places: map[string]Place{},
	}
	broken := map[string]bool{}
	for _, f := range r.fields(node, policyKeys, "") {
		r.take(&p, f, broken)
	}
	r.rules(&p, broken)
	if p.Name == "" {
		p.Name = p.Ref
	}
	r.policies = append(r.policies, p)
}

// take reads one key. It may have been given in another form already.
func (r *reader) take(p *Policy, f field, broken map[string]bool) {
	if first, twice := p.places[f.name]; twice {
		r.mistakef(r.at(f.key), "%s is given twice, also in line %d", f.name, first.Line)
		return
	}
	p.places[f.name] = r.at(f.key)
	switch {
	case f.name != "adaptive":
		broken[f.name] = !r.read(p, f)
	case f.value.Kind != yaml.MappingNode:
		r.mistakef(r.at(f.value), "adaptive must be a mapping with min and latency")
		broken[f.name] = true
	default:
		for _, inner := range r.fields(f.value, adaptiveKeys, "adaptive.") {
			r.take(p, inner, broken)
		}
	}
}

// read stores the value of one key and reports whether it could be used.
func (r *reader) read(p *Policy, f field) bool {
	switch f.name {
	case "ref":
		return r.ref(f, &p.Ref)
	case "name":
		return r.text(f, &p.Name)
	case "description":
		return r.text(f, &p.Description)
	case "tags":
		return r.texts(f, &p.Tags)
	case "pack":
		return r.scope(f, &p.Pack)
	case "action":
		return r.scope(f, &p.Action)
	case "kind":
		return oneOf(r, f, &p.Kind, policy.KindConcurrency, policy.KindRate, policy.KindQuota)
	case "threshold":
		return r.number(f, &p.Threshold)
	case "method":
		return oneOf(r, f, &p.Method, policy.MethodEnqueue, policy.MethodCancel)
	case "parameters":
		return r.paths(f, &p.Parameters)
	case "window":
		return r.duration(f, time.Second, &p.WindowSeconds)
	case "burst":
		return r.number(f, &p.Burst)
	case "max_queue_length":
		return r.number(f, &p.MaxQueueLength)
	case "queue_timeout":
		return r.duration(f, time.Second, &p.QueueTimeoutSeconds)
	case "retry_place":
		return oneOf(r, f, &p.RetryPlace, policy.PlaceBack, policy.PlaceFront)
	case "adaptive.min":
		return r.number(f, &p.AdaptiveMin)
	case "adaptive.latency":
		return r.duration(f, time.Millisecond, &p.AdaptiveLatencyMS)
	case "adaptive.latency_ms":
		return r.number(f, &p.AdaptiveLatencyMS)
	}
	return false
}

func (r *reader) text(f field, to *string) bool {
	if f.value.Kind != yaml.ScalarNode {
		r.mistakef(r.at(f.value), "%s must be a text", f.key.Value)
		return false
	}
	if strings.ContainsRune(f.value.Value, 0) {
		r.mistakef(r.at(f.value), "%s holds a character that cannot be stored", f.key.Value)
		return false
	}
	*to = f.value.Value
	return true
}

// scope reads the ref of an action or a pack. An empty one is refused: the
// policy would be about more than somebody meant.
func (r *reader) scope(f field, to *string) bool {
	if isNull(f.value) || f.value.Kind == yaml.ScalarNode && f.value.Value == "" {
		r.mistakef(r.at(f.key), "%s is empty: name one, or leave the key out", f.key.Value)
		return false
	}
	return r.text(f, to)
}

func (r *reader) texts(f field, to *[]string) bool {
	if f.value.Kind != yaml.SequenceNode {
		r.mistakef(r.at(f.value), "%s must be a list of texts", f.key.Value)
		return false
	}
	sound, list := true, []string{}
	for _, item := range f.value.Content {
		var text string
		item = follow(item)
		if isNull(item) {
			r.mistakef(r.at(item), "%s must be a list of texts, and one is empty", f.key.Value)
			sound = false
			continue
		}
		if !r.text(field{f.name, f.key, item}, &text) {
			sound = false
			continue
		}
		list = append(list, text)
	}
	*to = list
	return sound
}

// ref reads the reference of a policy.
func (r *reader) ref(f field, to *string) bool {
	if !r.text(f, to) {
		return false
	}
	first, second, _ := strings.Cut(*to, ".")
	switch {
	case first == "" || second == "" || strings.Contains(second, "."):
		r.mistakef(r.at(f.value), "ref is %q; it must have one dot, as in core.limit", *to)
	case strings.ContainsFunc(*to, func(c rune) bool { return unicode.IsSpace(c) || unprintable(c) }):
		r.mistakef(r.at(f.value), "ref is %q; it must not hold spaces", *to)
	case strings.ToLower(*to) != *to:
		r.mistakef(r.at(f.value), "ref is %q; it must be lower case", *to)
	default:
		return true
	}
	return false
}

// paths reads dotted paths, each of which may stand once.
func (r *reader) paths(f field, to *[]string) bool {
	var given []string
	sound := r.texts(f, &given)
	whole := sound
	seen, list := map[string]bool{}, []string{}
	for i, path := range given {
		at := r.at(f.value)
		if whole { // every text has its node
			at = r.at(f.value.Content[i])
		}
		switch {
		case slices.Contains(strings.Split(path, "."), ""):
			r.mistakef(at, "parameters names %q; a path is names with dots between them, as in target.region", path)
			sound = false
		case seen[path]:
			r.mistakef(at, "parameters names %s twice", path)
			sound = false
		default: // what is no path is not looked for in schemas
			list = append(list, path)
		}
		seen[path] = true
	}
	*to = list
	return sound
}

// oneOf reads one of a few words.
func oneOf[T ~string](r *reader, f field, to *T, allowed ...T) bool {
	texts := make([]string, len(allowed))
	for i, value := range allowed {
		if f.value.Kind == yaml.ScalarNode && f.value.Value == string(value) {
			*to = value
			return true
		}
		texts[i] = string(value)
	}
	last := len(texts) - 1
	r.mistakef(r.at(f.value), "%s is %s; it must be %s or %s",
		f.key.Value, show(f.value), strings.Join(texts[:last], ", "), texts[last])
	return false
}

// number reads a whole number of at least 1 that the database can store.
func (r *reader) number(f field, to *int32) bool {
	if f.value.Kind != yaml.ScalarNode || f.value.ShortTag() != "!!int" {
		r.mistakef(r.at(f.value), "%s is %s; it must be a whole number", f.key.Value, show(f.value))
		return false
	}
	var number int64
	if err := f.value.Decode(&number); err != nil {
		number = math.MaxInt64 // the tag says it is one, so it is too large
	}
	switch {
	case number < 1:
		r.mistakef(r.at(f.value), "%s is %s; it must be at least 1", f.key.Value, show(f.value))
	case number > math.MaxInt32:
		r.mistakef(r.at(f.value), "%s is %s; it can be at most %d", f.key.Value, show(f.value), math.MaxInt32)
	default:
		*to = int32(number)
		return true
	}
	return false
}

// duration reads a number of seconds, or a form such as 1m30s, and stores it
// in whole units.
func (r *reader) duration(f field, unit time.Duration, to *int32) bool {
	seconds, ok := secondsOf(f.value)
	units := seconds / unit.Seconds()
	switch {
	case !ok:
		r.mistakef(r.at(f.value), "%s is %s; it must be a number of seconds or a form like 1m30s", f.key.Value, show(f.value))
	case units > math.MaxInt32:
		r.mistakef(r.at(f.value), "%s is %s; it can be at most %d seconds", f.key.Value, show(f.value),
			int64(math.MaxInt32*unit.Seconds()))
	case units == 0 && f.name == "queue_timeout":
		r.mistakef(r.at(f.value), "%s is %s, and no policy makes waiting endless: give a long time such as 87600h, or leave it out and "+
			"set executor.queue.queue_timeout_seconds to 0", f.key.Value, show(f.value))
	case units < 1:
		r.mistakef(r.at(f.value), "%s is %s; it must be at least %s", f.key.Value, show(f.value), unit)
	case math.Abs(units-math.Round(units)) > 1e-6:
		r.mistakef(r.at(f.value), "%s is %s; it must be a multiple of %s", f.key.Value, show(f.value), unit)
	default:
		*to = int32(math.Round(units))
		return true
	}
	return false
}

// secondsOf reads a plain number or Go's notation.
func secondsOf(node *yaml.Node) (float64, bool) {
	if node.Kind != yaml.ScalarNode {
		return 0, false
	}
	switch node.ShortTag() {
	case "!!int", "!!float":
		var number float64
		err := node.Decode(&number)
		return number, err == nil && !math.IsNaN(number)
	case "!!str":
		duration, err := time.ParseDuration(node.Value)
		return duration.Seconds(), err == nil
	}
	return 0, false
}

// maxShown bounds how much of a value a mistake repeats.
const maxShown = 40

// show is a value as it was written, short and on one line.
func show(node *yaml.Node) string {
	switch node.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	default:
	}
	text := node.Value
	if runes := []rune(text); len(runes) > maxShown {
		text = string(runes[:maxShown]) + "…"
	}
	if tag := node.ShortTag(); tag == "!!int" || tag == "!!float" || tag == "!!bool" {
		return text
	}
	return strconv.Quote(text)
}

func unprintable(c rune) bool { return !unicode.IsPrint(c) }
