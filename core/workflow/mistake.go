package workflow

import "github.com/attune-go/attune/core/yamldoc"

// Mistakes in definitions are told as package yamldoc tells them.
type (
	Place         = yamldoc.Place
	Mistake       = yamldoc.Mistake
	MistakesError = yamldoc.MistakesError
)
