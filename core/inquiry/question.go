package inquiry

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/attune-go/attune/core/nearest"
)

// Action is the action of tasks that only ask.
const Action = "core.ask"

// DefaultPrompt is what core.ask asks when its task does not say.
const DefaultPrompt = "A response is required to go on"

// The keys of results that are about questions.
const (
	// KeyAsk is under which a result asks.
	KeyAsk = "__inquiry"
	// KeyID is the inquiry from which the result of a core.ask comes.
	KeyID = "__inquiry_id"
	// KeyResponse is under which it has what was answered.
	KeyResponse = "response"
)

// maxTimeout bounds how long a question may be open.
const maxTimeout = 10 * 365 * 24 * time.Hour

// Question is what a person is to be asked.
type Question struct {
	// ID is the inquiry's, from Reserve; Execution is about which is asked.
	ID        int64
	Execution int64
	Prompt    string
	// Schema is what the response must look like; nil takes any.
	Schema json.RawMessage
	// AssignedTo is the identity that is to answer; nil is anybody.
	AssignedTo *int64
	// Timeout is for how long it may be answered; 0 is for ever.
	Timeout time.Duration
}

// ErrMalformed says that a question cannot be asked as it was written.
var ErrMalformed = errors.New("the question is malformed")

// Asked reads the question that the result of a completed execution asks: the object
// under __inquiry at the top level or, since workers put what an action printed below
// data, there. asked is false if there is none; a question that cannot be read is an
// error that is ErrMalformed and says why.
func Asked(result json.RawMessage) (q Question, asked bool, err error) {
	fields, ok := object(result)
	if !ok {
		return q, false, nil
	}
	raw := fields[KeyAsk]
	if none(raw) {
		inner, _ := object(fields["data"])
		raw = inner[KeyAsk]
	}
	if none(raw) {
		return q, false, nil
	}
	q, err = parse(raw)
	return q, true, err
}

// parameters are those that core.ask has; the last one is said by its task.
var parameters = []string{"prompt", "response_schema", "assigned_to", "timeout_seconds"}

// Inherited leaves of parameters that a task passes on as they are those that core.ask
// has: they were not written for it.
func Inherited(config json.RawMessage) json.RawMessage {
	fields, ok := object(config)
	if !ok {
		return config
	}
	maps.DeleteFunc(fields, func(name string, _ json.RawMessage) bool { return !slices.Contains(parameters, name) })
	raw, err := json.Marshal(fields)
	if err != nil {
		return config // cannot happen: it was read from JSON
	}
	return raw
}

// strict refuses parameters that core.ask has not, and a schema of which some would be
// passed over: whoever wrote them meant something.
func strict(fields map[string]json.RawMessage) error {
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if slices.Contains(parameters, name) {
			continue
		}
		text := "it has " + strings.Join(parameters[:3], ", ")
		if near := nearest.Of(name, parameters[:3]); near != "" {
			text = "did you mean " + near + "?"
		}
		return fmt.Errorf("%w: %s has no parameter %s: %s", ErrMalformed, Action, name, text)
	}
	if ignored := passedOver(fields["response_schema"]); len(ignored) > 0 {
		return fmt.Errorf("%w: response_schema: %s", ErrMalformed, strings.Join(ignored, "; "))
	}
	return nil
}

// FromConfig makes the question of a core.ask from the parameters of its execution.
// timeout is that of its task, 0 if it has none. A parameter that core.ask has not is
// refused, and so is a schema with something in it that is not understood.
func FromConfig(given json.RawMessage, timeout time.Duration) (Question, error) {
	if none(given) {
		given = json.RawMessage(`{}`)
	}
	fields, ok := object(given)
	if !ok {
		return Question{}, fmt.Errorf("%w: the parameters of %s are not an object", ErrMalformed, Action)
	}
	if err := strict(fields); err != nil {
		return Question{}, err
	}
	delete(fields, "timeout_seconds") // the task says it
	if none(fields["prompt"]) {
		fields["prompt"] = quoted(DefaultPrompt)
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
	if raw := fields["response_schema"]; !none(raw) {
		q.Schema = raw
		if err := checkSchema(raw); err != nil {
			return q, fmt.Errorf("%w: response_schema: %w", ErrMalformed, err)
		}
	}
	if raw := fields["assigned_to"]; !none(raw) {
		id, ok := whole(raw)
		if !ok || id < 1 {
			return q, fmt.Errorf("%w: assigned_to must be the number of an identity", ErrMalformed)
		}
		q.AssignedTo = &id
	}
	if raw := fields["timeout_seconds"]; !none(raw) {
		seconds, ok := whole(raw)
		if !ok || seconds < 1 || seconds > int64(maxTimeout/time.Second) {
			return q, fmt.Errorf("%w: timeout_seconds must be a whole number above zero, of ten years at most",
				ErrMalformed)
		}
		q.Timeout = time.Duration(seconds) * time.Second
	}
	return q, nil
}

// whole reads a whole number, also one written like 60.0 or, as templates leave
// them, like "60".
func whole(raw json.RawMessage) (int64, bool) {
	text := strings.Trim(string(bytes.TrimSpace(raw)), `"`)
	var n float64
	if json.Unmarshal([]byte(text), &n) != nil || n != math.Trunc(n) || math.Abs(n) > 1<<53 {
		return 0, false
	}
	return int64(n), true
}

// object reads the fields of a JSON object.
func object(raw json.RawMessage) (map[string]json.RawMessage, bool) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || raw[0] != '{' {
		return nil, false
	}
	var fields map[string]json.RawMessage
	return fields, json.Unmarshal(raw, &fields) == nil
}

func none(raw json.RawMessage) bool {
	raw = bytes.TrimSpace(raw)
	return len(raw) == 0 || string(raw) == "null"
}

func quoted(text string) json.RawMessage {
	raw, err := json.Marshal(text)
	if err != nil {
		return json.RawMessage(`""`) // cannot happen
	}
	return raw
}
