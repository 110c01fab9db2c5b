// Package rule decides whether an event fires a rule, and with which parameters.
// It is pure: it reads what it is given and nothing else.
//
// # Conditions
//
// Conditions are null, {} or [] for none; a list of {field, operator, value} that
// must all hold; {"all": […]} or {"any": […]} for the same list with the one or the
// other; or {"expression": "…"} in the language of package expr, with the variable
// event. An event without a payload meets any conditions.
//
// A field is a path of keys from the root of the payload. Operators are equals,
// not_equals and contains, the last for a text in a text. A field that the payload
// does not have meets no operator, not_equals included. An expression that cannot
// be evaluated does not match; Verdict.Err says why.
//
// # Parameters
//
// Texts in the parameters may hold {{ path }}, with the paths event.id,
// event.trigger, event.created, event.payload.…, pack.config.…, system.timestamp,
// system.rule.id and system.rule.ref. A text that is one path and nothing else gets
// the value with its kind; what a path does not lead to is null, and empty in a
// text.
//
// # Errors
//
// Whatever is wrong with a rule itself is an *Error that names the rule, the part
// of it and, for templates and expressions, the position.
package rule
