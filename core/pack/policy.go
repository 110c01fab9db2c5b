package pack

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"

	"go.yaml.in/yaml/v3"

	"github.com/attune-go/attune/core/policy"
	"github.com/attune-go/attune/core/yamldoc"
)

// Policy is a policy of a file. A missing key without a default gives an empty text or 0.
type Policy struct {
	Ref         string   `yaml:"ref"`
	Name        string   `yaml:"name"` // default: the ref
	Description string   `yaml:"description"`
	Tags        []string `yaml:"tags"`

	// Action and Pack are the scope: the executions of one action, of one pack, or, without either, all.
	Pack   string `yaml:"pack" also:"pack_ref" null:"keep"`
	Action string `yaml:"action" also:"action_ref" null:"keep"`

	Kind                policy.Kind   `yaml:"kind" oneof:"concurrency rate quota"` // default: concurrency
	Threshold           int32         `yaml:"threshold" range:"1.."`
	Method              policy.Method `yaml:"method" oneof:"enqueue cancel"`          // default: enqueue
	Parameters          []string      `yaml:"parameters"`                             // paths of the group key
	WindowSeconds       int32         `yaml:"window" also:"window_seconds" unit:"1s"` // of a rate or quota
	Burst               int32         `yaml:"burst" range:"1.."`                      // of a rate
	MaxQueueLength      int32         `yaml:"max_queue_length" range:"1.."`
	QueueTimeoutSeconds int32
	RetryPlace          policy.Place
	AdaptiveMin         int32 // 0 for a fixed limit
	AdaptiveLatencyMS   int32

	// Folder is the ref of the pack in whose folder the file is, empty for none.
	Folder string

	// Place is the first line of the policy.
	Place Place

	places map[string]Place
}

// policyFile adds the keys that need their own conversion.
type policyFile struct {
	Policy
	QueueTimeout yamldoc.Field `yaml:"queue_timeout" also:"queue_timeout_seconds"`
	Place        policy.Place  `yaml:"retry_place" oneof:"back front"`
	Adaptive     yamldoc.Field `yaml:"adaptive"`
}

// adaptive are the keys below adaptive. adaptiveColumns are their other names.
type adaptive struct {
	Min       int32 `yaml:"min" range:"1.."`
	Latency   int32 `yaml:"latency" unit:"1ms"`
	LatencyMS int32 `yaml:"latency_ms" range:"1.."`
}

var adaptiveColumns = map[string]string{"adaptive_min": "min", "adaptive_latency_ms": "latency_ms"}

// At is the place of a key, or of the policy if the file does not have the key.
func (p *Policy) At(key string) Place {
	if at, ok := p.places[key]; ok {
		return at
	}
	return p.Place
}

func (p *Policy) given(key string) bool {
	_, ok := p.places[key]
	return ok
}

// policy reads one policy and checks it by itself.
func (r *reader) policy(node *yaml.Node) {
	if node.Kind != yaml.MappingNode {
		r.Mistakef(r.At(node), "this is not a policy: write a mapping with ref, threshold and so on")
		return
	}
	file := policyFile{Policy: Policy{
		Kind: policy.KindConcurrency, Method: policy.MethodEnqueue, Tags: []string{}, Parameters: []string{},
		Place: r.At(node), places: map[string]Place{},
	}}
	p, columns := &file.Policy, yamldoc.Fields{}
	given := r.Decode(node, &file, func(f yamldoc.Field) {
		if name, ok := adaptiveColumns[f.Name]; !ok {
			r.RefuseUnknown(f.Key, yamldoc.Names(yamldoc.KeysOf(file)), "")
		} else if !yamldoc.IsNull(f.Value) {
			columns[name] = f
		}
	})
	for name, f := range given {
		p.places[name] = r.At(f.Key)
	}
	if given.Sound("ref") {
		r.ref(given["ref"])
	}
	for name, to := range map[string]*string{"pack": &p.Pack, "action": &p.Action} {
		f := given[name]
		if f.Given() && (yamldoc.IsNull(f.Value) || f.Value.Kind == yaml.ScalarNode && f.Value.Value == "") {
			*to = "" // the scope would be larger than its author meant
			r.Mistakef(r.At(f.Key), "%s is empty: name one, or leave the key out", f.Key.Value)
		}
	}
	p.Parameters = r.paths(given["parameters"], p.Parameters)
	if f := file.QueueTimeout; f.Given() {
		if seconds, ok := yamldoc.Seconds(f.Value); ok && seconds == 0 {
			r.Mistakef(r.At(f.Value), "%s is %s, and no policy makes waiting endless: give a long time "+
				"such as 87600h, or leave it out and set executor.queue.queue_timeout_seconds to 0",
				f.Key.Value, yamldoc.Show(f.Value))
		} else {
			p.QueueTimeoutSeconds, _ = r.Units(f, time.Second)
		}
	}
	p.RetryPlace = file.Place
	adapts := r.adaptive(p, file.Adaptive, columns)
	if !p.given("ref") {
		r.Mistakef(p.Place, "the policy has no ref")
	}
	if !p.given("threshold") {
		r.Mistakef(p.Place, "the policy%s has no threshold", of(p))
	}
	if !given["kind"].Broken { // otherwise the allowed keys are unknown
		r.kindRules(p)
		r.adaptiveRules(p, adapts)
	}
	p.Name = cmp.Or(p.Name, p.Ref)
	r.policies = append(r.policies, *p)
}

// adaptive reads the keys below adaptive, also under the names of their columns.
func (r *reader) adaptive(p *Policy, f yamldoc.Field, columns yamldoc.Fields) (sound bool) {
	var form adaptive
	var given yamldoc.Fields
	if f.Given() {
		if f.Value.Kind != yaml.MappingNode {
			r.Mistakef(r.At(f.Value), "adaptive must be a mapping with min and latency")
			return false
		}
		given = r.Decode(f.Value, &form, func(f yamldoc.Field) {
			r.RefuseUnknown(f.Key, yamldoc.Names(yamldoc.KeysOf(form)), "adaptive.")
		})
	}
	for name, f := range given {
		p.places["adaptive."+name] = r.At(f.Key)
	}
	for _, name := range slices.Sorted(maps.Keys(columns)) {
		first, second := columns[name], given[name]
		if second.Given() {
			if second.Key.Line < first.Key.Line {
				first, second = second, first
			}
			r.Mistakef(r.At(second.Key), "adaptive.%s is given twice, also in line %d", name, first.Key.Line)
			continue
		}
		p.places["adaptive."+name] = r.At(first.Key)
		number, _ := r.Whole(first, 1, math.MaxInt32)
		if name == "min" {
			form.Min = int32(number)
		} else {
			form.LatencyMS = int32(number)
		}
	}
	p.AdaptiveMin, p.AdaptiveLatencyMS = form.Min, cmp.Or(form.Latency, form.LatencyMS)
	return true
}

func (r *reader) ref(f yamldoc.Field) {
	ref := f.Value.Value
	first, second, _ := strings.Cut(ref, ".")
	switch {
	case first == "" || second == "" || strings.Contains(second, "."):
		r.Mistakef(r.At(f.Value), "ref is %q; it must have one dot, as in core.limit", ref)
	case strings.ContainsFunc(ref, func(c rune) bool { return unicode.IsSpace(c) || yamldoc.Unprintable(c) }):
		r.Mistakef(r.At(f.Value), "ref is %q; it must not hold spaces", ref)
	case strings.ToLower(ref) != ref:
		r.Mistakef(r.At(f.Value), "ref is %q; it must be lower case", ref)
	}
}

// paths checks dotted paths and refuses duplicates.
func (r *reader) paths(f yamldoc.Field, given []string) []string {
	list := []string{}
	for i, path := range given {
		at := r.At(f.Value)
		if !f.Broken { // then every text has a node
			at = r.At(f.Value.Content[i])
		}
		switch {
		case slices.Contains(strings.Split(path, "."), ""):
			r.Mistakef(at, "parameters names %q; a path is names with dots between them, as in target.region", path)
		case slices.Contains(list, path):
			r.Mistakef(at, "parameters names %s twice", path)
		default:
			list = append(list, path)
		}
	}
	return list
}

func of(p *Policy) string {
	if p.Ref == "" {
		return ""
	}
	return " " + p.Ref
}

// kindRules checks the keys of single kinds.
func (r *reader) kindRules(p *Policy) {
	switch {
	case p.Kind == policy.KindConcurrency && p.given("window"):
		r.Mistakef(p.At("window"), "window is for the kinds rate and quota; this policy is of kind concurrency")
	case p.Kind != policy.KindConcurrency && !p.given("window"):
		r.Mistakef(p.Place, "the policy%s has no window, and one of kind %s needs it, for example window: 60s", of(p),
			p.Kind)
	}
	if p.Kind != policy.KindRate && p.given("burst") {
		r.Mistakef(p.At("burst"), "burst is for the kind rate; this policy is of kind %s", p.Kind)
	}
}

// adaptiveRules checks an adaptive limit, which only a concurrency policy of one action may have.
func (r *reader) adaptiveRules(p *Policy, sound bool) {
	keys := []string{"adaptive", "adaptive.min", "adaptive.latency", "adaptive.latency_ms"}
	first := slices.IndexFunc(keys, p.given)
	if first < 0 || !sound {
		return
	}
	if p.Kind != policy.KindConcurrency || !p.given("action") {
		r.Mistakef(p.At(keys[first]), "adaptive is for a concurrency policy of one action")
		return
	}
	if p.given("adaptive.latency") && p.given("adaptive.latency_ms") {
		r.Mistakef(p.At("adaptive.latency"), "adaptive has latency and latency_ms: keep one")
	}
	if !p.given("adaptive.min") {
		p.AdaptiveMin = 1
	}
	if p.Threshold > 0 && p.AdaptiveMin > p.Threshold {
		r.Mistakef(p.At("adaptive.min"), "adaptive.min is %d and above the threshold, %d", p.AdaptiveMin, p.Threshold)
	}
}
