package installation

// Shape is the state of the schema on a day. An installation keeps the shape of its first day: its
// migrations are edited in place and never alter existing tables.
type Shape struct {
	// Date is the last day on which a fresh installation had this shape.
	Date string
	// Without lists migrations that the installation has left out.
	Without []Migration
}

// Migration is a group of tables that an installation may lack.
type Migration string

// The migrations that an installation may have left out.
const (
	Audit      Migration = "audit"
	History    Migration = "history"
	Supervisor Migration = "supervisor"
	WorkQueues Migration = "work queues"
)

// Newest is the shape that the engine expects.
var Newest = Shape{Date: "2026-06-01"}

// String names the shape in messages.
func (s Shape) String() string { return "an installation of " + s.Date }

// older lists, newest first, the statements that turn a shape into the next older one.
var older = []struct{ date, back string }{
	{"2026-05-22", `DROP TABLE execution_secret_value;
		ALTER TABLE rule DROP COLUMN permission_set_refs;
		ALTER TABLE work_queue DROP COLUMN permission_set_refs`},
	{"2026-05-12", "DROP TABLE runtime_retention_config, runtime_retention_target_config, supervisor_run"},
	{"2026-05-11", `ALTER TABLE action DROP COLUMN artifact_retention_policy, DROP COLUMN artifact_retention_limit;
		ALTER TABLE execution DROP COLUMN artifact_retention_policy, DROP COLUMN artifact_retention_limit;
		ALTER TABLE sensor DROP COLUMN artifact_retention_policy, DROP COLUMN artifact_retention_limit`},
	{"2026-05-10", `ALTER TABLE action DROP COLUMN log_retention_policy, DROP COLUMN log_retention_limit;
		ALTER TABLE sensor DROP COLUMN log_retention_policy, DROP COLUMN log_retention_limit`},
	{"2026-05-06", `DROP TABLE integration_token, sensor_process, sensor_process_history;
		DROP TYPE sensor_process_status_enum;
		ALTER TABLE sensor DROP COLUMN worker_selector, DROP COLUMN worker_tolerations, DROP COLUMN worker_affinity;
		ALTER TABLE worker DROP COLUMN cordoned, DROP COLUMN cordon_reason, DROP COLUMN cordoned_by, DROP COLUMN cordoned_at`},
	{"2026-05-05", `ALTER TABLE action DROP COLUMN worker_selector, DROP COLUMN worker_tolerations, DROP COLUMN worker_affinity;
		ALTER TABLE execution DROP COLUMN worker_selector, DROP COLUMN worker_tolerations, DROP COLUMN worker_affinity`},
	{"2026-05-04", `ALTER TABLE action DROP COLUMN default_execution_permission_set_refs;
		ALTER TABLE execution DROP COLUMN permission_set_refs;
		DROP TABLE pack_registry_index;
		DROP TRIGGER trg_audit_execution_lifecycle ON execution`},
	{"2026-05-03", "DROP TRIGGER inquiry_timeout_notify ON inquiry; DROP TABLE webhook_event_log"},
	{"2026-04-30", `ALTER TABLE "trigger" DROP COLUMN sensor, DROP COLUMN sensor_ref;
		ALTER TABLE sensor ADD COLUMN "trigger" bigint REFERENCES "trigger" (id), ADD COLUMN trigger_ref text NOT NULL DEFAULT ''`},
	{"2026-04-28", "DROP TABLE audit_event; DROP TYPE audit_category_enum, audit_outcome_enum"},
	{"2026-04-27", "ALTER TABLE rule DROP COLUMN owner_identity"},
	{"2026-04-21", "ALTER TABLE action DROP COLUMN accesses_mcp, DROP COLUMN required_worker_runtimes"},
	{"2026-04-20", `DROP TABLE work_queue_dispatch, work_queue_item, work_queue;
		DROP TYPE work_queue_batch_mode_enum, work_queue_dispatch_status_enum, work_queue_item_status_enum,
			work_queue_update_strategy_enum;
		ALTER TABLE execution ADD COLUMN is_workflow boolean NOT NULL DEFAULT false;
		ALTER TYPE worker_role_enum ADD VALUE 'hybrid'`},
	{"2026-04-02", `DROP TABLE execution_admission_entry, execution_admission_state, workflow_task_dispatch;
		DROP INDEX uq_enforcement_rule_event, uq_execution_top_level_enforcement, uq_inquiry_execution`},
}

// Shapes returns every shape, newest first.
func Shapes() []Shape {
	shapes := []Shape{Newest}
	for _, step := range older {
		shapes = append(shapes, Shape{Date: step.date})
	}
	return shapes
}

// missing has the statements that remove a migration.
var missing = map[Migration]string{
	Audit: `DROP TRIGGER trg_audit_execution_lifecycle ON execution;
		DROP TABLE audit_event; DROP TYPE audit_category_enum, audit_outcome_enum`,
	History: `DROP TRIGGER execution_history_trigger ON execution; DROP TRIGGER worker_history_trigger ON worker;
		DROP TRIGGER sensor_process_history_trigger ON sensor_process;
		DROP VIEW execution_status_hourly, execution_throughput_hourly, worker_status_hourly;
		DROP TABLE execution_history, worker_history, sensor_process_history`,
	Supervisor: "DROP TABLE runtime_retention_config, runtime_retention_target_config, supervisor_run",
	WorkQueues: `DROP TABLE work_queue_dispatch, work_queue_item, work_queue;
		DROP TYPE work_queue_batch_mode_enum, work_queue_dispatch_status_enum, work_queue_item_status_enum,
			work_queue_update_strategy_enum`,
}

// back returns the statements from the newest shape to s.
func (s Shape) back() []string {
	var steps []string
	for _, step := range older {
		if step.date < s.Date {
			break
		}
		steps = append(steps, step.back)
	}
	for _, part := range s.Without {
		steps = append(steps, missing[part])
	}
	return steps
}
