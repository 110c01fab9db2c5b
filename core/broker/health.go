package broker

import "time"

// Link is the condition of one of a Broker's two connections.
type Link struct {
	// Purpose is publish or consume. What is neither goes through consume.
	Purpose string
	Up      bool
	// Blocked says that the broker is there but takes no messages; Reason is
	// then what it runs out of, else why the connection is down.
	Blocked bool
	Reason  string
	// Since is when the condition began. Before the first attempt to connect
	// has ended it is zero.
	Since time.Time
	// Server is what the broker calls itself, with its version; empty before
	// the first connection.
	Server string
}

// Links tells how the connections are.
func (b *Broker) Links() []Link {
	return []Link{b.publish.describe(), b.consume.describe()}
}

func (l *link) describe() Link {
	l.mu.Lock()
	defer l.mu.Unlock()
	d := Link{Purpose: l.purpose, Up: l.conn != nil, Since: l.since, Server: l.server}
	switch {
	case l.conn == nil && l.lastErr != nil:
		d.Reason = l.lastErr.Error()
	case l.conn != nil && l.conn.blocked.Load():
		d.Blocked, d.Reason = true, l.blockedBy
	}
	return d
}

// serverOf reads what the server said of itself when it was greeted.
func serverOf(conn *connection) string {
	product, _ := conn.Properties["product"].(string)
	version, _ := conn.Properties["version"].(string)
	if product == "" || version == "" {
		return product + version
	}
	return product + " " + version
}
