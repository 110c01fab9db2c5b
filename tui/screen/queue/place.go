package queue

import "strconv"

// Shown names the queue in sight.
func (q *Queue) Shown() string { return strconv.FormatInt(q.id, 10) }

// ShowAgain turns back to a queue.
func (q *Queue) ShowAgain(name string) {
	if id, err := strconv.ParseInt(name, 10, 64); err == nil {
		q.Show(id)
	}
}
