package testkit

import (
	"fmt"
	"testing"

	"github.com/attune-go/attune/core/store"
)

// Refuse has the database refuse each update of a table with a SQLSTATE, as a server
// does whose disk is full (53100) or that became a standby (25006), when the condition on
// NEW holds. tries says how often it has refused; allow ends it.
func Refuse(t testing.TB, st *store.Store, table, when, sqlState string) (tries func() int, allow func()) {
	t.Helper()
	Exec(t, st, `CREATE SEQUENCE refused`)
	Exec(t, st, fmt.Sprintf(`CREATE FUNCTION refuse_update() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
		BEGIN PERFORM nextval('refused'); RAISE EXCEPTION 'refused by the test' USING ERRCODE = '%s'; END $$`, sqlState))
	Exec(t, st,
		fmt.Sprintf(
			`CREATE TRIGGER refuse_update BEFORE UPDATE ON %s FOR EACH ROW WHEN (%s) EXECUTE FUNCTION refuse_update()`, table, when))
	tries = func() int {
		t.Helper()
		return Count(t, st, `SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM refused`)
	}
	return tries, func() {
		t.Helper()
		Exec(t, st, fmt.Sprintf(`DROP TRIGGER refuse_update ON %s`, table))
	}
}
