package engine

import "github.com/attune-go/attune/core/supervise"

// addDeadLetters adds the handler of dead letters and the probe of their routes.
func (e *Engine) addDeadLetters(_ *supervise.Metrics) {}
