package retention

import (
	"errors"
	"fmt"

	"github.com/attune-go/attune/core/store"
)

// errBusy says that a lock was not to be had in time.
var errBusy = errors.New("somebody else holds a lock for long")

// busy turns a lock that did not come into an error that is not repeated at once:
// every wait holds up those who come behind it.
func busy(err error) error {
	if store.IsLockTimeout(err) {
		return fmt.Errorf("%w: %s", errBusy, err.Error())
	}
	return err
}

// stateOf is the code with which the database answered, if it did.
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
