-- For the code generator only: tables that a migration creates inside a block it cannot read.
CREATE TABLE execution_history (
    time timestamptz NOT NULL, operation text NOT NULL, entity_id bigint NOT NULL, entity_ref text,
    changed_fields text[] NOT NULL, old_values jsonb, new_values jsonb
);
CREATE TABLE worker_history (
    time timestamptz NOT NULL, operation text NOT NULL, entity_id bigint NOT NULL, entity_ref text,
    changed_fields text[] NOT NULL, old_values jsonb, new_values jsonb
);

-- The generator does not know unnest with more than one array.
CREATE FUNCTION unnest(a anyarray, b anyarray) RETURNS SETOF record LANGUAGE internal AS 'stub';
CREATE FUNCTION unnest(a anyarray, b anyarray, c anyarray) RETURNS SETOF record LANGUAGE internal AS 'stub';
CREATE FUNCTION unnest(a anyarray, b anyarray, c anyarray, d anyarray) RETURNS SETOF record LANGUAGE internal AS 'stub';
CREATE FUNCTION unnest(a anyarray, b anyarray, c anyarray, d anyarray, e anyarray) RETURNS SETOF record LANGUAGE internal AS 'stub';
CREATE FUNCTION unnest(a anyarray, b anyarray, c anyarray, d anyarray, e anyarray, f anyarray) RETURNS SETOF record LANGUAGE internal AS 'stub';
CREATE FUNCTION unnest(a anyarray, b anyarray, c anyarray, d anyarray, e anyarray, f anyarray, g anyarray) RETURNS SETOF record LANGUAGE internal AS 'stub';
CREATE FUNCTION unnest(a anyarray, b anyarray, c anyarray, d anyarray, e anyarray, f anyarray, g anyarray, h anyarray) RETURNS SETOF record LANGUAGE internal AS 'stub';
CREATE FUNCTION unnest(a anyarray, b anyarray, c anyarray, d anyarray, e anyarray, f anyarray, g anyarray, h anyarray, i anyarray) RETURNS SETOF record LANGUAGE internal AS 'stub';
CREATE FUNCTION unnest(a anyarray, b anyarray, c anyarray, d anyarray, e anyarray, f anyarray, g anyarray, h anyarray, i anyarray, j anyarray) RETURNS SETOF record LANGUAGE internal AS 'stub';
CREATE FUNCTION unnest(a anyarray, b anyarray, c anyarray, d anyarray, e anyarray, f anyarray, g anyarray, h anyarray, i anyarray, j anyarray, k anyarray) RETURNS SETOF record LANGUAGE internal AS 'stub';
CREATE FUNCTION unnest(a anyarray, b anyarray, c anyarray, d anyarray, e anyarray, f anyarray, g anyarray, h anyarray, i anyarray, j anyarray, k anyarray, l anyarray) RETURNS SETOF record LANGUAGE internal AS 'stub';
CREATE FUNCTION unnest(a anyarray, b anyarray, c anyarray, d anyarray, e anyarray, f anyarray, g anyarray, h anyarray, i anyarray, j anyarray, k anyarray, l anyarray, m anyarray) RETURNS SETOF record LANGUAGE internal AS 'stub';
CREATE FUNCTION unnest(a anyarray, b anyarray, c anyarray, d anyarray, e anyarray, f anyarray, g anyarray, h anyarray, i anyarray, j anyarray, k anyarray, l anyarray, m anyarray, n anyarray) RETURNS SETOF record LANGUAGE internal AS 'stub';

-- Tables that only an existing installation has. Ask HasPermissionSets and HasKeystore first.
CREATE TABLE permission_set (id bigserial PRIMARY KEY, ref text NOT NULL, grants jsonb NOT NULL);
CREATE TABLE permission_assignment (identity bigint NOT NULL, permset bigint NOT NULL);
CREATE TABLE permission_set_role_assignment (permset bigint NOT NULL, role text NOT NULL);
CREATE TABLE identity_role_assignment (identity bigint NOT NULL, role text NOT NULL);
CREATE TABLE key (
    id bigserial PRIMARY KEY, ref text NOT NULL, owner_type owner_type_enum NOT NULL, owner_pack bigint, owner_action bigint,
    name text NOT NULL, encrypted boolean NOT NULL, encryption_key_hash text, value jsonb NOT NULL
);
