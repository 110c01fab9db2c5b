package store

import (
	"errors"

	"github.com/jackc/pgx/v5/pgconn"
)

// Login is the login of the connections.
func (s *Store) Login() string { return s.pool.Config().ConnConfig.User }

// Denied reports whether err says that a login lacks a privilege, and returns the server's message about it, which
// names the object in the server's language.
func Denied(err error) (message string, denied bool) {
	var server *pgconn.PgError
	if !errors.As(err, &server) || server.Code != "42501" {
		return "", false
	}
	return server.Message, true
}
