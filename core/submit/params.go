package submit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/attune-go/attune/core/expr"
	"github.com/attune-go/attune/core/jsonvalue"
	"github.com/attune-go/attune/core/schema"
	"github.com/attune-go/attune/core/secret"
	"github.com/attune-go/attune/core/store"
)

// InvalidParamsError lists all mistakes in the parameters of a request.
type InvalidParamsError struct {
	Ref      string // of the action
	Mistakes []schema.Mistake
}

// Error lists the mistakes on one line.
func (e *InvalidParamsError) Error() string {
	return fmt.Sprintf("the parameters do not fit %s: %s", e.Ref, schema.Words(e.Mistakes))
}

// ErrSealed reports secret parameters that cannot be stored.
var ErrSealed = errors.New("secret parameters cannot be stored")

// Check returns the error that the request would have.
func (s *Submitter) Check(ctx context.Context, request Request) error {
	requests := []Request{request}
	configs, err := configsOf(requests)
	if err != nil {
		return err
	}
	actions, err := s.actions(ctx, requests)
	if err != nil {
		return err
	}
	_, err = s.examine(requests, configs, actions)
	return err
}

// sealed is a secret of a request, by its index: it has no id before it is stored.
type sealed struct {
	request int
	value   secret.Sealed
}

// examine checks all parameters against the schemas of their actions. In configs, markers replace
// the values that a schema marks as secret; examine returns these values.
func (s *Submitter) examine(requests []Request, configs []string, actions map[string]Action) ([]sealed, error) {
	schemas := make(map[string]*schema.Schema, len(actions))
	for ref, action := range actions {
		if len(action.ParamSchema) == 0 {
			continue
		}
		read, err := schema.Parse(action.ParamSchema)
		if err != nil {
			return nil, fmt.Errorf("request %s: its schema of parameters: %w", ref, err)
		}
		schemas[ref] = read
	}
	var all []sealed
	for i, request := range requests {
		rules := schemas[request.ActionRef]
		if rules == nil {
			continue
		}
		config, secrets, err := s.examineOne(request.ActionRef, configs[i], rules)
		if err != nil {
			return nil, err
		}
		configs[i] = config
		for _, one := range secrets {
			all = append(all, sealed{i, one})
		}
	}
	return all, nil
}

func (s *Submitter) examineOne(ref, config string, rules *schema.Schema) (string, []secret.Sealed, error) {
	params := map[string]any{}
	if config != "" {
		if err := jsonvalue.Decode([]byte(config), &params); err != nil {
			return "", nil, fmt.Errorf("request %s: %w", ref, ErrParams)
		}
	}
	values, _ := expr.Value(params).(map[string]any)
	mistakes := rules.ValidateParams(values, schema.AllowTemplates())
	for _, path := range secret.Paths(values) {
		mistakes = append(mistakes, schema.Mistake{
			Path: strings.ReplaceAll(path[1:], "/", "."), Text: "is the marker of a secret, not its value",
		})
	}
	if len(mistakes) > 0 {
		return "", nil, &InvalidParamsError{ref, mistakes}
	}
	if !rules.HasSecrets() {
		return config, nil, nil
	}
	public, secrets, err := s.keys.Hide(params, rules.SecretPaths(params))
	if err != nil {
		return "", nil, fmt.Errorf("request %s: %w: %w", ref, ErrSealed, err)
	}
	if len(secrets) == 0 {
		return config, nil, nil
	}
	stored, err := json.Marshal(public)
	if err != nil {
		return "", nil, fmt.Errorf("request %s: %w", ref, ErrParams)
	}
	return string(stored), secrets, nil
}

// insertSecrets stores the secrets of new requests.
func insertSecrets(ctx context.Context, tx *store.Tx, secrets []sealed, done []Requested) error {
	if len(secrets) == 0 {
		return nil
	}
	var rows store.InsertSecretValuesParams
	for _, one := range secrets {
		store.AddSecret(&rows, secret.OfConfig, done[one.request].ID, one.value)
	}
	if err := tx.InsertSecretValues(ctx, rows); err != nil {
		return fmt.Errorf("store %d secret parameters: %w", len(secrets), err)
	}
	return nil
}
