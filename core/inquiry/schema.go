package inquiry

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/attune-go/attune/core/expr"
	"github.com/attune-go/attune/core/jsonvalue"
	"github.com/attune-go/attune/core/schema"
	"github.com/attune-go/attune/core/secret"
)

// response is a decoded answer.
type response struct {
	value  any             // numbers keep their digits
	public json.RawMessage // has markers in place of the sealed secrets
	sealed []secret.Sealed
}

// mistakes decodes a response and lists all its mistakes: values that the database refuses, and contradictions to the
// schema. A malformed schema allows everything, since otherwise no answer would ever fit.
func mistakes(form, raw json.RawMessage) (*response, []string) {
	if len(bytes.TrimSpace(raw)) == 0 {
		return nil, []string{"there is no answer"}
	}
	if len(raw) > MaxResponse {
		return nil, []string{fmt.Sprintf("it is larger than %d bytes", MaxResponse)}
	}
	if !json.Valid(raw) {
		return nil, []string{"it is not JSON"}
	}
	if err := jsonvalue.Check("response", raw); err != nil {
		return nil, []string{err.Error()}
	}
	r := &response{public: raw}
	if err := jsonvalue.Decode(raw, &r.value); err != nil {
		return nil, []string{"it is not JSON"}
	}
	var found []string
	if !jsonvalue.None(form) {
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

// seal moves the secrets that the schema marks out of a response. Their paths are those in the result of the execution,
// which has the response under KeyResponse.
func (r *response) seal(form json.RawMessage, keys secret.Keyring) error {
	if jsonvalue.None(form) {
		return nil
	}
	s, err := schema.Parse(form)
	if err != nil || !s.HasSecrets() {
		return nil //nolint:nilerr // a malformed schema marks no secrets
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
