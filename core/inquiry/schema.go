package inquiry

import (
	"encoding/json"
	"errors"
)

// checkSchema refuses what cannot be a schema of responses.
func checkSchema(raw json.RawMessage) error {
	if _, ok := object(raw); !ok {
		return errors.New("it must be an object")
	}
	return nil
}

// checkResponse lists what of a response its schema does not allow.
func checkResponse(_, _ json.RawMessage) []string { return nil }
