package message

import (
	"slices"
	"strconv"
	"strings"
)

// Exchanges. The dead-letter exchange is direct, the notification exchange
// fanout, the other two topic.
const (
	ExchangeEvents        = "attune.events"
	ExchangeExecutions    = "attune.executions"
	ExchangeNotifications = "attune.notifications"
	ExchangeDeadLetter    = "attune.dlx"
)

// Declared reports whether each replica declares the exchange at its start.
func Declared(exchange string) bool {
	return slices.Contains([]string{ExchangeEvents, ExchangeExecutions, ExchangeNotifications, ExchangeDeadLetter},
		exchange)
}

// Queues of the engine, and the dead-letter queue.
const (
	QueueDeadLetter         = "attune.dlx.queue"
	QueueEvents             = "attune.executor.events.queue"
	QueueEnforcements       = "attune.enforcements.queue"
	QueueExecutionRequests  = "attune.execution.requests.queue"
	QueueExecutionStatus    = "attune.execution.status.queue"
	QueueExecutionCompleted = "attune.execution.completed.queue"
	QueueInquiryResponses   = "attune.inquiry.responses.queue"

	// QueueExecutionBatches receives completions in batches. Only engines that read batches consume
	// it, and messages reach it by its name: it has no binding.
	QueueExecutionBatches = "attune.execution.completed.batch.queue"
)

// Exchanges lists the exchanges.
func Exchanges() []string {
	return []string{ExchangeEvents, ExchangeExecutions, ExchangeNotifications, ExchangeDeadLetter}
}

// EngineQueues lists the queues that engines declare and consume; every participant declares
// QueueDeadLetter.
func EngineQueues() []string {
	return []string{
		QueueEvents, QueueEnforcements, QueueExecutionRequests, QueueExecutionStatus, QueueExecutionCompleted,
		QueueInquiryResponses, QueueExecutionBatches,
	}
}

// Routing keys.
const (
	KeyEventCreated           = "event.created"
	KeyEnforcementCreated     = "enforcement.created"
	KeyExecutionRequested     = "execution.requested"
	KeyExecutionStatusChanged = "execution.status.changed"
	KeyExecutionCompleted     = "execution.completed"
	KeyInquiryCreated         = "inquiry.created"
	KeyInquiryResponded       = "inquiry.responded"
	KeyNotificationCreated    = "notification.created"
	KeyRuleCreated            = "rule.created"
	KeyRuleEnabled            = "rule.enabled"
	KeyRuleDisabled           = "rule.disabled"
	KeyPackRegistered         = "pack.registered"
	KeyPackDeleted            = "pack.deleted"

	// PatternEnforcement is the binding of the enforcement queue.
	PatternEnforcement = "enforcement.#"
)

const (
	dispatchPrefix = "execution.dispatch.worker."
	cancelPrefix   = "execution.cancel.worker."
)

// DispatchKey is the routing key that reaches a worker's execution queue.
func DispatchKey(worker int64) string { return dispatchPrefix + strconv.FormatInt(worker, 10) }

// CancelKey is the routing key that reaches a worker's cancel queue.
func CancelKey(worker int64) string { return cancelPrefix + strconv.FormatInt(worker, 10) }

// WorkerOfKey returns the worker that a dispatch or cancel key names.
func WorkerOfKey(key string) (int64, bool) {
	for _, prefix := range []string{dispatchPrefix, cancelPrefix} {
		if rest, ok := strings.CutPrefix(key, prefix); ok {
			id, err := strconv.ParseInt(rest, 10, 64)
			return id, err == nil
		}
	}
	return 0, false
}

// WorkerExecutionsQueue is the queue of a worker's dispatches.
func WorkerExecutionsQueue(worker int64) string { return workerQueue(worker, "executions") }

// WorkerCancelQueue is the queue of a worker's cancel requests.
func WorkerCancelQueue(worker int64) string { return workerQueue(worker, "cancel") }

// WorkerPacksQueue is the queue of a worker's notices about packs.
func WorkerPacksQueue(worker int64) string { return workerQueue(worker, "packs") }

func workerQueue(worker int64, kind string) string {
	return "worker." + strconv.FormatInt(worker, 10) + "." + kind
}

// Message types, as message_type spells them.
const (
	TypeEventCreated             = "EventCreated"
	TypeEnforcementCreated       = "EnforcementCreated"
	TypeExecutionRequested       = "ExecutionRequested" // also of dispatches
	TypeExecutionStatusChanged   = "ExecutionStatusChanged"
	TypeExecutionCompleted       = "ExecutionCompleted"
	TypeExecutionCancelRequested = "ExecutionCancelRequested"
	TypeInquiryCreated           = "InquiryCreated"
	TypeInquiryResponded         = "InquiryResponded"
	TypeNotificationCreated      = "NotificationCreated"
	TypeRuleCreated              = "RuleCreated"
	TypeRuleEnabled              = "RuleEnabled"
	TypeRuleDisabled             = "RuleDisabled"
	TypePackRegistered           = "PackRegistered"
	TypePackDeleted              = "PackDeleted"

	TypeExecutionBatchRequested = "ExecutionBatchRequested" // only of this project: a Batch of dispatches
	TypeExecutionBatchCompleted = "ExecutionBatchCompleted" // only of this project: a Batch of completions
)

// Types lists every message type.
var Types = []string{
	TypeEventCreated, TypeEnforcementCreated, TypeExecutionRequested, TypeExecutionStatusChanged,
	TypeExecutionCompleted, TypeExecutionCancelRequested, TypeInquiryCreated, TypeInquiryResponded,
	TypeNotificationCreated, TypeRuleCreated, TypeRuleEnabled, TypeRuleDisabled, TypePackRegistered, TypePackDeleted,
	TypeExecutionBatchRequested, TypeExecutionBatchCompleted,
}

// Route is where messages of a type are published.
type Route struct{ Exchange, Key string }

// RouteOf returns the exchange and routing key of a message type. Cancel requests have no key of
// their own: they go to CancelKey; batches of dispatches go to DispatchKey.
func RouteOf(kind string) (Route, bool) {
	route, ok := routes[kind]
	return route, ok
}

var routes = map[string]Route{
	TypeEventCreated:             {ExchangeEvents, KeyEventCreated},
	TypeEnforcementCreated:       {ExchangeExecutions, KeyEnforcementCreated},
	TypeExecutionRequested:       {ExchangeExecutions, KeyExecutionRequested},
	TypeExecutionStatusChanged:   {ExchangeExecutions, KeyExecutionStatusChanged},
	TypeExecutionCompleted:       {ExchangeExecutions, KeyExecutionCompleted},
	TypeExecutionCancelRequested: {ExchangeExecutions, ""},
	TypeInquiryCreated:           {ExchangeExecutions, KeyInquiryCreated},
	TypeInquiryResponded:         {ExchangeExecutions, KeyInquiryResponded},
	TypeNotificationCreated:      {ExchangeNotifications, KeyNotificationCreated},
	TypeRuleCreated:              {ExchangeEvents, KeyRuleCreated},
	TypeRuleEnabled:              {ExchangeEvents, KeyRuleEnabled},
	TypeRuleDisabled:             {ExchangeEvents, KeyRuleDisabled},
	TypePackRegistered:           {ExchangeEvents, KeyPackRegistered},
	TypePackDeleted:              {ExchangeEvents, KeyPackDeleted},
	TypeExecutionBatchRequested:  {ExchangeExecutions, ""},
	TypeExecutionBatchCompleted:  {"", QueueExecutionBatches},
}

// DeadLetterKeys lists the static routing keys of dead letters; every worker also has its dispatch
// and its cancel key.
func DeadLetterKeys() []string {
	return []string{
		KeyEventCreated, KeyEnforcementCreated, KeyExecutionRequested, KeyExecutionStatusChanged,
		KeyExecutionCompleted, KeyInquiryResponded, KeyPackRegistered, KeyPackDeleted,
	}
}

// MayVanish reports whether an unroutable message with this key may be dropped: interested sensors
// and workers bind queues of their own, and none may exist.
func MayVanish(key string) bool {
	switch key {
	case KeyInquiryCreated, KeyNotificationCreated, KeyRuleCreated, KeyRuleEnabled, KeyRuleDisabled, KeyPackRegistered,
		KeyPackDeleted:
		return true
	}
	return false
}

// WorkerOfQueue returns the worker that one of its own queues belongs to.
func WorkerOfQueue(queue string) (int64, bool) {
	rest, ok := strings.CutPrefix(queue, "worker.")
	number, kind, named := strings.Cut(rest, ".")
	if !ok || !named || kind != "executions" && kind != "cancel" && kind != "packs" {
		return 0, false
	}
	id, err := strconv.ParseInt(number, 10, 64)
	return id, err == nil
}
