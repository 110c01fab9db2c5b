package migrations

import (
	"context"
	"fmt"
	"strings"
)

// ignoredBound bounds the actions in Ignored.
const ignoredBound = 20

// Ignored lists the actions of an existing installation with max_retries or timeout_seconds. The published
// executor ignores both columns.
type Ignored struct {
	// Actions are the first of them by ref, More is the number of others.
	Actions []IgnoredAction `json:"actions"`
	More    int64           `json:"more,omitempty"`
}

// IgnoredAction is an action with its ignored columns.
type IgnoredAction struct {
	Ref            string `json:"ref"`
	MaxRetries     int64  `json:"max_retries"`
	TimeoutSeconds *int64 `json:"timeout_seconds"`
}

// String describes the actions in one line; empty without any.
func (i Ignored) String() string {
	if len(i.Actions) == 0 {
		return ""
	}
	names := make([]string, 0, len(i.Actions))
	for _, a := range i.Actions {
		var has []string
		if a.MaxRetries > 0 {
			has = append(has, fmt.Sprintf("max_retries %d", a.MaxRetries))
		}
		if a.TimeoutSeconds != nil {
			has = append(has, fmt.Sprintf("timeout_seconds %d", *a.TimeoutSeconds))
		}
		names = append(names, a.Ref+" ("+strings.Join(has, ", ")+")")
	}
	line := "the published executor runs these actions once, whatever they say: " + strings.Join(names, ", ")
	if i.More > 0 {
		line += fmt.Sprintf(" and %d more", i.More)
	}
	return line +
		"; executor.retry.honour_action_max_retries and executor.honour_action_timeout_seconds decide about them"
}

func (s *session) ignored(ctx context.Context) (Ignored, error) {
	var found Ignored
	var err error
	found.Actions, err = scanRows(ctx, s, func(a *IgnoredAction) []any {
		return []any{&a.Ref, &a.MaxRetries, &a.TimeoutSeconds, &found.More}
	}, `SELECT ref, coalesce(max_retries, 0), timeout_seconds, count(*) OVER () FROM action
		WHERE max_retries > 0 OR timeout_seconds IS NOT NULL ORDER BY ref LIMIT $1`, ignoredBound)
	if err != nil {
		return found, fmt.Errorf("list actions with max_retries or timeout_seconds: %w", err)
	}
	found.More -= int64(len(found.Actions))
	return found, nil
}
