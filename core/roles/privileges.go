package roles

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Querier reads the catalogue; a pool, a connection and a transaction implement it.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

var (
	//go:embed catalogue.sql
	readCatalogue string
	//go:embed functions.sql
	readFunctions string
	//go:embed login.sql
	readLogin string
)

// column is a column of a relation, and the privileges of the login on it.
type column struct {
	name, quoted string
	has          map[string]bool // by privilege
	sequence     string          // of its default, quoted
	uses         bool            // the login may use the sequence
}

// relation is a relation of the schema.
type relation struct {
	name, quoted string
	columns      []column
}

// function is a function that PUBLIC may not run.
type function struct {
	name, signature string
	runs            bool
}

// state is a schema and a login.
type state struct {
	in, to    string // the schema and the login, quoted
	relations []relation
	functions []function
	login     struct {
		exists, super, uses, creates, connects bool
		owned                                  int
	}
}

// ErrOwner reports a login with the rights of an owner: no grant can narrow them.
var ErrOwner = errors.New("it owns tables of the schema, or is a superuser")

// ErrNoSchema reports a schema without tables.
var ErrNoSchema = errors.New("the schema has no tables: run `attune-executor migrate up`")

func read(ctx context.Context, db Querier, schema, login string) (*state, error) {
	s := &state{}
	rows, err := db.Query(ctx, readCatalogue, schema, login)
	if err != nil {
		return nil, fmt.Errorf("read the privileges of %s: %w", login, err)
	}
	var (
		r                                                relation
		sequence                                         string
		selects, inserts, updates, deletes, truncs, uses bool
		c                                                column
	)
	into := []any{
		&s.in, &s.to, &r.name, &r.quoted, &c.name, &c.quoted,
		&selects, &inserts, &updates, &deletes, &truncs, &sequence, &uses,
	}
	_, err = pgx.ForEachRow(rows, into, func() error {
		if n := len(s.relations); n == 0 || s.relations[n-1].name != r.name {
			s.relations = append(s.relations, r)
		}
		of := &s.relations[len(s.relations)-1]
		of.columns = append(of.columns, column{
			name: c.name, quoted: c.quoted, sequence: sequence, uses: uses,
			has: map[string]bool{
				"SELECT": selects, "INSERT": inserts, "UPDATE": updates, "DELETE": deletes, "TRUNCATE": truncs,
			},
		})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the privileges of %s: %w", login, err)
	}
	if len(s.relations) == 0 {
		return nil, fmt.Errorf("schema %s: %w", schema, ErrNoSchema)
	}
	if rows, err = db.Query(ctx, readFunctions, schema, login); err != nil {
		return nil, fmt.Errorf("read the functions of %s: %w", schema, err)
	}
	s.functions, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (f function, err error) {
		return f, row.Scan(&f.name, &f.signature, &f.runs)
	})
	if err != nil {
		return nil, fmt.Errorf("read the functions of %s: %w", schema, err)
	}
	if rows, err = db.Query(ctx, readLogin, schema, login); err != nil {
		return nil, fmt.Errorf("read the login %s: %w", login, err)
	}
	l := &s.login
	tag, err := pgx.ForEachRow(rows, []any{&l.super, &l.uses, &l.creates, &l.connects, &l.owned},
		func() error { return nil })
	if err != nil {
		return nil, fmt.Errorf("read the login %s: %w", login, err)
	}
	l.exists = tag.RowsAffected() > 0
	return s, nil
}

// need is what a role needs of one relation: the columns of each privilege, all columns where it is nil.
type need map[string][]string

// privileges are in the order of statements; the columns of the last two do not count.
var privileges = []string{"SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE"}

// needs returns the needs of a role by relation or function.
func needs(role Role) map[string]need {
	all := map[string]need{}
	for _, g := range grants {
		if !slices.Contains(g.to, role) {
			continue
		}
		for object := range strings.FieldsSeq(g.on) {
			if all[object] == nil {
				all[object] = need{}
			}
			for privilege := range strings.FieldsSeq(g.may) {
				all[object][privilege] = slices.Concat(all[object][privilege], strings.Fields(g.columns))
			}
		}
	}
	return all
}

// includes reports whether a need includes a privilege on a column.
func (n need) includes(privilege, column string) bool {
	columns, has := n[privilege]
	return has && (columns == nil || slices.Contains(columns, column))
}

// clause is a privilege on some of a relation's columns, for GRANT and REVOKE; empty without columns.
func (r *relation) clause(privilege string, with func(column) bool) string {
	var names []string
	for _, c := range r.columns {
		if with(c) {
			names = append(names, c.quoted)
		}
	}
	switch {
	case len(names) == 0:
		return ""
	case len(names) == len(r.columns) || privilege == "DELETE" || privilege == "TRUNCATE":
		return privilege
	}
	return privilege + " (" + strings.Join(names, ", ") + ")"
}

// clauses joins the clauses of all privileges.
func (r *relation) clauses(with func(privilege string, c column) bool) string {
	var all []string
	for _, privilege := range privileges {
		if one := r.clause(privilege, func(c column) bool { return with(privilege, c) }); one != "" {
			all = append(all, one)
		}
	}
	return strings.Join(all, ", ")
}

// Statements returns the statements that give a login the privileges of its role in a schema, and no
// others there. They create a missing login, without a password. Run them in one transaction, as the
// owner of the schema's tables.
func Statements(ctx context.Context, db Querier, role Role, schema, login string) ([]string, error) {
	needed := needs(role)
	s, err := read(ctx, db, schema, login)
	if err != nil {
		return nil, err
	}
	if s.login.super || s.login.owned > 0 {
		return nil, fmt.Errorf("restrict the login %s: %w", login, ErrOwner)
	}
	in, to := s.in, s.to
	var list []string
	if !s.login.exists {
		list = append(list, "CREATE ROLE "+to+" LOGIN")
	}
	for _, what := range []string{"ALL TABLES IN ", "ALL SEQUENCES IN ", "ALL FUNCTIONS IN ", ""} {
		list = append(list, fmt.Sprintf("REVOKE ALL ON %sSCHEMA %s FROM %s", what, in, to))
	}
	return append(list, s.missing(needed, true)...), nil
}

// missing returns the statements that grant what the login lacks, or all that it needs.
func (s *state) missing(needed map[string]need, all bool) (list []string) {
	add := func(what, on string) { list = append(list, fmt.Sprintf("GRANT %s ON %s TO %s", what, on, s.to)) }
	if all || !s.login.uses {
		add("USAGE", "SCHEMA "+s.in)
	}
	for i := range s.relations {
		r := &s.relations[i]
		n := needed[r.name]
		lacks := r.clauses(func(p string, c column) bool { return n.includes(p, c.name) && (all || !c.has[p]) })
		if lacks != "" {
			add(lacks, s.in+"."+r.quoted)
		}
		for _, c := range r.columns {
			if _, inserts := n["INSERT"]; inserts && c.sequence != "" && (all || !c.uses) {
				add("USAGE", "SEQUENCE "+s.in+"."+c.sequence)
			}
		}
	}
	for _, f := range s.functions {
		if needed[f.name] != nil && (all || !f.runs) {
			add("EXECUTE", "FUNCTION "+f.signature)
		}
	}
	return list
}

// Difference compares a login with a role.
type Difference struct {
	Login string
	// Missing are the statements that grant what it lacks.
	Missing []string
	// Beyond is what it has and the role does not need.
	Beyond []string
}

// Compare compares a login with a role.
func Compare(ctx context.Context, db Querier, role Role, schema, login string) (*Difference, error) {
	needed := needs(role)
	s, err := read(ctx, db, schema, login)
	if err != nil {
		return nil, err
	}
	d := &Difference{Login: login, Missing: s.missing(needed, false)}
	for i := range s.relations {
		r := &s.relations[i]
		n := needed[r.name]
		beyond := r.clauses(func(p string, c column) bool { return c.has[p] && !n.includes(p, c.name) })
		if beyond != "" {
			d.Beyond = append(d.Beyond, beyond+" ON "+r.name)
		}
	}
	for _, f := range s.functions {
		if f.runs && needed[f.name] == nil && !strings.HasPrefix(f.name, "pg_") {
			d.Beyond = append(d.Beyond, "EXECUTE ON FUNCTION "+f.name)
		}
	}
	switch {
	case s.login.super:
		d.Beyond = []string{"it is a superuser"}
	case s.login.owned > 0:
		d.Beyond = []string{fmt.Sprintf("it owns %d of the schema's tables and sequences", s.login.owned)}
	case s.login.creates:
		d.Beyond = append(d.Beyond, "CREATE ON SCHEMA "+schema)
	}
	return d, nil
}
