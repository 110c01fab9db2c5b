package retention

import (
	"errors"
	"fmt"

	"github.com/attune-go/attune/core/store"
)

// errBusy reports that a lock was not available in time.
var errBusy = errors.New("somebody else holds a lock for long")

// busy turns a lock timeout into an error that is not retried at once: every wait blocks later lock
// requests.
func busy(err error) error {
	if store.IsLockTimeout(err) {
		return fmt.Errorf("%w: %s", errBusy, err.Error())
	}
	return err
}

// stateOf is the SQLSTATE of a database error, if it has one.
func stateOf(err error) string {
	type answer interface {
		error
		SQLState() string
	}
	if coded, ok := errors.AsType[answer](err); ok {
		return coded.SQLState()
	}
	return ""
}
