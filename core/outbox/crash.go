package outbox

// crashPoint is where a test kills the process. It does nothing unless a test
// has set it.
var crashPoint = func(string) {}
