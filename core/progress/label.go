package progress

import "github.com/attune-go/attune/core/attune"

// label keeps the metric's labels to the known statuses, whatever a message
// says.
func label(text string) string {
	status, err := attune.ParseStatus(text)
	if err != nil {
		return "unknown"
	}
	return string(status)
}
