package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"github.com/attune-go/attune/core/schema"
	"github.com/attune-go/attune/core/secret"
	"github.com/attune-go/attune/core/store"
)

// keystore reads the keys that an existing installation gives its actions.
type keystore struct {
	keys   secret.Keyring
	read   func(ctx context.Context, action int64) ([]store.KeysOfActionRow, error)
	logger *slog.Logger
	warned sync.Map // refs of keys that could not be opened
}

// openKeystore returns nil without a table of keys: our own schema has none.
func openKeystore(ctx context.Context, keys secret.Keyring, st *store.Store, logger *slog.Logger) (*keystore, error) {
	has, err := st.HasKeystore(ctx)
	if err != nil {
		return nil, fmt.Errorf("find the keystore: %w", err)
	}
	if !has {
		return nil, nil
	}
	return &keystore{keys: keys, read: st.KeysOfAction, logger: logger}, nil
}

// merge adds the keys of the system, of the pack and of the action to the parameters, by name; they
// override the execution's own. A key that cannot be opened fails the execution if the action
// declares a parameter of that name or owns the key; otherwise it is omitted. Encrypted values, and
// values whose parameter is marked secret, are hidden in the results.
func (k *keystore) merge(
	ctx context.Context, row started, params json.RawMessage, known *secret.Finder,
) (json.RawMessage, *secret.Finder, error) {
	if k == nil || row.Action == nil {
		return params, known, nil
	}
	rows, err := retried(ctx, func(ctx context.Context) ([]store.KeysOfActionRow, error) {
		return k.read(ctx, *row.Action)
	})
	if err != nil {
		return nil, nil, fmt.Errorf("read the keystore for %s: %w", row.ActionRef, err)
	}
	if len(rows) == 0 {
		return params, known, nil
	}
	merged := map[string]json.RawMessage{}
	if len(params) > 0 {
		if err := json.Unmarshal(params, &merged); err != nil {
			return nil, nil, fmt.Errorf("add keys to the parameters of %s: %w", row.ActionRef, err)
		}
	}
	rules, err := schema.Parse(row.ParamSchema)
	if err != nil {
		rules, _ = schema.Parse(nil) // an invalid schema stops no action
	}
	values, encrypted := map[string]any{}, map[string]bool{}
	for _, key := range rows {
		value, err := k.open(key)
		if err != nil && (key.Owner == "action" || slices.Contains(rules.Names(), key.Name)) {
			return nil, nil, fmt.Errorf("open the key %s for the parameter %s: %w", key.Ref, key.Name, err)
		}
		if err != nil {
			if _, said := k.warned.LoadOrStore(key.Ref, true); !said {
				k.logger.WarnContext(ctx, "Key of the keystore left out of parameters, it cannot be decrypted",
					"key", key.Ref, "error", err)
			}
			delete(values, key.Name) // a key of a wider owner has another value
			continue
		}
		values[key.Name], encrypted[key.Name] = value, key.Encrypted
	}
	secrets := rules.SecretPaths(values)
	for name, value := range values {
		if merged[name], err = json.Marshal(value); err != nil {
			return nil, nil, fmt.Errorf("add the key %s to the parameters of %s: %w", name, row.ActionRef, err)
		}
		if encrypted[name] {
			secrets = append(secrets, secret.Join("", name))
		}
	}
	_, taken := secret.Take(values, secrets)
	raw, err := json.Marshal(merged)
	for _, one := range taken {
		known = known.With(one.Value)
	}
	return raw, known, err
}

func (k *keystore) open(row store.KeysOfActionRow) (any, error) {
	if !row.Encrypted {
		return decode(row.Value)
	}
	return k.keys.Open(secret.Sealed{Value: row.Value, KeyHash: row.EncryptionKeyHash})
}
