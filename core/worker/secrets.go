package worker

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/attune-go/attune/core/jsonvalue"
	"github.com/attune-go/attune/core/schema"
	"github.com/attune-go/attune/core/secret"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/supervise"
)

// vault decrypts secrets in the parameters of an action, and encrypts them in its results.
type vault struct {
	keys   secret.Keyring
	read   func(ctx context.Context, execution int64) ([]secret.Sealed, error)
	logger *slog.Logger
	once   sync.Once // logs once that there is no key
}

func newVault(keys secret.Keyring, st *store.Store, logger *slog.Logger) *vault {
	return &vault{
		keys: keys, logger: logger,
		read: func(ctx context.Context, execution int64) ([]secret.Sealed, error) {
			return store.SecretsOf(ctx, st.Queries, secret.OfConfig, execution)
		},
	}
}

// open replaces the markers in the parameters of an execution by the values. Errors name
// parameters, never values.
func (v *vault) open(ctx context.Context, execution int64,
	config json.RawMessage,
) (json.RawMessage, *secret.Finder, error) {
	if !secret.Has(config) {
		return config, nil, nil
	}
	params, err := decode(config)
	if err != nil {
		return nil, nil, fmt.Errorf("read parameters: %w", err)
	}
	paths := secret.Paths(params)
	if len(paths) == 0 {
		return config, nil, nil
	}
	rows, err := v.rows(ctx, execution)
	if err != nil {
		return nil, nil, fmt.Errorf("read the secret parameters: %w", err)
	}
	var values []secret.Taken
	var plain []any
	for _, path := range paths {
		row, ok := rows[path]
		if !ok {
			return nil, nil, fmt.Errorf("the secret parameter %s has no value", parameter(path))
		}
		value, err := v.keys.Open(row)
		if err != nil {
			return nil, nil, fmt.Errorf("open the secret parameter %s: %w", parameter(path), err)
		}
		values, plain = append(values, secret.Taken{Path: path, Value: value}), append(plain, value)
	}
	known := new(secret.Finder).With(plain...)
	opened, err := json.Marshal(secret.Put(params, values))
	if err != nil {
		return nil, nil, fmt.Errorf("encode parameters: %w", err)
	}
	return opened, known, nil
}

// rows reads the secrets of an execution by path, for as long as the execution may run.
func (v *vault) rows(ctx context.Context, execution int64) (map[string]secret.Sealed, error) {
	list, err := retried(ctx, func(ctx context.Context) ([]secret.Sealed, error) { return v.read(ctx, execution) })
	if err != nil {
		return nil, err
	}
	rows := make(map[string]secret.Sealed, len(list))
	for _, row := range list {
		rows[row.Path] = row
	}
	return rows, nil
}

// retried repeats a read until the database answers, refuses, or the context ends.
func retried[T any](ctx context.Context, read func(context.Context) (T, error)) (T, error) {
	once := func() (T, error) {
		ctx, cancel := context.WithTimeout(ctx, statementTimeout)
		defer cancel()
		return read(ctx)
	}
	for pause := retryFirst; ; pause = min(2*pause, retryLongest) {
		value, err := once()
		if err == nil || store.Divisible(err) || !supervise.Sleep(ctx, pause) {
			return value, err
		}
	}
}

// seal removes secrets from a report: values that the action's result schema marks, and copies of
// secret parameters. Copies are hidden in texts and encrypted in data. Without a key, marked values
// are dropped. The acknowledgement of work-queue items stays readable for the engine if only the
// name of another member makes the data secret.
func (v *vault) seal(rep *report, outSchema json.RawMessage, known *secret.Finder) []secret.Sealed {
	for _, text := range []*string{&rep.Stdout, &rep.StderrLog, &rep.Error, &rep.OutputError} {
		*text = known.Hide(*text)
	}
	marked := bytes.Contains(outSchema, []byte(`"secret"`))
	if len(rep.Data) == 0 || (!marked && known.None()) {
		return nil
	}
	data, err := decode(rep.Data)
	if err != nil {
		return nil // cannot happen: it was parsed before
	}
	var paths []string
	if rules, err := schema.Parse(outSchema); err == nil && marked {
		paths = rules.SecretPaths(data)
	}
	public, taken := secret.Take(data, sealable(append(paths, known.In(data)...)))
	if len(taken) == 0 {
		return nil
	}
	if taken[0].Path == "" {
		rep.QueueAck = publicAck(data, paths, known)
	}
	raw, err := json.Marshal(public)
	if err != nil {
		raw, rep.OutputError = nil, "the data could not be encoded"
	}
	rep.Data = raw
	return v.sealAll(rep, taken)
}

func (v *vault) sealAll(rep *report, taken []secret.Taken) []secret.Sealed {
	sealed := make([]secret.Sealed, 0, len(taken))
	for _, one := range taken {
		value, err := v.keys.Seal(one.Value)
		if err != nil {
			v.once.Do(func() {
				v.logger.Warn("Secret results not stored, security.encryption_key is not set")
			})
			rep.OutputError = cmp.Or(rep.OutputError, "secret results were not kept: "+err.Error())
			return nil
		}
		sealed = append(sealed,
			secret.Sealed{Path: "/data" + one.Path, Kind: secret.FromSchema, Ref: one.Path, Value: value})
	}
	return sealed
}

// mostSealed is how many values of one result are encrypted one by one; beyond it the data is
// encrypted whole.
const mostSealed = 1000

// sealable removes paths below others of the list, and returns the whole if there are too many.
func sealable(paths []string) []string {
	all := make(map[string]bool, len(paths))
	for _, path := range paths {
		all[path] = true
	}
	var kept []string
	for path := range all {
		below := false
		for i := range len(path) {
			below = below || path[i] == '/' && all[path[:i]]
		}
		if !below {
			kept = append(kept, path)
		}
	}
	if len(kept) > mostSealed {
		return []string{""}
	}
	return kept
}

// publicAck is the acknowledgement of work-queue items without secrets, from data that is encrypted
// whole although the schema does not mark it whole.
func publicAck(data any, marked []string, known *secret.Finder) json.RawMessage {
	object, _ := data.(map[string]any)
	ack, ok := object["queue_ack"]
	if !ok || slices.Contains(marked, "") {
		return nil
	}
	paths := known.In(ack)
	for _, path := range marked {
		if below, ok := strings.CutPrefix(path, "/queue_ack"); ok && (below == "" || below[0] == '/') {
			paths = append(paths, below)
		}
	}
	ack, _ = secret.Take(ack, sealable(paths))
	raw, err := json.Marshal(ack)
	if err != nil {
		return nil
	}
	return raw
}

func parameter(path string) string {
	return strings.ReplaceAll(strings.TrimPrefix(path, "/"), "/", ".")
}

func decode(raw json.RawMessage) (value any, err error) {
	err = jsonvalue.Decode(raw, &value)
	return value, err
}
