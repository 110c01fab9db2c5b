-- What can be run, what makes it run, and what limits it.

-- +goose Up
CREATE TABLE workflow_definition (
    id           bigserial PRIMARY KEY,
    ref          varchar(255) NOT NULL UNIQUE,
    pack         bigint NOT NULL REFERENCES pack (id) ON DELETE CASCADE,
    pack_ref     text NOT NULL,
    label        text NOT NULL,
    description  text,
    version      varchar(50) NOT NULL,
    param_schema jsonb,
    out_schema   jsonb,
    definition   jsonb NOT NULL,
    tags         text[] DEFAULT '{}',
    created      timestamptz NOT NULL DEFAULT now(),
    updated      timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE action (
    id                                    bigserial PRIMARY KEY,
    ref                                   text NOT NULL UNIQUE CHECK (ref ~ '^[^.]+\.[^.]+$' AND ref = lower(ref)),
    pack                                  bigint NOT NULL REFERENCES pack (id) ON DELETE CASCADE,
    pack_ref                              text NOT NULL,
    label                                 text NOT NULL,
    description                           text,
    entrypoint                            text NOT NULL,
    runtime                               bigint REFERENCES runtime (id),
    param_schema                          jsonb,
    out_schema                            jsonb,
    parameter_delivery                    text NOT NULL DEFAULT 'stdin' CHECK (parameter_delivery IN ('stdin', 'file')),
    parameter_format                      text NOT NULL DEFAULT 'json' CHECK (parameter_format IN ('dotenv', 'json', 'yaml')),
    output_format                         text NOT NULL DEFAULT 'text' CHECK (output_format IN ('text', 'json', 'yaml', 'jsonl')),
    is_adhoc                              boolean NOT NULL DEFAULT false,
    timeout_seconds                       integer,
    max_retries                           integer DEFAULT 0,
    runtime_version_constraint            text,
    accesses_mcp                          boolean NOT NULL DEFAULT false,
    default_execution_permission_set_refs text[] NOT NULL DEFAULT '{}',
    log_retention_policy                  artifact_retention_enum,
    log_retention_limit                   integer CHECK (log_retention_limit > 0),
    artifact_retention_policy             artifact_retention_enum,
    artifact_retention_limit              integer CHECK (artifact_retention_limit > 0),
    workflow_def                          bigint REFERENCES workflow_definition (id) ON DELETE CASCADE,
    required_worker_runtimes              jsonb NOT NULL DEFAULT '{}',
    worker_selector                       jsonb NOT NULL DEFAULT '{}',
    worker_tolerations                    jsonb NOT NULL DEFAULT '[]',
    worker_affinity                       jsonb NOT NULL DEFAULT '{}',
    created                               timestamptz NOT NULL DEFAULT now(),
    updated                               timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX idx_action_workflow_def ON action (workflow_def) WHERE workflow_def IS NOT NULL;

CREATE TABLE sensor (
    id                         bigserial PRIMARY KEY,
    ref                        text NOT NULL UNIQUE CHECK (ref ~ '^[^.]+\.[^.]+$' AND ref = lower(ref)),
    pack                       bigint REFERENCES pack (id) ON DELETE CASCADE,
    pack_ref                   text,
    label                      text NOT NULL,
    description                text,
    entrypoint                 text NOT NULL,
    runtime                    bigint NOT NULL REFERENCES runtime (id),
    runtime_ref                text NOT NULL,
    enabled                    boolean NOT NULL,
    is_adhoc                   boolean NOT NULL DEFAULT false,
    param_schema               jsonb,
    config                     jsonb,
    runtime_version_constraint text,
    required_worker_runtimes   jsonb NOT NULL DEFAULT '{}',
    worker_selector            jsonb NOT NULL DEFAULT '{}',
    worker_tolerations         jsonb NOT NULL DEFAULT '[]',
    worker_affinity            jsonb NOT NULL DEFAULT '{}',
    created                    timestamptz NOT NULL DEFAULT now(),
    updated                    timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE trigger (
    id              bigserial PRIMARY KEY,
    ref             text NOT NULL UNIQUE CHECK (ref ~ '^[^.]+\.[^.]+$' AND ref = lower(ref)),
    pack            bigint REFERENCES pack (id) ON DELETE CASCADE,
    pack_ref        text,
    label           text NOT NULL,
    description     text,
    enabled         boolean NOT NULL DEFAULT true,
    is_adhoc        boolean NOT NULL DEFAULT false,
    param_schema    jsonb,
    out_schema      jsonb,
    webhook_enabled boolean NOT NULL DEFAULT false,
    webhook_key     varchar(64) UNIQUE,
    webhook_config  jsonb DEFAULT '{}',
    sensor          bigint REFERENCES sensor (id) ON DELETE SET NULL,
    sensor_ref      text,
    created         timestamptz NOT NULL DEFAULT now(),
    updated         timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE rule (
    id                  bigserial PRIMARY KEY,
    ref                 text NOT NULL UNIQUE CHECK (ref ~ '^[^.]+\.[^.]+$' AND ref = lower(ref)),
    pack                bigint NOT NULL REFERENCES pack (id) ON DELETE CASCADE,
    pack_ref            text NOT NULL,
    label               text NOT NULL,
    description         text,
    action              bigint REFERENCES action (id) ON DELETE SET NULL,
    action_ref          text NOT NULL,
    trigger             bigint REFERENCES trigger (id) ON DELETE SET NULL,
    trigger_ref         text NOT NULL,
    conditions          jsonb NOT NULL DEFAULT '[]',
    action_params       jsonb DEFAULT '{}',
    trigger_params      jsonb DEFAULT '{}',
    permission_set_refs text[],
    enabled             boolean NOT NULL,
    is_adhoc            boolean NOT NULL DEFAULT false,
    owner_identity      bigint REFERENCES identity (id) ON DELETE SET NULL,
    created             timestamptz NOT NULL DEFAULT now(),
    updated             timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX idx_rule_trigger ON rule (trigger);
CREATE INDEX idx_rule_trigger_ref ON rule (trigger_ref);

CREATE TABLE policy (
    id          bigserial PRIMARY KEY,
    ref         text NOT NULL UNIQUE CHECK (ref ~ '^[^.]+\.[^.]+$'),
    pack        bigint REFERENCES pack (id) ON DELETE CASCADE,
    pack_ref    text,
    action      bigint REFERENCES action (id) ON DELETE CASCADE,
    action_ref  text,
    parameters  text[] NOT NULL DEFAULT '{}',
    method      policy_method_enum NOT NULL,
    threshold   integer NOT NULL CHECK (threshold > 0),
    name        text NOT NULL,
    description text,
    tags        text[] NOT NULL DEFAULT '{}',
    created     timestamptz NOT NULL DEFAULT now(),
    updated     timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX idx_policy_action ON policy (action);

-- +goose Down
DROP TABLE policy;
DROP TABLE rule;
DROP TABLE trigger;
DROP TABLE sensor;
DROP TABLE action;
DROP TABLE workflow_definition;
