-- A login and its rights on the schema as a whole. owns counts the relations that it may alter.
SELECT r.rolsuper, has_schema_privilege(r.oid, n.oid, 'USAGE'), has_schema_privilege(r.oid, n.oid, 'CREATE'),
       has_database_privilege(r.oid, current_database(), 'CONNECT'),
       (SELECT count(*) FROM pg_class c WHERE c.relnamespace = n.oid AND pg_has_role(r.oid, c.relowner, 'USAGE'))::integer
FROM pg_roles r JOIN pg_namespace n ON n.nspname = $1
WHERE r.rolname = $2
