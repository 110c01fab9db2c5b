-- The relations of the schema with the privileges of a login, one row for each column; privileges on the
-- whole relation are repeated in each. Partitions belong to their tables. $1 is the schema, $2 the login;
-- a login that does not exist has none.
SELECT quote_ident($1), quote_ident($2), c.relname::text, quote_ident(c.relname), a.attname::text, quote_ident(a.attname),
       coalesce(has_column_privilege(r.oid, c.oid, a.attnum, 'SELECT'), false),
       coalesce(has_column_privilege(r.oid, c.oid, a.attnum, 'INSERT'), false),
       coalesce(has_column_privilege(r.oid, c.oid, a.attnum, 'UPDATE'), false),
       coalesce(has_table_privilege(r.oid, c.oid, 'DELETE'), false),
       coalesce(has_table_privilege(r.oid, c.oid, 'TRUNCATE'), false),
       coalesce(quote_ident(s.name), ''),
       coalesce(has_sequence_privilege(r.oid, s.oid, 'USAGE'), false)
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
LEFT JOIN pg_roles r ON r.rolname = $2
LEFT JOIN LATERAL (
    SELECT q.oid, q.relname::text AS name FROM pg_depend d JOIN pg_class q ON q.oid = d.objid AND q.relkind = 'S'
    WHERE d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass AND d.refobjid = c.oid
      AND d.refobjsubid = a.attnum AND d.deptype = 'a' LIMIT 1) s ON true
WHERE n.nspname = $1 AND c.relkind IN ('r', 'p', 'v', 'm') AND NOT c.relispartition
ORDER BY c.relname, a.attnum
