package migrations

import "strings"

// The engine's needs of an existing schema. A test of the store compares the columns with the ones that
// the engine's statements and triggers read or write.

type expectedLabel struct{ name, labels string }

var expectedLabels = []expectedLabel{
	{
		"execution_status_enum",
		"requested scheduling scheduled running completed failed canceling cancelled timeout abandoned",
	},
	{"enforcement_status_enum", "created processed disabled"},
	{"enforcement_condition_enum", "any all"},
	{"inquiry_status_enum", "pending responded timeout cancelled"},
	{"policy_method_enum", "cancel enqueue"},
	{"worker_type_enum", "local remote container"},
	{"worker_role_enum", "action sensor"},
	{"worker_status_enum", "active inactive busy error"},
	{"artifact_retention_enum", "versions days hours minutes"},
}

// expectedTable lists columns as name:type, alternatives separated by a bar.
type expectedTable struct{ name, columns string }

var expectedTables = []expectedTable{
	{name: "identity", columns: "id:bigint login:text frozen:boolean"},
	{name: "pack", columns: `
		id:bigint ref:text label:text description:text version:text conf_schema:jsonb config:jsonb meta:jsonb
		tags:text[] runtime_deps:text[] dependencies:text[] is_standard:boolean created:timestamptz updated:timestamptz`},
	{name: "runtime", columns: `
		id:bigint ref:text pack:bigint pack_ref:text description:text name:text aliases:text[] distributions:jsonb
		installation:jsonb execution_config:jsonb`},
	{
		name:    "runtime_version",
		columns: "id:bigint runtime:bigint version:text execution_config:jsonb is_default:boolean available:boolean",
	},
	{name: "action", columns: `
		id:bigint ref:text pack:bigint pack_ref:text label:text description:text entrypoint:text runtime:bigint
		param_schema:jsonb out_schema:jsonb parameter_delivery:text parameter_format:text output_format:text
		is_adhoc:boolean timeout_seconds:integer max_retries:integer runtime_version_constraint:text
		accesses_mcp:boolean default_execution_permission_set_refs:text[]
		log_retention_policy:artifact_retention_enum log_retention_limit:integer
		artifact_retention_policy:artifact_retention_enum artifact_retention_limit:integer workflow_def:bigint
		required_worker_runtimes:jsonb worker_selector:jsonb worker_tolerations:jsonb worker_affinity:jsonb
		created:timestamptz updated:timestamptz`},
	{name: "sensor", columns: "pack:bigint runtime:bigint"},
	{name: "trigger", columns: `
		id:bigint ref:text pack:bigint pack_ref:text label:text description:text enabled:boolean is_adhoc:boolean
		param_schema:jsonb out_schema:jsonb webhook_enabled:boolean created:timestamptz updated:timestamptz`},
	{name: "event", columns: `
		id:bigint trigger:bigint trigger_ref:text payload:jsonb source_ref:text created:timestamptz rule:bigint
		rule_ref:text`},
	{name: "rule", columns: `
		id:bigint ref:text pack:bigint pack_ref:text label:text description:text action:bigint action_ref:text
		trigger:bigint trigger_ref:text conditions:jsonb action_params:jsonb trigger_params:jsonb
		permission_set_refs:text[] enabled:boolean is_adhoc:boolean owner_identity:bigint created:timestamptz
		updated:timestamptz`},
	{name: "enforcement", columns: `
		id:bigint rule:bigint rule_ref:text trigger_ref:text config:jsonb event:bigint
		status:enforcement_status_enum payload:jsonb condition:enforcement_condition_enum conditions:jsonb
		created:timestamptz resolved_at:timestamptz`},
	{name: "execution", columns: `
		id:bigint action:bigint action_ref:text config:jsonb env_vars:jsonb parent:bigint enforcement:bigint
		executor:bigint permission_set_refs:text[] artifact_retention_policy:artifact_retention_enum
		artifact_retention_limit:integer worker_selector:jsonb worker_tolerations:jsonb worker_affinity:jsonb
		worker:bigint status:execution_status_enum result:jsonb started_at:timestamptz created:timestamptz
		workflow_def:bigint workflow_task:jsonb retry_count:integer max_retries:integer retry_reason:text
		original_execution:bigint updated:timestamptz`},
	{name: "execution_secret_value", columns: `
		entity_type:text entity_id:bigint json_path:text source_kind:text source_ref:text encrypted_value:jsonb
		encryption_key_hash:text`},
	{name: "worker", columns: `
		id:bigint name:text worker_type:worker_type_enum worker_role:worker_role_enum host:text port:integer
		status:worker_status_enum capabilities:jsonb meta:jsonb last_heartbeat:timestamptz cordoned:boolean
		cordon_reason:text cordoned_by:bigint cordoned_at:timestamptz created:timestamptz updated:timestamptz`},
	{name: "inquiry", columns: `
		id:bigint execution:bigint prompt:text response_schema:jsonb assigned_to:bigint status:inquiry_status_enum
		response:jsonb timeout_at:timestamptz responded_at:timestamptz created:timestamptz updated:timestamptz`},
	{name: "policy", columns: `
		id:bigint ref:text pack:bigint pack_ref:text action:bigint action_ref:text parameters:text[]
		method:policy_method_enum threshold:integer name:text description:text tags:text[] created:timestamptz
		updated:timestamptz`},
	{name: "queue_stats", columns: `
		action_id:bigint queue_length:integer active_count:integer max_concurrent:integer
		oldest_enqueued_at:timestamptz total_enqueued:bigint total_completed:bigint last_updated:timestamptz`},
	{name: "execution_admission_state", columns: `
		id:bigint action_id:bigint group_key:text group_key_normalized:text max_concurrent:integer
		next_queue_order:bigint total_enqueued:bigint total_completed:bigint updated:timestamptz`},
	{name: "execution_admission_entry", columns: `
		id:bigint state_id:bigint execution_id:bigint status:text queue_order:bigint enqueued_at:timestamptz activated_at:timestamptz`},
	{name: "workflow_definition", columns: `
		id:bigint ref:text pack:bigint pack_ref:text label:text description:text version:text param_schema:jsonb
		out_schema:jsonb definition:jsonb tags:text[]`},
	{name: "workflow_execution", columns: `
		id:bigint execution:bigint workflow_def:bigint current_tasks:text[] completed_tasks:text[]
		failed_tasks:text[] skipped_tasks:text[] variables:jsonb task_graph:jsonb status:execution_status_enum
		error_message:text paused:boolean pause_reason:text created:timestamptz updated:timestamptz`},
	{name: "workflow_task_dispatch", columns: `
		id:bigint workflow_execution:bigint task_name:text task_index:integer execution_id:bigint
		updated:timestamptz`},
}

// ExpectedColumns returns the columns that adoption requires, as table.column.
func ExpectedColumns() []string {
	var names []string
	for _, table := range expectedTables {
		for column := range strings.FieldsSeq(table.columns) {
			name, _, _ := strings.Cut(column, ":")
			names = append(names, table.name+"."+name)
		}
	}
	return names
}

// newest is the day since which installations have all expected objects.
const newest = "2026-05-29"

// later has the day since which installations have a column, and how to add it to an older one. An
// installation keeps the tables of its first day.
var later = map[string]struct{ since, definition string }{
	"action.required_worker_runtimes": {"2026-04-22", "jsonb NOT NULL DEFAULT '{}'"},
	"action.accesses_mcp":             {"2026-04-28", "boolean NOT NULL DEFAULT false"},
	"rule.owner_identity": {
		"2026-04-28",
		"bigint REFERENCES identity (id) ON DELETE SET NULL",
	},
	"action.default_execution_permission_set_refs": {"2026-05-05", "text[] NOT NULL DEFAULT '{}'"},
	"execution.permission_set_refs":                {"2026-05-05", "text[] NOT NULL DEFAULT '{}'"},
	"action.worker_selector":                       {"2026-05-06", "jsonb NOT NULL DEFAULT '{}'"},
	"action.worker_tolerations":                    {"2026-05-06", "jsonb NOT NULL DEFAULT '[]'"},
	"action.worker_affinity":                       {"2026-05-06", "jsonb NOT NULL DEFAULT '{}'"},
	"execution.worker_selector":                    {"2026-05-06", "jsonb"},
	"execution.worker_tolerations":                 {"2026-05-06", "jsonb"},
	"execution.worker_affinity":                    {"2026-05-06", "jsonb"},
	"worker.cordoned":                              {"2026-05-07", "boolean NOT NULL DEFAULT false"},
	"worker.cordon_reason":                         {"2026-05-07", "text"},
	"worker.cordoned_by": {
		"2026-05-07",
		"bigint REFERENCES identity (id) ON DELETE SET NULL",
	},
	"worker.cordoned_at":                  {"2026-05-07", "timestamptz"},
	"action.log_retention_policy":         {"2026-05-11", "artifact_retention_enum"},
	"action.log_retention_limit":          {"2026-05-11", "integer"},
	"action.artifact_retention_policy":    {"2026-05-12", "artifact_retention_enum"},
	"action.artifact_retention_limit":     {"2026-05-12", "integer"},
	"execution.artifact_retention_policy": {"2026-05-12", "artifact_retention_enum"},
	"execution.artifact_retention_limit":  {"2026-05-12", "integer"},
	"rule.permission_set_refs":            {"2026-05-29", "text[]"},
}

// laterTables has the day since which installations have a table, and how to create it.
var laterTables = map[string]struct{ since, create string }{
	"execution_secret_value": {"2026-05-29", `CREATE TABLE execution_secret_value (
    id bigserial PRIMARY KEY, entity_type text NOT NULL, entity_id bigint NOT NULL, json_path text NOT NULL,
    source_kind text NOT NULL, source_ref text, encrypted_value jsonb NOT NULL, encryption_key_hash text,
    created timestamptz NOT NULL DEFAULT now(), UNIQUE (entity_type, entity_id, json_path))`},
}

var historyTables = []string{"execution_history", "worker_history"}

// conflictTarget is a constraint and a statement that cannot be planned without it.
type conflictTarget struct{ protects, explain string }

var conflictTargets = []conflictTarget{
	{
		"one enforcement per rule and event",
		"EXPLAIN INSERT INTO enforcement DEFAULT VALUES ON CONFLICT (rule, event) WHERE rule IS NOT NULL AND event IS NOT NULL DO NOTHING",
	},
	{
		"one top-level execution per enforcement",
		`EXPLAIN INSERT INTO execution DEFAULT VALUES ON CONFLICT (enforcement) WHERE enforcement IS NOT NULL AND parent IS NULL
			AND (config IS NULL OR NOT (config ? 'retry_of')) DO NOTHING`,
	},
	{
		"one value per entity and path",
		"EXPLAIN INSERT INTO execution_secret_value DEFAULT VALUES ON CONFLICT (entity_type, entity_id, json_path) DO NOTHING",
	},
	{"one worker per name", "EXPLAIN INSERT INTO worker DEFAULT VALUES ON CONFLICT (name) DO NOTHING"},
	{
		"one row of statistics per action",
		"EXPLAIN INSERT INTO queue_stats DEFAULT VALUES ON CONFLICT (action_id) DO NOTHING",
	},
	{
		"one inquiry per execution",
		"EXPLAIN INSERT INTO inquiry DEFAULT VALUES ON CONFLICT (execution) WHERE execution IS NOT NULL DO NOTHING",
	},
	{
		"one orchestration row per workflow",
		"EXPLAIN INSERT INTO workflow_execution DEFAULT VALUES ON CONFLICT (execution) DO NOTHING",
	},
	{
		"one child per workflow, task and index",
		"EXPLAIN INSERT INTO workflow_task_dispatch DEFAULT VALUES ON CONFLICT (workflow_execution, task_name, (COALESCE(task_index, -1))) DO NOTHING",
	},
	{
		"one queue position per execution",
		"EXPLAIN INSERT INTO execution_admission_entry DEFAULT VALUES ON CONFLICT (execution_id) DO NOTHING",
	},
	{
		"one queue per action and group",
		"EXPLAIN INSERT INTO execution_admission_state DEFAULT VALUES ON CONFLICT (action_id, group_key_normalized) DO NOTHING",
	},
}
