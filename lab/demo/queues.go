package demo

import (
	"context"
	"fmt"
	"time"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/supervise"
)

// queues counts the queues of the broker at the end.
type queues struct {
	all  int
	left []string // the non-empty ones with their message counts
}

// queues waits up to 30 seconds until every queue is empty: the broker counts its messages once a second.
func (d *Demo) queues(ctx context.Context) (queues, error) {
	management, err := broker.NewManagement(d.stack.ManagementURL(), "/", 10*time.Second)
	if err != nil {
		return queues{}, err
	}
	defer management.Close()
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	var last queues
	for {
		list, err := management.Queues(ctx)
		if err == nil {
			last = queues{all: len(list)}
			for _, q := range list {
				ready, unacked := number(q.Ready), number(q.Unacked)
				if ready != "0" || unacked != "0" {
					last.left = append(last.left,
						fmt.Sprintf("%s: %s ready, %s unacknowledged", q.Name, ready, unacked))
				}
			}
			if len(list) > 0 && len(last.left) == 0 {
				return last, nil
			}
		}
		if !supervise.Sleep(ctx, 500*time.Millisecond) {
			return last, err
		}
	}
}

func number(n *int) string {
	if n == nil {
		return "unknown"
	}
	return fmt.Sprint(*n)
}
