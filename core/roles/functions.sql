-- The functions of the schema that PUBLIC may not run, with the privilege of a login.
SELECT p.proname::text, p.oid::regprocedure::text,
       coalesce(has_function_privilege(r.oid, p.oid, 'EXECUTE'), false)
FROM pg_proc p
JOIN pg_namespace n ON n.oid = p.pronamespace
LEFT JOIN pg_roles r ON r.rolname = $2
WHERE n.nspname = $1 AND NOT EXISTS (
    SELECT FROM aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) x WHERE x.grantee = 0 AND x.privilege_type = 'EXECUTE')
ORDER BY 1
