package outbox

// crashPoint lets a test kill the process. By default it does nothing.
var crashPoint = func(string) {}
