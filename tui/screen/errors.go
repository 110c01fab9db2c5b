package screen

import "errors"

// Answered makes a missing answer an error.
func Answered[T any](answer *T, err error) (*T, error) {
	if answer == nil && err == nil {
		err = errors.New("no answer")
	}
	return answer, err
}
