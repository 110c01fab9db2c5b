package proof

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/config"
	"github.com/attune-go/attune/core/engine"
	"github.com/attune-go/attune/core/telemetry"
	"github.com/attune-go/attune/lab/testkit"
)

// childVariable makes this test binary an engine replica: a process of its own
// that can be killed.
const childVariable = "ATTUNE_PROOF_TEST_CHILD"

// servers are the addresses of a replica's servers.
type servers struct {
	Database   string `json:"database"`
	AMQP       string `json:"amqp"`
	Management string `json:"management"`
	QueueType  string `json:"queue_type"` // classic if empty
}

// replica runs an engine until SIGTERM.
func replica(raw string) int {
	var s servers
	if err := json.Unmarshal([]byte(raw), &s); err != nil {
		return 2
	}
	logger, err := telemetry.NewLogger(os.Stderr, "info", "text")
	if err != nil {
		return 2
	}
	cfg := config.Default()
	cfg.Database.URL, cfg.Database.Schema = s.Database, testkit.Schema
	cfg.Database.MaxConnections = testkit.EngineConnections
	cfg.MessageQueue.URL, cfg.MessageQueue.ManagementURL = s.AMQP, s.Management
	cfg.Executor.HTTP.Listen = ""
	if testkit.Adopted() { // the adopted default ignores max_retries of actions
		cfg.Executor.Retry.HonourActionMaxRetries = "true"
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	e, err := engine.New(ctx, cfg, engine.Deps{Logger: logger, Version: "test"})
	if err == nil {
		err = e.Start(ctx)
	}
	if err != nil {
		logger.Error("Replica could not start", "error", err)
		return 1
	}
	<-ctx.Done()
	if err := e.Stop(context.Background()); err != nil {
		return 1
	}
	return 0
}

// process is a replica as a process.
type process struct {
	cmd  *exec.Cmd
	log  *logged
	done chan struct{} // closed when it has ended
}

// logged stores the output of a process, which may be read meanwhile.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (l *logged) Write(raw []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(raw)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// start starts a replica as a process of its own, which dies with the test.
func (s servers) start(t *testing.T) *process {
	t.Helper()
	raw, err := json.Marshal(s)
	require.NoError(t, err)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childVariable+"="+string(raw))
	return launch(t, cmd)
}

// launch starts a process that dies with the test. If the test fails, its output is logged.
func launch(t testing.TB, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{cmd: cmd, log: &logged{}, done: make(chan struct{})}
	p.cmd.Stderr = p.log
	require.NoError(t, p.cmd.Start())
	go func() {
		defer close(p.done)
		_ = p.cmd.Wait() // its state has the outcome
	}()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("log of process %d:\n%s", p.cmd.Process.Pid, p.log)
		}
	})
	return p
}

// kill is kill -9.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may be dead already
	<-p.done
}
