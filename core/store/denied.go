package store

import (
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// Login is the login of the connections.
func (s *Store) Login() string { return s.pool.Config().ConnConfig.User }

// Denied returns the object on which a login lacks a privilege, such as "table execution", and whether err
// reports that.
func Denied(err error) (object string, denied bool) {
	var server *pgconn.PgError
	if !errors.As(err, &server) || server.Code != "42501" {
		return "", false
	}
	_, object, found := strings.Cut(server.Message, "permission denied for ")
	if !found {
		object = "this" // such as "must be owner of table event"
	}
	return object, true
}
