package migrations

import (
	"context"
	"fmt"
)

// EncodingError reports a database that cannot store every text.
type EncodingError struct{ Database, Encoding string }

// Error says what is wrong and what to do.
func (e *EncodingError) Error() string {
	return "the database " + e.Database + " has the encoding " + e.Encoding + ", which alters or refuses texts: create " +
		"one with ENCODING 'UTF8' TEMPLATE template0, copy what is needed, and name it in database.url"
}

// CheckEncoding returns an *EncodingError unless the encoding is UTF-8.
func CheckEncoding(database, encoding string) error {
	if encoding == "UTF8" {
		return nil
	}
	return &EncodingError{Database: database, Encoding: encoding}
}

// refuseEncoding refuses to begin in a database that is not UTF-8. A schema that has begun is upgraded.
func (s *session) refuseEncoding(ctx context.Context, recorded bool) error {
	if recorded {
		return nil
	}
	var database, encoding string
	err := s.conn.QueryRowContext(ctx, "SELECT current_database(), current_setting('server_encoding')").
		Scan(&database, &encoding)
	if err != nil {
		return fmt.Errorf("read the encoding of the database: %w", err)
	}
	return CheckEncoding(database, encoding)
}
