package rule

import (
	"bytes"
	"errors"
	"time"

	"github.com/attune-go/attune/core/expr"
)

// Params are the parameters of a rule's action, before templates are rendered.
type Params struct {
	rule   string
	values map[string]any
}

// Subject is the firing rule, for its parameters.
type Subject struct {
	ID  int64
	Ref string
	// PackConfig is the configuration of the rule's pack, a value of package expr.
	PackConfig any
	// Now is system.timestamp.
	Now time.Time
}

// ParseParams reads the parameters of a rule and checks their templates. The error
// is an *Error.
func ParseParams(rule string, raw []byte) (*Params, error) {
	p := &Params{rule: rule, values: map[string]any{}}
	if len(bytes.TrimSpace(raw)) == 0 {
		return p, nil
	}
	value, err := expr.FromJSON(raw)
	if err != nil {
		return nil, p.wrong(err)
	}
	switch v := value.(type) {
	case nil:
		return p, nil
	case map[string]any:
		p.values = v
	default:
		return nil, p.wrong(errors.New("they must be an object"))
	}
	// Rendering fails for the same reasons with any values.
	if _, err := p.Render(Event{}, Subject{}); err != nil {
		return nil, err
	}
	return p, nil
}

func (p *Params) wrong(err error) error { return &Error{Rule: p.rule, Part: "action_params", Err: err} }

// Render fills in the templates. The error is an *Error.
func (p *Params) Render(event Event, subject Subject) (map[string]any, error) {
	if len(p.values) == 0 {
		return map[string]any{}, nil
	}
	rendered, err := expr.RenderPaths(p.values, Scope(event, subject))
	if err != nil {
		return nil, p.wrong(err)
	}
	object, _ := rendered.(map[string]any) // rendering keeps the kind of its input
	return object, nil
}

// Scope is what paths in templates refer to.
func Scope(event Event, subject Subject) map[string]any {
	return map[string]any{
		"event": event.names(false),
		"pack":  map[string]any{"config": subject.PackConfig},
		"system": map[string]any{
			"timestamp": timestamp(subject.Now),
			"rule":      map[string]any{"id": subject.ID, "ref": subject.Ref},
		},
	}
}
