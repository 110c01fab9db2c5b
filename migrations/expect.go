package migrations

// What the engine needs of a schema that was there before it. Columns that it
// never touches are not listed, so that later versions of the platform are not
// refused for them.

type expectedLabel struct{ name, labels string }

var expectedLabels = []expectedLabel{
	{"execution_status_enum", "requested scheduling scheduled running completed failed canceling cancelled timeout abandoned"},
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
	{"identity", "id:bigint login:text"},
	{"pack", "id:bigint ref:text label:text version:text config:jsonb"},
	{"runtime", "id:bigint ref:text name:text aliases:text[]"},
	{"runtime_version", "id:bigint runtime:bigint version:text"},
	{"action", `id:bigint ref:text pack:bigint pack_ref:text label:text entrypoint:text runtime:bigint
		param_schema:jsonb out_schema:jsonb timeout_seconds:integer max_retries:integer
		runtime_version_constraint:text default_execution_permission_set_refs:text[] workflow_def:bigint
		required_worker_runtimes:jsonb worker_selector:jsonb worker_tolerations:jsonb worker_affinity:jsonb`},
	{"trigger", "id:bigint ref:text enabled:boolean"},
	{"event", "id:bigint trigger:bigint trigger_ref:text config:jsonb payload:jsonb rule:bigint rule_ref:text created:timestamptz"},
	{"rule", `id:bigint ref:text pack:bigint action:bigint action_ref:text trigger:bigint trigger_ref:text
		conditions:jsonb action_params:jsonb trigger_params:jsonb permission_set_refs:text[] enabled:boolean owner_identity:bigint`},
	{"enforcement", `id:bigint rule:bigint rule_ref:text trigger_ref:text config:jsonb event:bigint
		status:enforcement_status_enum payload:jsonb condition:enforcement_condition_enum conditions:jsonb
		created:timestamptz resolved_at:timestamptz`},
	{"execution", `id:bigint action:bigint action_ref:text config:jsonb env_vars:jsonb parent:bigint enforcement:bigint
		executor:bigint permission_set_refs:text[] worker_selector:jsonb worker_tolerations:jsonb worker_affinity:jsonb
		worker:bigint status:execution_status_enum result:jsonb started_at:timestamptz workflow_def:bigint
		workflow_task:jsonb retry_count:integer max_retries:integer retry_reason:text original_execution:bigint
		created:timestamptz updated:timestamptz`},
	{"execution_secret_value", "id:bigint entity_type:text entity_id:bigint json_path:text source_kind:text encrypted_value:jsonb"},
	{"worker", `id:bigint name:text worker_type:worker_type_enum worker_role:worker_role_enum status:worker_status_enum
		capabilities:jsonb meta:jsonb last_heartbeat:timestamptz cordoned:boolean cordon_reason:text
		cordoned_by:bigint cordoned_at:timestamptz`},
	{"inquiry", `id:bigint execution:bigint prompt:text response_schema:jsonb status:inquiry_status_enum
		response:jsonb timeout_at:timestamptz responded_at:timestamptz`},
	{"policy", "id:bigint ref:text pack:bigint action:bigint parameters:text[] method:policy_method_enum threshold:integer"},
	{"queue_stats", `action_id:bigint queue_length:integer active_count:integer max_concurrent:integer
		oldest_enqueued_at:timestamptz total_enqueued:bigint total_completed:bigint last_updated:timestamptz`},
	{"execution_admission_state", `id:bigint action_id:bigint group_key:text group_key_normalized:text
		max_concurrent:integer next_queue_order:bigint total_enqueued:bigint total_completed:bigint`},
	{"execution_admission_entry", "id:bigint state_id:bigint execution_id:bigint status:text queue_order:bigint enqueued_at:timestamptz"},
	{"workflow_definition", "id:bigint ref:text definition:jsonb"},
	{"workflow_execution", `id:bigint execution:bigint workflow_def:bigint current_tasks:text[] completed_tasks:text[]
		failed_tasks:text[] skipped_tasks:text[] variables:jsonb task_graph:jsonb status:execution_status_enum
		error_message:text paused:boolean`},
	{"workflow_task_dispatch", "id:bigint workflow_execution:bigint task_name:text task_index:integer execution_id:bigint"},
	{"notification", "id:bigint channel:text entity_type:text entity:text activity:text"},
}

// optionalGroups are the base files whose tables an existing schema may lack.
var optionalGroups = map[int64][]string{
	8:  {"execution_history", "worker_history", "sensor_process_history"},
	9:  {"work_queue", "work_queue_item", "work_queue_dispatch"},
	10: {"audit_event"},
}

// conflictTarget is a constraint and the statement that cannot be planned
// without it.
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
	{"one orchestration row per workflow", "EXPLAIN INSERT INTO workflow_execution DEFAULT VALUES ON CONFLICT (execution) DO NOTHING"},
	{
		"one child per workflow, task and index",
		"EXPLAIN INSERT INTO workflow_task_dispatch DEFAULT VALUES ON CONFLICT (workflow_execution, task_name, (COALESCE(task_index, -1))) DO NOTHING",
	},
	{"one queue position per execution", "EXPLAIN INSERT INTO execution_admission_entry DEFAULT VALUES ON CONFLICT (execution_id) DO NOTHING"},
	{
		"one queue per action and group",
		"EXPLAIN INSERT INTO execution_admission_state DEFAULT VALUES ON CONFLICT (action_id, group_key_normalized) DO NOTHING",
	},
}
