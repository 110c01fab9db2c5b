-- Who acts, what is installed, and what actions run on.

-- +goose Up
CREATE TABLE identity (
    id            bigserial PRIMARY KEY,
    login         text NOT NULL UNIQUE,
    display_name  text,
    password_hash text,
    attributes    jsonb NOT NULL DEFAULT '{}',
    frozen        boolean NOT NULL DEFAULT false,
    created       timestamptz NOT NULL DEFAULT now(),
    updated       timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE pack (
    id                  bigserial PRIMARY KEY,
    ref                 text NOT NULL UNIQUE CHECK (ref ~ '^[a-z][a-z0-9_-]+$'),
    label               text NOT NULL,
    description         text,
    version             text NOT NULL CHECK (version ~ '^\d+\.\d+\.\d+'),
    conf_schema         jsonb NOT NULL DEFAULT '{}',
    config              jsonb NOT NULL DEFAULT '{}',
    meta                jsonb NOT NULL DEFAULT '{}',
    tags                text[] NOT NULL DEFAULT '{}',
    runtime_deps        text[] NOT NULL DEFAULT '{}',
    dependencies        text[] NOT NULL DEFAULT '{}',
    is_standard         boolean NOT NULL DEFAULT false,
    installers          jsonb DEFAULT '[]',
    source_type         text,
    source_url          text,
    source_ref          text,
    checksum            text,
    checksum_verified   boolean DEFAULT false,
    installed_at        timestamptz,
    installed_by        bigint REFERENCES identity (id) ON DELETE SET NULL,
    installation_method text,
    storage_path        text,
    created             timestamptz NOT NULL DEFAULT now(),
    updated             timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE runtime (
    id               bigserial PRIMARY KEY,
    ref              text NOT NULL UNIQUE CHECK (ref = lower(ref)),
    pack             bigint REFERENCES pack (id) ON DELETE CASCADE,
    pack_ref         text,
    description      text,
    name             text NOT NULL,
    aliases          text[] NOT NULL DEFAULT '{}',
    distributions    jsonb NOT NULL,
    installation     jsonb,
    installers       jsonb DEFAULT '[]',
    execution_config jsonb NOT NULL DEFAULT '{}',
    auto_detected    boolean NOT NULL DEFAULT false,
    detection_config jsonb NOT NULL DEFAULT '{}',
    created          timestamptz NOT NULL DEFAULT now(),
    updated          timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE runtime_version (
    id               bigserial PRIMARY KEY,
    runtime          bigint NOT NULL REFERENCES runtime (id) ON DELETE CASCADE,
    runtime_ref      text NOT NULL,
    version          text NOT NULL,
    version_major    integer,
    version_minor    integer,
    version_patch    integer,
    execution_config jsonb NOT NULL DEFAULT '{}',
    distributions    jsonb NOT NULL DEFAULT '{}',
    is_default       boolean NOT NULL DEFAULT false,
    available        boolean NOT NULL DEFAULT true,
    verified_at      timestamptz,
    meta             jsonb NOT NULL DEFAULT '{}',
    created          timestamptz NOT NULL DEFAULT now(),
    updated          timestamptz NOT NULL DEFAULT now(),
    UNIQUE (runtime, version)
);

-- +goose Down
DROP TABLE runtime_version;
DROP TABLE runtime;
DROP TABLE pack;
DROP TABLE identity;
