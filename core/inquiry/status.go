package inquiry

// Status is where a question stands.
type Status string

// The statuses of questions, those of the published rows.
const (
	Pending   Status = "pending"
	Responded Status = "responded"
	Expired   Status = "timeout"
	Cancelled Status = "cancelled"
)
