package broker

import "time"

// Link is the state of one of a Broker's two connections.
type Link struct {
	// Purpose is publish or consume. Declarations use consume.
	Purpose string
	Up      bool
	// Blocked says that the broker is connected but accepts no messages. Reason is then the
	// exhausted resource, else why the connection is down.
	Blocked bool
	Reason  string
	// Since is when the state began. It is zero before the first attempt to connect.
	Since time.Time
	// Server is the broker's name and version; empty before the first connection.
	Server string
}

// Links returns the state of both connections.
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

// serverOf reads the broker's name and version from the handshake.
func serverOf(conn *connection) string {
	product, _ := conn.Properties["product"].(string)
	version, _ := conn.Properties["version"].(string)
	if product == "" || version == "" {
		return product + version
	}
	return product + " " + version
}
