package inquiry

import (
	"encoding/json"
	"errors"

	"github.com/attune-go/attune/core/schema"
)

// checkSchema refuses what cannot be a schema of responses.
func checkSchema(raw json.RawMessage) error {
	if _, ok := object(raw); !ok {
		return errors.New("it must be an object")
	}
	_, err := schema.Parse(raw)
	return err
}

// checkResponse lists what of a response its schema does not allow. A schema that
// cannot be read allows everything: whoever wrote the row did not check it, and nobody
// could ever answer.
func checkResponse(raw json.RawMessage, response any) []string {
	s, err := schema.Parse(raw)
	if err != nil {
		return nil
	}
	found := s.Validate(response)
	mistakes := make([]string, len(found))
	for i, mistake := range found {
		mistakes[i] = mistake.String()
	}
	return mistakes
}
