package inquiry

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/attune-go/attune/core/bounds"
	"github.com/attune-go/attune/core/expr"
	"github.com/attune-go/attune/core/schema"
	"github.com/attune-go/attune/core/secret"
)

// checkSchema refuses what cannot be a schema of responses.
func checkSchema(raw json.RawMessage) error {
	if _, ok := object(raw); !ok {
		return errors.New("it must be an object")
	}
	_, err := schema.Parse(raw)
	return err
}

// passedOver lists what a schema says that is not understood, so that anything would be
// taken there.
func passedOver(raw json.RawMessage) []string {
	if none(raw) {
		return nil
	}
	s, err := schema.Parse(raw)
	if err != nil {
		return nil // that is said already
	}
	return s.Ignored()
}

// response is an answer that was read.
type response struct {
	value any // numbers keep their digits
	// public is what people see: secrets are markers in it. sealed are these.
	public json.RawMessage
	sealed []secret.Sealed
}

// mistakes reads a response and lists all reasons why it cannot be taken: what no
// database takes, and what the schema does not allow. A schema that cannot be read
// allows everything: whoever wrote the row did not check it, and nobody could ever
// answer.
func mistakes(form, raw json.RawMessage) (*response, []string) {
	if len(bytes.TrimSpace(raw)) == 0 {
		return nil, []string{"there is no answer"}
	}
	if len(raw) > MaxResponse {
		return nil, []string{fmt.Sprintf("it is larger than %d bytes", MaxResponse)}
	}
	var number any
	if json.Unmarshal(raw, &number) != nil { // also of a number that is too large for any
		return nil, []string{"it is not JSON"}
	}
	if err := bounds.JSON("response", raw); err != nil {
		return nil, []string{err.Error()}
	}
	r := &response{public: raw}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	if err := decoder.Decode(&r.value); err != nil && !errors.Is(err, io.EOF) {
		return nil, []string{"it is not JSON"}
	}
	var found []string
	if !none(form) {
		if s, err := schema.Parse(form); err == nil {
			for _, mistake := range s.Validate(expr.Value(r.value)) {
				found = append(found, mistake.String())
			}
		}
	}
	for _, path := range secret.Paths(r.value) {
		found = append(found,
			strings.TrimSpace(strings.ReplaceAll(strings.TrimPrefix(path, "/"), "/", ".")+
				" is the marker of a secret, not its value"))
	}
	return r, found
}

// seal takes the secrets out of a response, as its schema marks them. They belong to
// the result of the execution, in which the response is under its own key.
func (r *response) seal(form json.RawMessage, keys secret.Keyring) error {
	if none(form) {
		return nil
	}
	s, err := schema.Parse(form)
	if err != nil || !s.HasSecrets() {
		return nil //nolint:nilerr // a schema that cannot be read marks nothing
	}
	public, taken := secret.Take(r.value, s.SecretPaths(r.value))
	if len(taken) == 0 {
		return nil
	}
	for _, one := range taken {
		value, err := keys.Seal(one.Value)
		if err != nil {
			return err
		}
		path := KeyResponse + one.Path
		r.sealed = append(r.sealed,
			secret.Sealed{Path: "/" + path, Kind: secret.FromSchema, Ref: "/" + path, Value: value})
	}
	r.public, err = json.Marshal(public)
	return err
}
