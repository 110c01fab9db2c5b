package broker

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"
)

// Node is one node of the broker. Unknown numbers are nil.
type Node struct {
	Name        string
	Running     bool
	MemoryUsed  *int64
	MemoryLimit *int64
	MemoryAlarm bool
	DiskFree    *int64
	DiskLimit   *int64
	DiskAlarm   bool
	Files       *int64
	FilesLimit  *int64
	Uptime      *time.Duration
}

// Nodes lists the nodes of the broker; it needs the user tag monitoring.
func (m *Management) Nodes(ctx context.Context) ([]Node, error) {
	var found []struct {
		Name        string `json:"name"`
		Running     bool   `json:"running"`
		MemoryUsed  any    `json:"mem_used"`
		MemoryLimit any    `json:"mem_limit"`
		MemoryAlarm bool   `json:"mem_alarm"`
		DiskFree    any    `json:"disk_free"` // a text if it is not monitored
		DiskLimit   any    `json:"disk_free_limit"`
		DiskAlarm   bool   `json:"disk_free_alarm"`
		Files       any    `json:"fd_used"`
		FilesLimit  any    `json:"fd_total"`
		Uptime      any    `json:"uptime"`
	}
	const path = "nodes?columns=name,running,mem_used,mem_limit,mem_alarm,disk_free,disk_free_limit,disk_free_alarm,fd_used,fd_total,uptime"
	if err := m.do(ctx, http.MethodGet, path, nil, &found); err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	nodes := make([]Node, 0, len(found))
	for _, n := range found {
		nodes = append(nodes, Node{
			Name: n.Name, Running: n.Running, MemoryUsed: whole(n.MemoryUsed), MemoryLimit: whole(n.MemoryLimit),
			MemoryAlarm: n.MemoryAlarm,
			DiskFree:    whole(n.DiskFree), DiskLimit: whole(n.DiskLimit), DiskAlarm: n.DiskAlarm,
			Files: whole(n.Files), FilesLimit: whole(n.FilesLimit), Uptime: millis(whole(n.Uptime)),
		})
	}
	return nodes, nil
}

// BlockedConnection is a client that the broker blocks from publishing.
type BlockedConnection struct {
	// Client is the name that the client set, or else the broker's name for it.
	Client string
	// State is blocked, or blocking for a client that has not tried to publish yet.
	State string
}

// Blocked lists the connections to the virtual host that the broker blocks from publishing.
func (m *Management) Blocked(ctx context.Context) ([]BlockedConnection, error) {
	var found []struct {
		Name   string          `json:"name"`
		State  string          `json:"state"`
		Client json.RawMessage `json:"client_properties"` // an empty list without any
	}
	path := "vhosts/" + url.PathEscape(m.vhost) + "/connections?columns=name,state,client_properties.connection_name"
	if err := m.do(ctx, http.MethodGet, path, nil, &found); err != nil {
		return nil, fmt.Errorf("list connections: %w", err)
	}
	var blocked []BlockedConnection
	for _, c := range found {
		if c.State != "blocked" && c.State != "blocking" {
			continue
		}
		var client struct {
			Name string `json:"connection_name"`
		}
		_ = json.Unmarshal(c.Client, &client) // then the broker's name remains
		if client.Name == "" {
			client.Name = c.Name
		}
		blocked = append(blocked, BlockedConnection{Client: client.Name, State: c.State})
	}
	return blocked, nil
}

// LengthSample is the number of ready messages of a queue at a time.
type LengthSample struct {
	At    time.Time
	Ready int64
}

// Lengths is the number of ready messages of a queue over the last hour, the oldest first: the
// samples of the management API, one a minute. It is empty if the broker keeps none; errors.Is(err,
// ErrNotFound) if the queue is missing.
func (m *Management) Lengths(ctx context.Context, queue string) ([]LengthSample, error) {
	var found struct {
		Ready struct {
			Samples []struct {
				Sample any   `json:"sample"`
				At     int64 `json:"timestamp"` // milliseconds
			} `json:"samples"`
		} `json:"messages_ready_details"`
	}
	path := "queues/" + url.PathEscape(m.vhost) + "/" + url.PathEscape(queue) +
		"?lengths_age=3600&lengths_incr=60&columns=messages_ready_details.samples"
	if err := m.do(ctx, http.MethodGet, path, nil, &found); err != nil {
		return nil, fmt.Errorf("read the lengths of queue %s: %w", queue, err)
	}
	samples := make([]LengthSample, 0, len(found.Ready.Samples))
	for _, s := range slices.Backward(found.Ready.Samples) { // the newest come first
		if ready := whole(s.Sample); ready != nil {
			samples = append(samples, LengthSample{At: time.UnixMilli(s.At), Ready: *ready})
		}
	}
	return samples, nil
}
