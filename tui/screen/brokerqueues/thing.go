package brokerqueues

import "github.com/attune-go/attune/tui/screen"

// Thing is the queue of a row.
func (v *Broker) Thing(row int) screen.Thing { return screen.BrokerQueueThing(v.rows[row].BrokerQueue) }
