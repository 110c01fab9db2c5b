package devstack

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// errTooOld is a broker that runs but lacks what the engine relies on.
var errTooOld = errors.New("older than " + minBroker + ", which is needed")

const nodeName = "rabbit@localhost" // independent of the machine's own name

func (s *Stack) brokerDir() string             { return filepath.Join(s.place.dir, "rabbitmq") }
func (s *Stack) brokerFile(name string) string { return filepath.Join(s.brokerDir(), name) }
func (s *Stack) brokerLog() string             { return s.brokerFile("log/" + nodeName + ".log") }
func (s *Stack) brokerOutput() string          { return s.brokerFile("output.log") }
func (s *Stack) brokerMark() string            { return " -attune_stack " + s.brokerDir() + " " }
func (s *Stack) epmdMark() string              { return s.brokerFile("epmd") + " " }

// ensureBroker starts RabbitMQ unless it runs, and waits until AMQP and the
// management plugin answer. started tells whether a process was forked, also
// when the answer is an error.
func (s *Stack) ensureBroker(ctx context.Context) (started bool, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.cfg.StartTimeout,
		fmt.Errorf("RabbitMQ was not ready within %s", s.cfg.StartTimeout))
	defer cancel()
	if pid := s.snapshot().Broker.PID; alive(pid, s.brokerMark()) {
		return false, s.awaitBroker(ctx, pid)
	}
	began := time.Now()
	for range 3 {
		started = true
		if err = s.startBroker(ctx); !errors.Is(err, errPortTaken) {
			break
		}
		if err = s.update(func(st *state) { st.AMQPPort = 0 }); err != nil {
			break
		}
	}
	if err != nil {
		return started, withLogs(err, s.brokerOutput(), s.brokerLog())
	}
	s.cfg.Logger.Debug("RabbitMQ is ready", "port", s.snapshot().AMQPPort, "after", time.Since(began))
	return started, nil
}

func (s *Stack) startBroker(ctx context.Context) error {
	if err := s.clearBroker(ctx); err != nil {
		return err
	}
	st := s.snapshot()
	if !allFree(st.AMQPPort, st.ManagementPort, st.DistPort, st.EpmdPort) {
		ports, err := freePorts(4)
		if err != nil {
			return err
		}
		err = s.update(func(st *state) {
			st.AMQPPort, st.ManagementPort, st.DistPort, st.EpmdPort = ports[0], ports[1], ports[2], ports[3]
		})
		if err != nil {
			return err
		}
	}
	if err := s.writeBrokerFiles(); err != nil {
		return err
	}
	if err := s.startEpmd(ctx); err != nil {
		return err
	}
	// The broker's script becomes the Erlang machine, so its pid is the
	// broker's; the flag is for recognising it.
	pid, err := s.launch.start(child{
		name: "RabbitMQ", path: s.bins.broker,
		args: []string{s.bins.broker, "-attune_stack", s.brokerDir()},
		env:  s.brokerEnv(), dir: s.brokerDir(), log: s.brokerOutput(), onDeath: syscall.SIGKILL,
	})
	if err != nil {
		return err
	}
	if err := s.update(func(st *state) { st.Broker.PID = pid }); err != nil {
		return err
	}
	return s.awaitBroker(ctx, pid)
}

// startEpmd runs Erlang's port mapper in the foreground and on our address.
// Left to itself the broker would start one as a daemon that outlives it.
func (s *Stack) startEpmd(ctx context.Context) error {
	port := strconv.Itoa(s.snapshot().EpmdPort)
	pid, err := s.launch.start(child{
		name: "epmd", path: s.bins.epmd,
		args: []string{s.brokerFile("epmd"), "-port", port, "-address", "127.0.0.1"},
		env:  s.brokerEnv(), dir: s.brokerDir(), log: s.brokerFile("epmd.log"), onDeath: syscall.SIGKILL,
	})
	if err != nil {
		return err
	}
	if err := s.update(func(st *state) { st.Epmd.PID = pid }); err != nil {
		return err
	}
	return poll(ctx, 10*time.Millisecond, func() (bool, error) {
		if !alive(pid, s.epmdMark()) {
			return false, errors.New("epmd ended while it started")
		}
		return listening(s.snapshot().EpmdPort), nil
	})
}

// clearBroker ends what an earlier start left running.
func (s *Stack) clearBroker(ctx context.Context) error {
	for _, mark := range []string{s.brokerMark(), s.epmdMark()} {
		for _, pid := range marked(mark) {
			if err := stop(ctx, pid, mark, syscall.SIGKILL, time.Second); err != nil {
				return err
			}
		}
	}
	st := s.snapshot()
	return s.awaitPortsFree(ctx, st.AMQPPort, st.ManagementPort, st.DistPort, st.EpmdPort)
}

func (s *Stack) writeBrokerFiles() error {
	for _, dir := range []string{"", "home", "log", "mnesia", "conf.d", "generated"} {
		if err := makeDir(s.brokerFile(dir)); err != nil {
			return err
		}
	}
	if err := s.writeCookie(); err != nil {
		return err
	}
	files := map[string]string{
		"rabbitmq.conf":     s.brokerConfig(),
		"enabled_plugins":   "[rabbitmq_management].\n",
		"rabbitmq-env.conf": "",
		"advanced.config":   "[].\n",
	}
	for name, text := range files {
		if err := os.WriteFile(s.brokerFile(name), []byte(text), 0o600); err != nil {
			return fmt.Errorf("write the broker's %s: %w", name, err)
		}
	}
	return nil
}

func (s *Stack) writeCookie() error {
	file := s.brokerFile("home/.erlang.cookie")
	if _, err := os.Stat(file); err == nil {
		return nil
	}
	secret := make([]byte, 16)
	_, _ = rand.Read(secret) // never fails
	if err := os.WriteFile(file, []byte(hex.EncodeToString(secret)), 0o400); err != nil {
		return fmt.Errorf("write the broker's cookie: %w", err)
	}
	return nil
}

func (s *Stack) brokerConfig() string {
	st := s.snapshot()
	lines := []string{
		fmt.Sprintf("listeners.tcp.1 = 127.0.0.1:%d", st.AMQPPort),
		"management.tcp.ip = 127.0.0.1",
		fmt.Sprintf("management.tcp.port = %d", st.ManagementPort),
		"default_user = " + Username,
		"default_pass = " + s.password,
		"disk_free_limit.absolute = 50MB",
		"vm_memory_high_watermark.absolute = 1GB",
	}
	if st.Stats > 0 {
		// Both are needed: the first alone leaves message counts five seconds old.
		lines = append(lines,
			fmt.Sprintf("collect_statistics_interval = %d", st.Stats.Milliseconds()),
			"management.sample_retention_policies.global.minute = 1",
			"management.sample_retention_policies.basic.minute = 1",
			"management.sample_retention_policies.detailed.minute = 1",
		)
	}
	return strings.Join(lines, "\n") + "\n"
}

// cleanEnv is the whole environment of a server: nothing of the caller's but
// the search path.
func (s *Stack) cleanEnv() []string {
	path := append([]string{}, s.bins.extraPath...)
	if own := os.Getenv("PATH"); own != "" {
		path = append(path, own)
	}
	path = append(path, "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin")
	return []string{"PATH=" + strings.Join(path, ":"), "LANG=C.UTF-8", "HOME=" + s.place.dir}
}

func (s *Stack) brokerEnv() []string {
	st := s.snapshot()
	return append(s.cleanEnv(),
		"HOME="+s.brokerFile("home"), // unset, the boot crashes; the last one counts
		"RABBITMQ_NODENAME="+nodeName,
		"RABBITMQ_MNESIA_BASE="+s.brokerFile("mnesia"),
		"RABBITMQ_LOG_BASE="+s.brokerFile("log"),
		"RABBITMQ_CONFIG_FILE="+s.brokerFile("rabbitmq.conf"),
		"RABBITMQ_CONFIG_FILES="+s.brokerFile("conf.d"),
		"RABBITMQ_ADVANCED_CONFIG_FILE="+s.brokerFile("advanced.config"),
		"RABBITMQ_CONF_ENV_FILE="+s.brokerFile("rabbitmq-env.conf"),
		"RABBITMQ_GENERATED_CONFIG_DIR="+s.brokerFile("generated"),
		"RABBITMQ_ENABLED_PLUGINS_FILE="+s.brokerFile("enabled_plugins"),
		"RABBITMQ_PID_FILE="+s.brokerFile("broker.pid"), // the broker deletes it: not ours to rely on
		"RABBITMQ_DIST_PORT="+strconv.Itoa(st.DistPort),
		"ERL_EPMD_PORT="+strconv.Itoa(st.EpmdPort),
		"ERL_EPMD_ADDRESS=127.0.0.1",
		"RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=-kernel inet_dist_use_interface {127,0,0,1}",
		"RUNNING_UNDER_SYSTEMD=true",
	)
}

// awaitBroker waits until AMQP answers and the management plugin is there, and
// refuses a broker that is too old.
func (s *Stack) awaitBroker(ctx context.Context, pid int) error {
	var last error
	err := poll(ctx, 50*time.Millisecond, func() (bool, error) {
		if !alive(pid, s.brokerMark()) {
			st := s.snapshot()
			if !allFree(st.AMQPPort, st.ManagementPort, st.DistPort) {
				return false, errPortTaken
			}
			return false, errors.New("RabbitMQ ended while it started")
		}
		last = s.askBroker(ctx)
		return last == nil || errors.Is(last, errTooOld), nil
	})
	if errors.Is(last, errTooOld) {
		return last
	}
	if err != nil && last != nil && !errors.Is(err, errPortTaken) {
		return fmt.Errorf("%w (last answer: %w)", err, last)
	}
	return err
}

// askBroker is nil when a broker of a good version answers on both its ports.
func (s *Stack) askBroker(ctx context.Context) error {
	if err := s.askAMQP(ctx); err != nil {
		return err
	}
	version, err := s.askManagement(ctx)
	if err != nil {
		return err
	}
	return checkBrokerVersion(version)
}

// askAMQP speaks the first word of the protocol; a broker that is ready answers
// with a method frame.
func (s *Stack) askAMQP(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", loopback(s.snapshot().AMQPPort))
	if err != nil {
		return fmt.Errorf("AMQP: %w", err)
	}
	defer func() { _ = conn.Close() }() // a question has nothing to lose
	deadline, _ := ctx.Deadline()
	if err := conn.SetDeadline(deadline); err != nil {
		return fmt.Errorf("AMQP: %w", err)
	}
	if _, err := io.WriteString(conn, "AMQP\x00\x00\x09\x01"); err != nil {
		return fmt.Errorf("AMQP: %w", err)
	}
	frame := make([]byte, 1)
	if _, err := io.ReadFull(conn, frame); err != nil {
		return fmt.Errorf("AMQP: %w", err)
	}
	if frame[0] != 1 {
		return fmt.Errorf("AMQP: port %d does not speak AMQP 0-9-1", s.snapshot().AMQPPort)
	}
	return nil
}

func (s *Stack) askManagement(ctx context.Context) (version string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.ManagementURL()+"/api/overview", nil)
	if err != nil {
		return "", fmt.Errorf("management: %w", err)
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return "", fmt.Errorf("management: %w", err)
	}
	defer func() { _ = response.Body.Close() }() // read to its end below
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("management: %s", response.Status)
	}
	var overview struct {
		Version string `json:"rabbitmq_version"`
	}
	if err := json.NewDecoder(response.Body).Decode(&overview); err != nil {
		return "", fmt.Errorf("management: %w", err)
	}
	return overview.Version, nil
}

func checkBrokerVersion(version string) error {
	var major, minor int
	if _, err := fmt.Sscanf(version, "%d.%d", &major, &minor); err != nil {
		return fmt.Errorf("management: unknown version %q", version)
	}
	if major < 3 || (major == 3 && minor < 10) {
		return fmt.Errorf("RabbitMQ %s: %w", version, errTooOld)
	}
	return nil
}

func (s *Stack) stopBroker(ctx context.Context, sig syscall.Signal, patience time.Duration) error {
	for _, one := range []struct {
		mark string
		pid  int
		sig  syscall.Signal
	}{
		{s.brokerMark(), s.snapshot().Broker.PID, sig},
		{s.epmdMark(), s.snapshot().Epmd.PID, syscall.SIGKILL},
	} {
		for _, pid := range append(marked(one.mark), one.pid) {
			if err := stop(ctx, pid, one.mark, one.sig, patience); err != nil {
				return fmt.Errorf("stop RabbitMQ: %w", err)
			}
		}
	}
	st := s.snapshot()
	return s.awaitPortsFree(ctx, st.AMQPPort, st.ManagementPort, st.DistPort, st.EpmdPort)
}

// KillBroker ends RabbitMQ as a crash would. Durable queues and persistent
// messages stay, but for what was declared within the last two seconds or so:
// the broker answers before it writes.
func (s *Stack) KillBroker(ctx context.Context) error {
	return s.locked(ctx, func() error { return s.stopBroker(ctx, syscall.SIGKILL, time.Second) })
}

// StartBroker starts RabbitMQ again after KillBroker, on the same ports, and
// returns when it answers.
func (s *Stack) StartBroker(ctx context.Context) error {
	return s.locked(ctx, func() error {
		_, err := s.ensureBroker(ctx)
		return err
	})
}

// Rabbitmqctl runs one command of the broker's control program against this
// stack and returns its output, for faults that only it can cause (alarms,
// connections closed by an operator). A call takes half a second.
func (s *Stack) Rabbitmqctl(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, s.bins.brokerCtl, args...)
	cmd.Env, cmd.Dir, cmd.WaitDelay = s.brokerEnv(), s.brokerDir(), time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("rabbitmqctl %s: %w: %s", strings.Join(args, " "), err,
			strings.TrimSpace(string(out)))
	}
	return string(out), nil
}
