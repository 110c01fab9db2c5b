package roles

// grant gives roles privileges on tables or functions, or on some columns of one table. A table that a schema does
// not have is skipped. A role that inserts also gets the sequences of the table.
type grant struct {
	to          []Role
	may         string // the privileges, like the other lists separated by spaces
	on, columns string
}

var (
	engine, operator, worker = []Role{Engine}, []Role{Operator}, []Role{Worker}
	actors, readers          = []Role{Engine, Operator}, []Role{Engine, Operator, Viewer}
)

// grants are the privileges of the roles.
//
// A trigger runs with the privileges of the login that fires it. That is why every writer may insert into the
// histories, audit_event and late_write, and why a worker may read enforcement: triggers of an existing installation
// do. The partitions are created and dropped by functions with the privileges of their owner.
//
// Secrets are sealed in execution_secret_value, and keys are in key. viewer reads neither, nor identity.password_hash,
// trigger.webhook_key, pack.config and work_queue_item.lease_token.
var grants = []grant{
	{
		to: readers, may: "SELECT",
		on: "action activity_minute admission_blocked admission_scope alert attune_schema_origin dead_letter " +
			"engine_replica event event_matched event_matching execution execution_admission_entry " +
			"execution_admission_state execution_cancel execution_history execution_holder execution_retry " +
			"execution_slot inquiry inquiry_fault lost_holder lost_work operator_audit outbox policy queue_stats rule " +
			"runtime trace_origin trace_seed undelivered_dispatch work_queue work_queue_dispatch worker " +
			"worker_history worker_load worker_probe workflow_definition workflow_execution workflow_log " +
			"workflow_source workflow_task_dispatch",
	},
	{
		to: engine, may: "SELECT",
		on: "event_origin identity_role_assignment late_write permission_assignment permission_set " +
			"permission_set_role_assignment request_key trace_pending workflow_item",
	},
	{to: All, may: "SELECT", on: "attune_schema_needs attune_schema_version enforcement message_trial"},
	{to: actors, may: "SELECT", on: "admission_epoch execution_secret_value outbox_owner"},
	{
		to: engine, may: "INSERT UPDATE DELETE",
		on: "activity_minute admission_blocked admission_scope alert dead_letter enforcement engine_replica execution " +
			"execution_admission_entry execution_admission_state execution_cancel execution_holder " +
			"execution_secret_value lost_holder lost_work operator_audit outbox outbox_owner request_key " +
			"trace_pending workflow_source",
	},
	{
		to: engine, may: "INSERT DELETE",
		on: "event_matched event_origin execution_slot late_write message_trial trace_origin undelivered_dispatch " +
			"workflow_item",
	},
	{
		to: engine, may: "INSERT UPDATE",
		on: "execution_retry inquiry queue_stats worker_load worker_probe workflow_execution workflow_task_dispatch",
	},
	{to: engine, may: "INSERT", on: "audit_event event execution_history inquiry_fault worker_history workflow_log"},
	{to: engine, may: "UPDATE", on: "admission_epoch"},
	{to: engine, may: "UPDATE DELETE", on: "worker"},
	{
		to: engine, may: "EXECUTE",
		on: "attune_partition_add attune_partition_default attune_partition_drop attune_partition_prune " +
			"attune_partition_rest",
	},
	{
		to: operator, may: "INSERT",
		on: "audit_event dead_letter execution execution_admission_state execution_cancel execution_history " +
			"execution_retry execution_secret_value late_write operator_audit queue_stats worker_history",
	},
	{
		to: operator, may: "INSERT DELETE",
		on: "admission_blocked execution_admission_entry execution_holder execution_slot message_trial outbox " +
			"outbox_owner",
	},
	{to: operator, may: "UPDATE DELETE", on: "lost_holder"},
	{to: operator, may: "DELETE", on: "worker"},
	{to: worker, may: "INSERT", on: "audit_event execution_history late_write worker_history worker_load"},
	{to: worker, may: "INSERT DELETE", on: "message_trial"},

	{
		to: worker, may: "SELECT", on: "action",
		columns: "id pack pack_ref entrypoint runtime param_schema out_schema parameter_delivery parameter_format " +
			"output_format is_adhoc timeout_seconds runtime_version_constraint",
	},
	{to: operator, may: "UPDATE", on: "admission_blocked", columns: "ticket reason scope_id until need wake"},
	{
		to: operator, may: "UPDATE", on: "admission_scope",
		columns: "max_concurrent active_count policy policy_ref window_seconds burst next_at period_start used",
	},
	{to: worker, may: "SELECT", on: "admission_epoch"},
	{to: worker, may: "SELECT", on: "attune_schema_origin", columns: "origin"},
	{to: operator, may: "UPDATE", on: "dead_letter", columns: "fingerprint decision decided_at decided_by evidence"},
	{
		to: operator, may: "UPDATE", on: "execution",
		columns: "action worker status result workflow_task attempt admitted_at priority",
	},
	{
		to: worker, may: "SELECT", on: "execution",
		columns: "id action action_ref config parent enforcement executor permission_set_refs worker status result " +
			"started_at workflow_task attempt finished_at",
	},
	{to: worker, may: "UPDATE", on: "execution", columns: "status result started_at"},
	{to: operator, may: "UPDATE", on: "execution_admission_entry", columns: "id lane queue_order"},
	{
		to: operator, may: "UPDATE", on: "execution_admission_state",
		columns: "max_concurrent next_queue_order total_enqueued total_completed active_count queued_count head_order " +
			"unlimited paused pause_reason queued_high queued_low head_high head_low front_order lane_streak " +
			"limit_override max_queued queue_timeout_seconds adaptive_limit adaptive_at paused_by paused_at " +
			"resumed_at",
	},
	{to: operator, may: "UPDATE", on: "execution_cancel", columns: "actor reason"},
	{to: worker, may: "SELECT", on: "execution_cancel", columns: "execution at actor reason"},
	{to: operator, may: "UPDATE", on: "execution_holder", columns: "worker"},
	{to: worker, may: "SELECT", on: "execution_holder", columns: "execution worker"},
	{to: operator, may: "UPDATE", on: "execution_retry", columns: "waiting"},
	{
		to: operator, may: "UPDATE", on: "execution_secret_value",
		columns: "source_kind source_ref encrypted_value encryption_key_hash",
	},
	{
		to: worker, may: "INSERT", on: "execution_secret_value",
		columns: "entity_type entity_id json_path source_kind source_ref encrypted_value",
	},
	{
		to: worker, may: "SELECT", on: "execution_secret_value",
		columns: "entity_type entity_id json_path source_kind source_ref encrypted_value encryption_key_hash",
	},
	{
		to: worker, may: "UPDATE", on: "execution_secret_value",
		columns: "source_kind source_ref encrypted_value encryption_key_hash",
	},
	{to: readers, may: "SELECT", on: "identity", columns: "id login frozen"},
	{
		to: operator, may: "UPDATE", on: "inquiry",
		columns: "status response responded_at updated settled responded_by responder",
	},
	{
		to: worker, may: "SELECT", on: "key",
		columns: "ref owner_type owner_pack owner_action name encrypted encryption_key_hash value",
	},
	{to: operator, may: "UPDATE", on: "operator_audit", columns: "request outcome error"},
	{to: operator, may: "UPDATE", on: "outbox", columns: "claimed_at attempts owner"},
	{to: operator, may: "UPDATE", on: "outbox_owner", columns: "renewed"},
	{
		to: readers, may: "SELECT", on: "pack",
		columns: "id ref label description version conf_schema tags dependencies is_standard created updated",
	},
	{to: engine, may: "SELECT", on: "pack", columns: "config"},
	{
		to: operator, may: "UPDATE", on: "queue_stats",
		columns: "queue_length active_count max_concurrent oldest_enqueued_at total_enqueued total_completed last_updated",
	},
	{to: actors, may: "UPDATE", on: "rule", columns: "enabled"},
	{to: worker, may: "SELECT", on: "runtime", columns: "id name execution_config"},
	{
		to: worker, may: "SELECT", on: "runtime_version",
		columns: "id runtime version execution_config is_default available",
	},
	{
		to: readers, may: "SELECT", on: "trigger",
		columns: "id ref pack pack_ref label description enabled is_adhoc param_schema out_schema webhook_enabled " +
			"sensor_ref created updated",
	},
	{
		to: readers, may: "SELECT", on: "work_queue_item",
		columns: "id queue priority status leased_execution lease_expires_at created",
	},
	{
		to: operator, may: "UPDATE", on: "worker",
		columns: "status cordoned cordon_reason cordoned_by cordoned_at draining deactivated_at",
	},
	{
		to: worker, may: "INSERT", on: "worker",
		columns: "name worker_type worker_role host port status capabilities draining incarnation",
	},
	{
		to: worker, may: "SELECT", on: "worker",
		columns: "id name worker_type host port status capabilities cordoned draining incarnation heartbeat_seen " +
			"deactivated_at",
	},
	{
		to: worker, may: "UPDATE", on: "worker",
		columns: "worker_type worker_role host port status capabilities last_heartbeat draining incarnation deactivated_at",
	},
	{to: operator, may: "UPDATE", on: "worker_load", columns: "assigned"},
	{to: operator, may: "UPDATE", on: "workflow_execution", columns: "status paused pause_reason"},
	{to: operator, may: "UPDATE", on: "workflow_task_dispatch", columns: "execution_id"},
}
