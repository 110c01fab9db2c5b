package devstack

import (
	"cmp"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// The names of a stack's database and user.
const (
	DatabaseName = "attune"
	Username     = "attune"
)

// ServerStatus is the status of one server.
type ServerStatus struct {
	Running bool   `json:"running" yaml:"running"`
	PID     int    `json:"pid,omitempty" yaml:"pid,omitempty"`
	Port    int    `json:"port" yaml:"port"`
	Log     string `json:"log" yaml:"log"`
}

// Status is the status of a stack.
type Status struct {
	Dir           string       `json:"dir" yaml:"dir"`
	Moved         string       `json:"moved,omitempty" yaml:"moved,omitempty"`
	Detached      bool         `json:"detached" yaml:"detached"`
	Durable       bool         `json:"durable" yaml:"durable"`
	Postgres      ServerStatus `json:"postgres" yaml:"postgres"`
	Broker        ServerStatus `json:"broker" yaml:"broker"`
	DatabaseURL   string       `json:"database_url" yaml:"database_url"`
	AMQPURL       string       `json:"amqp_url" yaml:"amqp_url"`
	ManagementURL string       `json:"management_url" yaml:"management_url"`
}

// Running reports whether both servers run.
func (s Status) Running() bool { return s.Postgres.Running && s.Broker.Running }

// Logger is that of the configuration.
func (s *Stack) Logger() *slog.Logger { return s.cfg.Logger }

// Dir is the folder that the stack really uses.
func (s *Stack) Dir() string { return s.place.dir }

// Moved returns the reason why Dir is not the configured folder, empty if it is.
func (s *Stack) Moved() string { return s.place.moved }

// DatabaseURL is the PostgreSQL URL of the stack's database, for its superuser.
func (s *Stack) DatabaseURL() string { return s.databaseURL(DatabaseName) }

func (s *Stack) databaseURL(name string) string {
	return fmt.Sprintf("postgres://%s:%s@127.0.0.1:%d/%s?sslmode=disable", Username, s.password,
		s.snapshot().PostgresPort, name)
}

// AMQPURL is the broker's URL for its default virtual host.
func (s *Stack) AMQPURL() string {
	return fmt.Sprintf("amqp://%s:%s@127.0.0.1:%d/%%2f", Username, s.password, s.snapshot().AMQPPort)
}

// ManagementURL is the URL of the broker's management plugin with credentials.
func (s *Stack) ManagementURL() string {
	return fmt.Sprintf("http://%s:%s@127.0.0.1:%d", Username, s.password, s.snapshot().ManagementPort)
}

// Env returns the shell commands that point every program of the project to this stack.
func (s *Stack) Env() string {
	var b strings.Builder
	for _, variable := range s.variables() {
		name, value, _ := strings.Cut(variable, "=")
		fmt.Fprintf(&b, "export %s='%s'\n", name, value)
	}
	return b.String()
}

func (s *Stack) variables() []string {
	return []string{
		"ATTUNE__DATABASE__URL=" + s.DatabaseURL(),
		"ATTUNE__MESSAGE_QUEUE__URL=" + s.AMQPURL(),
		"ATTUNE__MESSAGE_QUEUE__MANAGEMENT_URL=" + s.ManagementURL(),
	}
}

// Status checks the processes without connecting to the servers.
func (s *Stack) Status() Status {
	s.refresh()
	st := s.snapshot()
	out := Status{
		Dir: s.place.dir, Moved: s.place.moved, Detached: st.Detached, Durable: st.Durable,
		Postgres:      ServerStatus{Port: st.PostgresPort, Log: s.postgresLog()},
		Broker:        ServerStatus{Port: st.AMQPPort, Log: s.brokerLog()},
		DatabaseURL:   s.DatabaseURL(),
		AMQPURL:       s.AMQPURL(),
		ManagementURL: s.ManagementURL(),
	}
	if alive(st.Postgres.PID, s.postgresMark()) {
		out.Postgres.Running, out.Postgres.PID = true, st.Postgres.PID
	}
	if alive(st.Broker.PID, s.brokerMark()) {
		out.Broker.Running, out.Broker.PID = true, st.Broker.PID
	}
	return out
}

// failure matches log lines that are likely to explain the end of a server.
var failure = regexp.MustCompile(`(?i)error|fatal|panic|could not|cannot|failed|refused`)

// withLogs adds the server's last failure and the paths of its logs to an error. The error stays one line.
func withLogs(err error, logs ...string) error {
	for _, log := range logs {
		if line := lastFailure(log); line != "" {
			return fmt.Errorf("%w; the server said %q (logs: %s)", err, line, strings.Join(logs, ", "))
		}
	}
	return fmt.Errorf("%w (logs: %s)", err, strings.Join(logs, ", "))
}

// lastFailure returns the last line of a log that explains a failure, or else the last one.
func lastFailure(file string) string {
	raw, err := os.ReadFile(filepath.Clean(file))
	if err != nil {
		return ""
	}
	var last, failed string
	for line := range strings.Lines(string(raw)) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		if last = line; failure.MatchString(line) {
			failed = line
		}
	}
	return cmp.Or(failed, last)
}
