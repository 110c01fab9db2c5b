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
