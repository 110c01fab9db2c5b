package worker

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/attune-go/attune/core/secret"
	"github.com/attune-go/attune/core/worker/process"
)

// withheld are variables of the worker's environment that processes do not get: the configuration
// of Attune, and the logins of its database and broker.
var withheld = struct{ prefixes, names []string }{
	prefixes: []string{"ATTUNE_", "PG"},
	names: []string{
		"AMQP_URL", "CLOUDAMQP_URL", "DATABASE_URL", "POSTGRES_PASSWORD", "RABBITMQ_DEFAULT_PASS",
		"RABBITMQ_URL",
	},
}

// HideSecrets removes configuration and logins from the environment of this process, which its
// children would inherit. It also keeps processes of the same user from reading its memory and its
// initial environment. Call it after the configuration was read. It fails where the platform cannot
// protect memory.
func HideSecrets() error {
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		if public := strings.HasPrefix(name, "ATTUNE_") && !strings.HasPrefix(name, "ATTUNE__"); isWithheld(name) &&
			!public {
			_ = os.Unsetenv(name) // fails only for invalid names
		}
	}
	return process.Shield()
}

func isWithheld(name string) bool {
	return slices.Contains(withheld.names, name) ||
		slices.ContainsFunc(withheld.prefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// baseEnv is the environment of every process: the worker's own without the withheld variables.
func (c Config) baseEnv() []string {
	var env []string
	for _, entry := range os.Environ() {
		if name, _, _ := strings.Cut(entry, "="); !isWithheld(name) {
			env = append(env, entry)
		}
	}
	env = append(env, "ATTUNE_API_URL="+c.APIURL, "ATTUNE_ARTIFACTS_DIR="+c.ArtifactsDir,
		"ATTUNE_RUNTIME_ENVS_DIR="+c.RuntimeEnvsDir)
	return append(env, c.Env...)
}

// environment is the environment of the process of an execution, without the delivery of its
// parameters.
func (r *runner) environment(row started, params json.RawMessage, limit time.Duration) []string {
	env := append(slices.Clip(r.env),
		"ATTUNE_EXEC_ID="+strconv.FormatInt(row.ID, 10),
		variable("ATTUNE_ACTION", row.ActionRef),
		variable("ATTUNE_PACK_REF", text(row.PackRef)))
	if row.RuleRef != "" {
		env = append(env, variable("ATTUNE_RULE", row.RuleRef), variable("ATTUNE_TRIGGER", row.TriggerRef))
	}
	if token := r.token(row, limit); token != "" {
		env = append(env, "ATTUNE_API_TOKEN="+token)
	}
	return append(env, contextVariables(params)...)
}

// contextVariables are the fields of the parameter context as variables.
func contextVariables(params json.RawMessage) []string {
	var given struct {
		Context map[string]json.RawMessage `json:"context"`
	}
	if json.Unmarshal(params, &given) != nil {
		return nil // there is no context, or it is no object
	}
	var env []string
	for _, key := range slices.Sorted(maps.Keys(given.Context)) {
		name := "ATTUNE_CONTEXT_" + strings.ToUpper(key)
		if !envName(name) {
			continue
		}
		value := string(given.Context[key])
		var text string
		if json.Unmarshal(given.Context[key], &text) == nil && value != "null" {
			value = text
		}
		env = append(env, variable(name, value))
	}
	return env
}

// token is the API token of the execution; empty if it has none.
func (r *runner) token(row started, limit time.Duration) string {
	if len(row.PermissionSetRefs) == 0 || r.cfg.Tokens == nil {
		return ""
	}
	issued, err := r.cfg.Tokens.Sign(secret.ExecutionClaims{
		ExecutionID: row.ID, ActionRef: row.ActionRef, Identity: row.Executor, PermissionSetRefs: row.PermissionSetRefs,
		WorkflowActionRef: row.ParentRef, Timeout: limit,
	})
	if err != nil {
		r.logger.Warn("Action runs without an API token", "execution_id", row.ID, "action_ref", row.ActionRef, "error",
			err)
		return ""
	}
	return issued
}

// envName reports whether an environment can hold a variable of this name.
func envName(name string) bool { return name != "" && !strings.ContainsAny(name, "=\x00") }

// variable is an entry of an environment, which cannot hold U+0000.
func variable(name, value string) string { return name + "=" + strings.ReplaceAll(value, "\x00", "") }

// lookup finds the last entry of a name.
func lookup(env []string, name string) string {
	for _, entry := range slices.Backward(env) {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value
		}
	}
	return ""
}
