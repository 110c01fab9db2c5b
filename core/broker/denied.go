package broker

import (
	"errors"
	"net/http"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Denied reports whether the broker refused an operation because its user lacks a permission.
func Denied(err error) bool {
	if _, refused := refusal(err, amqp.AccessRefused); refused {
		return true
	}
	answer, ok := errors.AsType[*ManagementError](err)
	return ok && (answer.StatusCode == http.StatusUnauthorized || answer.StatusCode == http.StatusForbidden)
}
