package redrive

import (
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/attune-go/attune/core/broker"
)

// Queue is what is known of the dead-letter queue when it is looked at. Fields that
// only the management interface tells are empty where that does not answer.
type Queue struct {
	Name      string `json:"name"`
	Version   string `json:"version,omitempty"` // of the broker
	Type      string `json:"type,omitempty"`    // classic, quorum or stream
	Ready     int    `json:"ready"`
	Consumers int    `json:"consumers"`
	Unacked   *int   `json:"unacked"`
	// Limit is how often a message is delivered before it is dropped; 0 without one.
	Limit        int64    `json:"limit,omitempty"`
	SingleActive bool     `json:"single_active,omitempty"`
	TTL          string   `json:"ttl,omitempty"`
	MaxLength    string   `json:"max_length,omitempty"`
	DLX          string   `json:"dlx,omitempty"`
	Alarms       []string `json:"alarms,omitempty"`
}

// Way is how a queue is looked into.
type Way struct {
	Return broker.Return
	// Cost is what the look does to the messages, for people.
	Cost string
	// Highest is the count of deliveries from which no message is looked at again;
	// 0 without a limit.
	Highest int64
}

// ErrNoPeek says that a queue cannot be looked into.
var ErrNoPeek = errors.New("the queue cannot be looked into")

// margin is how far from its limit a message must be to be looked at.
const margin = 3

// limitOfFour is the limit that RabbitMQ 4 gives to quorum queues without one.
const limitOfFour = 20

// Strategy chooses how to return what was looked at. Of what is not known the
// strictest is assumed.
func Strategy(q *Queue) (Way, error) {
	major, minor, known := version(q.Version)
	switch {
	case q.Type == "classic":
		return Way{Return: broker.ReturnByNack, Cost: "marks redelivered"}, nil
	case q.Type == "stream":
		return Way{}, fmt.Errorf("%w: it is a stream, from which nothing is taken one by one", ErrNoPeek)
	case q.SingleActive:
		return Way{}, fmt.Errorf("%w: it is a quorum queue with a single active consumer; what was handled can be listed (b)", ErrNoPeek)
	case q.Type == "quorum" && known && (major > 4 || major == 4 && minor >= 3):
		return Way{Return: broker.ReturnByNack, Cost: "marks redelivered"}, nil
	case q.Type == "quorum" && known && major < 4 && q.Limit == 0:
		return Way{Return: broker.ReturnByClose, Cost: "marks redelivered, raises the delivery count, which nothing limits"}, nil
	}
	limit := q.Limit
	if limit == 0 {
		limit = limitOfFour
	}
	return Way{
		Return: broker.ReturnByNack, Highest: max(limit-margin, 0),
		Cost: fmt.Sprintf("marks redelivered, and is one of %d deliveries after which a message is dropped", limit),
	}, nil
}

func version(text string) (major, minor int, known bool) {
	head, rest, _ := strings.Cut(text, ".")
	next, _, _ := strings.Cut(rest, ".")
	major, err := strconv.Atoi(head)
	if err != nil {
		return 0, 0, false
	}
	minor, err = strconv.Atoi(next)
	return major, minor, err == nil
}

// describe takes over what the management interface says of the queue.
func (q *Queue) describe(info *broker.QueueInfo, policies []broker.Policy) {
	q.Type, q.Unacked = info.Type, info.Unacked
	settings := map[string]any{}
	for _, p := range policies {
		if p.Name == info.Policy || p.Name == info.OperatorPolicy {
			for key, value := range p.Definition {
				settings["x-"+key] = value
			}
		}
	}
	maps.Copy(settings, info.Arguments)
	text := func(key string) string {
		if value, ok := settings[key]; ok {
			return fmt.Sprint(value)
		}
		return ""
	}
	q.TTL, q.MaxLength, q.DLX = text("x-message-ttl"), text("x-max-length"), text("x-dead-letter-exchange")
	q.SingleActive = settings["x-single-active-consumer"] == true && info.Type == "quorum"
	if n, err := strconv.ParseFloat(text("x-delivery-limit"), 64); err == nil {
		q.Limit = int64(n)
	}
}
