package worker

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/attune-go/attune/core/schema"
	"github.com/attune-go/attune/core/secret"
	"github.com/attune-go/attune/core/store"
)

// vault puts secrets into the parameters of an action, and takes them out of what
// it has given.
type vault struct {
	keys   secret.Keyring
	read   func(ctx context.Context, execution int64) ([]secret.Sealed, error)
	logger *slog.Logger
	once   sync.Once // to say that there is no key
}

func newVault(keys secret.Keyring, st *store.Store, logger *slog.Logger) *vault {
	return &vault{keys: keys, logger: logger, read: func(ctx context.Context, execution int64) ([]secret.Sealed, error) {
		return store.SecretsOf(ctx, st.Queries, secret.OfConfig, execution)
	}}
}

// open puts the values in place of the markers in the parameters of an execution.
// The errors name parameters, never values.
func (v *vault) open(ctx context.Context, execution int64, config json.RawMessage) (json.RawMessage, hidden, error) {
	if !secret.Has(config) {
		return config, hidden{}, nil
	}
	params, err := decode(config)
	if err != nil {
		return nil, hidden{}, fmt.Errorf("read parameters: %w", err)
	}
	paths := secret.Paths(params)
	if len(paths) == 0 {
		return config, hidden{}, nil
	}
	rows, err := v.rows(ctx, execution)
	if err != nil {
		return nil, hidden{}, fmt.Errorf("read the secret parameters: %w", err)
	}
	var values []secret.Taken
	for _, path := range paths {
		row, ok := rows[path]
		if !ok {
			return nil, hidden{}, fmt.Errorf("the secret parameter %s has no value", parameter(path))
		}
		value, err := v.keys.Open(row)
		if err != nil {
			return nil, hidden{}, fmt.Errorf("open the secret parameter %s: %w", parameter(path), err)
		}
		values = append(values, secret.Taken{Path: path, Value: value})
	}
	opened, err := json.Marshal(secret.Put(params, values))
	if err != nil {
		return nil, hidden{}, fmt.Errorf("encode parameters: %w", err)
	}
	return opened, hide(values), nil
}

// rows reads the secrets of an execution by path, as long as it takes and the
// execution may run.
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

// retried reads again until the database answers, refuses, or the context ends.
func retried[T any](ctx context.Context, read func(context.Context) (T, error)) (T, error) {
	once := func() (T, error) {
		ctx, cancel := context.WithTimeout(ctx, statementTimeout)
		defer cancel()
		return read(ctx)
	}
	for pause := retryFirst; ; pause = min(2*pause, retryLongest) {
		value, err := once()
		if err == nil || notAccepted(err) || !sleep(ctx, pause) {
			return value, err
		}
	}
}

// seal takes what is secret out of a report: what the action's schema of results
// marks, and whatever repeats a secret that the action was given. The latter is
// blackened in texts and sealed in data. Without a key, what the schema marks is
// not kept at all.
func (v *vault) seal(rep *report, outSchema json.RawMessage, known hidden) []secret.Sealed {
	rep.Stdout, rep.StderrLog = known.blacken(rep.Stdout), known.blacken(rep.StderrLog)
	rep.Error, rep.OutputError = known.blacken(rep.Error), known.blacken(rep.OutputError)
	marked := bytes.Contains(outSchema, []byte(`"secret"`))
	if len(rep.Data) == 0 || (!marked && known.none()) {
		return nil
	}
	data, err := decode(rep.Data)
	if err != nil {
		return nil // it is JSON, which was parsed before
	}
	var paths []string
	if rules, err := schema.Parse(outSchema); err == nil && marked {
		paths = rules.SecretPaths(data)
	}
	paths = append(paths, known.in(data, "")...)
	public, taken := secret.Take(data, paths)
	if len(taken) == 0 {
		return nil
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
				v.logger.Warn("Secret results are not kept, because there is no security.encryption_key")
			})
			rep.OutputError = cmp.Or(rep.OutputError, "secret results were not kept: "+err.Error())
			return nil
		}
		sealed = append(sealed, secret.Sealed{Path: "/data" + one.Path, Kind: secret.FromSchema, Ref: one.Path, Value: value})
	}
	return sealed
}

func parameter(path string) string {
	return strings.ReplaceAll(strings.TrimPrefix(path, "/"), "/", ".")
}

// decode reads JSON whose numbers keep their digits.
func decode(raw json.RawMessage) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var value any
	err := decoder.Decode(&value)
	return value, err
}

// hidden are the secrets that an action was given.
type hidden struct {
	texts    []string // the longest first
	replacer *strings.Replacer
}

// shortest is how long a secret must be to be looked for: shorter ones are found in
// everything.
const shortest = 4

const black = "***"

func hide(values []secret.Taken) hidden { return hidden{}.with(values) }

// with adds further secrets.
func (h hidden) with(values []secret.Taken) hidden {
	if len(values) == 0 {
		return h
	}
	h.texts = slices.Clone(h.texts)
	for _, one := range values {
		h.texts = append(h.texts, texts(one.Value)...)
	}
	slices.SortFunc(h.texts, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	h.texts = slices.Compact(h.texts)
	var pairs []string
	for _, text := range h.texts {
		pairs = append(pairs, text, black)
		if raw, err := json.Marshal(text); err == nil && len(raw) != len(text)+2 {
			pairs = append(pairs, string(raw[1:len(raw)-1]), black) // as it stands in JSON
		}
	}
	h.replacer = strings.NewReplacer(pairs...)
	return h
}

// texts are all that are in a value.
func texts(value any) []string {
	var all []string
	switch v := value.(type) {
	case string:
		if len(v) >= shortest {
			all = append(all, v)
		}
	case []any:
		for _, item := range v {
			all = append(all, texts(item)...)
		}
	case map[string]any:
		for _, item := range v {
			all = append(all, texts(item)...)
		}
	}
	return all
}

func (h hidden) none() bool { return len(h.texts) == 0 }

func (h hidden) blacken(text string) string {
	if h.none() || text == "" {
		return text
	}
	return h.replacer.Replace(text)
}

// in lists the JSON pointers of the texts of a value that repeat a secret.
func (h hidden) in(value any, path string) []string {
	var found []string
	switch v := value.(type) {
	case string:
		if h.blacken(v) != v {
			found = append(found, path)
		}
	case []any:
		for i, item := range v {
			found = append(found, h.in(item, secret.Join(path, strconv.Itoa(i)))...)
		}
	case map[string]any:
		for name, item := range v {
			found = append(found, h.in(item, secret.Join(path, name))...)
		}
	}
	return found
}
