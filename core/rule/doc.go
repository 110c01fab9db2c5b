// Package rule decides whether an event fires a rule, and with which parameters. It is pure: it has no database and no
// clock.
//
// # Conditions
//
// Conditions are null, {} or [] for none; a list of {field, operator, value} that must all hold; {"all": […]} or
// {"any": […]} with such a list; or {"expression": "…"} in the language of package expr, with the variable event. An
// event without a payload meets any conditions.
//
// A field is a path of keys from the root of the payload. Operators are equals, not_equals and contains, the last for a
// text in a text. A missing field meets no operator, not even not_equals. An expression with an error does not match;
// Verdict.Err has the error.
//
// # Parameters
//
// Texts in the parameters may have templates {{ path }}, with the paths event.id, event.trigger, event.created,
// event.payload.…, pack.config.…, system.timestamp, system.rule.id and system.rule.ref. A text that is only one path
// gets the value with its kind. A path without a value is null, and empty within a text.
//
// # Errors
//
// A mistake in a rule is an *Error with the rule, the part and, for templates and expressions, the position.
package rule
