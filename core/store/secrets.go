package store

import (
	"context"
	"fmt"

	"github.com/attune-go/attune/core/secret"
)

// AddSecret adds a value of an entity to the parameters of InsertSecretValues.
func AddSecret(to *InsertSecretValuesParams, entity string, id int64, value secret.Sealed) {
	to.EntityTypes = append(to.EntityTypes, entity)
	to.EntityIds = append(to.EntityIds, id)
	to.JsonPaths = append(to.JsonPaths, value.Path)
	to.SourceKinds = append(to.SourceKinds, value.Kind)
	to.SourceRefs = append(to.SourceRefs, value.Ref)
	to.EncryptedValues = append(to.EncryptedValues, string(value.Value))
	to.KeyHashes = append(to.KeyHashes, value.KeyHash)
}

// ReadSecrets reads the rows of the sources; missing rows are missing in the result. It takes one
// statement for each type of entity.
func ReadSecrets(ctx context.Context, q *Queries, sources []secret.Source) (map[secret.Source]secret.Sealed, error) {
	entities := map[string][]int64{}
	wanted := map[secret.Source]bool{}
	for _, source := range sources {
		entities[source.Entity] = append(entities[source.Entity], source.ID)
		wanted[source] = true
	}
	found := make(map[secret.Source]secret.Sealed, len(sources))
	for entity, ids := range entities {
		rows, err := q.ReadSecretValues(ctx, ids, entity)
		if err != nil {
			return nil, fmt.Errorf("read the secrets of %d %s: %w", len(ids), entity, err)
		}
		for _, row := range rows {
			source := secret.Source{Entity: entity, ID: row.EntityID, Path: row.JsonPath}
			if wanted[source] {
				found[source] = sealed(row)
			}
		}
	}
	return found, nil
}

// SecretsOf reads all values of one entity.
func SecretsOf(ctx context.Context, q *Queries, entity string, id int64) ([]secret.Sealed, error) {
	rows, err := q.ReadSecretValues(ctx, []int64{id}, entity)
	if err != nil {
		return nil, fmt.Errorf("read the secrets of %s %d: %w", entity, id, err)
	}
	values := make([]secret.Sealed, len(rows))
	for i, row := range rows {
		values[i] = sealed(row)
	}
	return values, nil
}

func sealed(row ReadSecretValuesRow) secret.Sealed {
	return secret.Sealed{
		Path: row.JsonPath, Kind: row.SourceKind, Ref: row.SourceRef, Value: row.EncryptedValue,
		KeyHash: row.EncryptionKeyHash,
	}
}
