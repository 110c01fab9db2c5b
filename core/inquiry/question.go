package inquiry

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/attune-go/attune/core/jsonvalue"
	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/core/schema"
)

// Action is the action of tasks that only ask.
const Action = "core.ask"

// DefaultPrompt is the prompt of a core.ask without one.
const DefaultPrompt = "A response is required to go on"

// The keys of results about questions.
const (
	// KeyAsk has the question of a result.
	KeyAsk = "__inquiry"
	// KeyResponse has the answer in the result of a core.ask.
	KeyResponse = "response"
)

const maxTimeout = 10 * 365 * 24 * time.Hour

// Question is a question to a person.
type Question struct {
	ID        int64 // of the inquiry, assigned by Prepare
	Execution int64
	Prompt    string
	// Schema is the schema of the response; nil allows any.
	Schema json.RawMessage
	// AssignedTo is the only identity that may answer; nil allows any.
	AssignedTo *int64
	// Timeout expires the inquiry; 0 is for ever.
	Timeout time.Duration
}

// ErrMalformed means that a question cannot be asked.
var ErrMalformed = errors.New("the question is malformed")

// parameters are those of core.ask; the last one is set by its task.
var parameters = []string{"prompt", "response_schema", "assigned_to", "timeout_seconds"}

// Inherited keeps the parameters of core.ask of a task that passes its own parameters on unchanged. The others were not
// written for it, so they are no mistakes.
func Inherited(config json.RawMessage) json.RawMessage {
	fields, ok := object(config)
	if !ok {
		return config
	}
	maps.DeleteFunc(fields, func(name string, _ json.RawMessage) bool { return !slices.Contains(parameters, name) })
	raw, err := json.Marshal(fields)
	if err != nil {
		return config // cannot happen: the fields come from JSON
	}
	return raw
}

// strict refuses unknown parameters, and a schema with unknown keywords, which would check less than it says.
func strict(fields map[string]json.RawMessage) error {
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if slices.Contains(parameters, name) {
			continue
		}
		text := "it has " + strings.Join(parameters[:3], ", ")
		if near := phrase.Nearest(name, parameters[:3]); near != "" {
			text = "did you mean " + near + "?"
		}
		return fmt.Errorf("%w: %s has no parameter %s: %s", ErrMalformed, Action, name, text)
	}
	if raw := fields["response_schema"]; !jsonvalue.None(raw) {
		if s, err := schema.Parse(raw); err == nil && len(s.Ignored()) > 0 { // fromFields reports err
			return fmt.Errorf("%w: response_schema: %s", ErrMalformed, strings.Join(s.Ignored(), "; "))
		}
	}
	return nil
}

// FromConfig makes the question of a core.ask from the parameters of its execution. timeout is that of its task, 0 for
// none. Unknown parameters and unknown keywords of the schema are refused.
func FromConfig(given json.RawMessage, timeout time.Duration) (Question, error) {
	if jsonvalue.None(given) {
		given = json.RawMessage(`{}`)
	}
	fields, ok := object(given)
	if !ok {
		return Question{}, fmt.Errorf("%w: the parameters of %s are not an object", ErrMalformed, Action)
	}
	if err := strict(fields); err != nil {
		return Question{}, err
	}
	delete(fields, "timeout_seconds") // that of the task counts
	if jsonvalue.None(fields["prompt"]) {
		fields["prompt"] = json.RawMessage(strconv.Quote(DefaultPrompt))
	}
	q, err := fromFields(fields)
	if err != nil {
		return q, err
	}
	if timeout < 0 || timeout > maxTimeout {
		return q, fmt.Errorf("%w: a timeout of %s is not possible", ErrMalformed, timeout)
	}
	q.Timeout = timeout
	return q, nil
}

// Waiting is the result of the execution of a core.ask while its question is open.
func (q Question) Waiting() json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"inquiry_id":%d,"status":"pending"}`, q.ID))
}

func parse(raw json.RawMessage) (Question, error) {
	fields, ok := object(raw)
	if !ok {
		return Question{}, fmt.Errorf("%w: %s is not an object", ErrMalformed, KeyAsk)
	}
	return fromFields(fields)
}

func fromFields(fields map[string]json.RawMessage) (q Question, err error) {
	if json.Unmarshal(fields["prompt"], &q.Prompt) != nil || strings.TrimSpace(q.Prompt) == "" {
		return q, fmt.Errorf("%w: prompt must be a text", ErrMalformed)
	}
	if raw := fields["response_schema"]; !jsonvalue.None(raw) {
		q.Schema = raw
		if _, ok := object(raw); !ok {
			return q, fmt.Errorf("%w: response_schema: it must be an object", ErrMalformed)
		}
		if _, err := schema.Parse(raw); err != nil {
			return q, fmt.Errorf("%w: response_schema: %w", ErrMalformed, err)
		}
	}
	if raw := fields["assigned_to"]; !jsonvalue.None(raw) {
		id, ok := whole(raw)
		if !ok || id < 1 {
			return q, fmt.Errorf("%w: assigned_to must be the number of an identity", ErrMalformed)
		}
		q.AssignedTo = &id
	}
	if raw := fields["timeout_seconds"]; !jsonvalue.None(raw) {
		seconds, ok := whole(raw)
		if !ok || seconds < 1 || seconds > int64(maxTimeout/time.Second) {
			return q, fmt.Errorf("%w: timeout_seconds must be a whole number above zero, of ten years at most",
				ErrMalformed)
		}
		q.Timeout = time.Duration(seconds) * time.Second
	}
	return q, nil
}

// whole reads a whole number, also like 60.0 or, as templates write it, like "60".
func whole(raw json.RawMessage) (int64, bool) {
	text := strings.Trim(string(bytes.TrimSpace(raw)), `"`)
	var n float64
	if json.Unmarshal([]byte(text), &n) != nil || n != math.Trunc(n) || math.Abs(n) > 1<<53 {
		return 0, false
	}
	return int64(n), true
}

func object(raw json.RawMessage) (map[string]json.RawMessage, bool) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || raw[0] != '{' {
		return nil, false
	}
	var fields map[string]json.RawMessage
	return fields, json.Unmarshal(raw, &fields) == nil
}
