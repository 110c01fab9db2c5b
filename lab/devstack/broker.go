package devstack

import (
	"context"
	"crypto/rand"
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

// errTooOld reports a broker without features that the engine needs.
var errTooOld = errors.New("older than " + minBroker + ", which is needed")

const nodeName = "rabbit@localhost" // independent of the machine's own name

func (s *Stack) brokerDir() string             { return filepath.Join(s.place.dir, "rabbitmq") }
func (s *Stack) brokerFile(name string) string { return filepath.Join(s.brokerDir(), name) }
func (s *Stack) brokerLog() string             { return s.brokerFile("log/" + nodeName + ".log") }
func (s *Stack) brokerOutput() string          { return s.brokerFile("output.log") }
func (s *Stack) brokerMark() string            { return " -attune_stack " + s.brokerDir() + " " }
func (s *Stack) epmdMark() string              { return s.brokerFile("epmd") + " " }

// ensureBroker starts RabbitMQ unless it runs, and waits until AMQP and the management plugin answer.
func (s *Stack) ensureBroker(ctx context.Context) (started bool, err error) {
	return s.ensure(ctx, server{
		name: "RabbitMQ", pid: s.snapshot().Broker.PID, mark: s.brokerMark(),
		start: s.startBroker, await: s.awaitBroker, forgetPort: func(st *state) { st.AMQPPort = 0 },
		logs: []string{s.brokerOutput(), s.brokerLog()},
	})
}

func (s *Stack) startBroker(ctx context.Context) error {
	// End processes of an earlier start.
	if err := s.stopBroker(ctx, syscall.SIGKILL, time.Second); err != nil {
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
	if err := WriteBroker(s.brokerDir(), rand.Text(), s.brokerConfig()); err != nil {
		return err
	}
	if err := s.startEpmd(ctx); err != nil {
		return err
	}
	// The broker's script replaces itself by the Erlang machine, so its pid is the broker's. The flag
	// identifies the process.
	started, err := s.launch.start(child{
		name: "RabbitMQ", path: "/bin/sh",
		args: []string{"sh", "-c", `umask 077; exec "$0" "$@"`, s.bins.broker, "-attune_stack", s.brokerDir()},
		env:  s.brokerEnv(), dir: s.brokerDir(), log: s.brokerOutput(), onDeath: syscall.SIGKILL,
	})
	if err != nil {
		return err
	}
	if err := s.update(func(st *state) { st.Broker.PID = started.Pid }); err != nil {
		return err
	}
	return s.awaitBroker(ctx, started.Pid)
}

// startEpmd runs Erlang's port mapper in the foreground and on our address. Otherwise the broker starts a
// daemon that outlives it.
func (s *Stack) startEpmd(ctx context.Context) error {
	port := strconv.Itoa(s.snapshot().EpmdPort)
	started, err := s.launch.start(child{
		name: "epmd", path: s.bins.epmd,
		args: []string{s.brokerFile("epmd"), "-port", port, "-address", "127.0.0.1"},
		env:  s.brokerEnv(), dir: s.brokerDir(), log: s.brokerFile("epmd.log"), onDeath: syscall.SIGKILL,
	})
	if err != nil {
		return err
	}
	if err := s.update(func(st *state) { st.Epmd.PID = started.Pid }); err != nil {
		return err
	}
	return poll(ctx, 10*time.Millisecond, func() (bool, error) {
		if !alive(started.Pid, s.epmdMark()) {
			return false, errors.New("epmd ended while it started")
		}
		// portFree would take the port for an instant, and epmd would fail.
		connection, err := net.DialTimeout("tcp", loopback(s.snapshot().EpmdPort), time.Second)
		if err != nil {
			return false, nil //nolint:nilerr // not yet
		}
		_ = connection.Close() // it was only a probe
		return true, nil
	})
}

// WriteBroker writes the files of a RabbitMQ node into its folder. The cookie of a node stays.
func WriteBroker(dir, cookie, config string) error {
	for _, sub := range []string{"", "home", "log", "mnesia", "conf.d", "generated"} {
		if err := makeDir(filepath.Join(dir, sub)); err != nil {
			return err
		}
	}
	if err := os.Chmod(dir, 0o700); err != nil { // its files hold messages and hashed passwords
		return fmt.Errorf("protect the broker's folder: %w", err)
	}
	secret := filepath.Join(dir, "home", ".erlang.cookie")
	if _, err := os.Stat(secret); err != nil {
		if err := os.WriteFile(secret, []byte(cookie), 0o400); err != nil {
			return fmt.Errorf("write the broker's cookie: %w", err)
		}
	}
	for name, text := range map[string]string{
		"rabbitmq.conf": config, "enabled_plugins": "[rabbitmq_management].\n", "rabbitmq-env.conf": "",
		"advanced.config": "[].\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return fmt.Errorf("write the broker's %s: %w", name, err)
		}
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
		// The interval alone leaves message counts five seconds old.
		lines = append(lines,
			fmt.Sprintf("collect_statistics_interval = %d", st.Stats.Milliseconds()),
			"management.sample_retention_policies.global.minute = 1",
			"management.sample_retention_policies.basic.minute = 1",
			"management.sample_retention_policies.detailed.minute = 1",
		)
	}
	return strings.Join(lines, "\n") + "\n"
}

// cleanEnv returns the whole environment of a server. Only the search path comes from the caller.
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
	return append(s.cleanEnv(), BrokerEnv(s.brokerDir(), nodeName, st.DistPort, st.EpmdPort)...)
}

// BrokerEnv is the environment of a RabbitMQ node with the files of WriteBroker.
func BrokerEnv(dir, node string, distPort, epmdPort int) []string {
	return []string{
		"HOME=" + filepath.Join(dir, "home"), // without it the boot crashes
		"RABBITMQ_NODENAME=" + node,
		"RABBITMQ_MNESIA_BASE=" + filepath.Join(dir, "mnesia"),
		"RABBITMQ_LOG_BASE=" + filepath.Join(dir, "log"),
		"RABBITMQ_CONFIG_FILE=" + filepath.Join(dir, "rabbitmq.conf"),
		"RABBITMQ_CONFIG_FILES=" + filepath.Join(dir, "conf.d"),
		"RABBITMQ_ADVANCED_CONFIG_FILE=" + filepath.Join(dir, "advanced.config"),
		"RABBITMQ_CONF_ENV_FILE=" + filepath.Join(dir, "rabbitmq-env.conf"),
		"RABBITMQ_GENERATED_CONFIG_DIR=" + filepath.Join(dir, "generated"),
		"RABBITMQ_ENABLED_PLUGINS_FILE=" + filepath.Join(dir, "enabled_plugins"),
		"RABBITMQ_PID_FILE=" + filepath.Join(dir, "broker.pid"), // the broker deletes it
		"RABBITMQ_DIST_PORT=" + strconv.Itoa(distPort),
		"ERL_EPMD_PORT=" + strconv.Itoa(epmdPort),
		"ERL_EPMD_ADDRESS=127.0.0.1",
		"RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=-kernel inet_dist_use_interface {127,0,0,1}",
		"RUNNING_UNDER_SYSTEMD=true", // so that the script becomes the broker
	}
}

// awaitBroker waits until a broker with a supported version answers on both its ports.
func (s *Stack) awaitBroker(ctx context.Context, pid int) error {
	st := s.snapshot()
	return await(ctx, "RabbitMQ", pid, s.brokerMark(), func() error {
		if err := s.probeAMQP(ctx); err != nil {
			return err
		}
		version, err := s.probeManagement(ctx)
		if err != nil {
			return err
		}
		return checkBrokerVersion(version)
	}, st.AMQPPort, st.ManagementPort, st.DistPort)
}

// probeAMQP sends the protocol header. A ready broker answers with a method frame.
func (s *Stack) probeAMQP(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", loopback(s.snapshot().AMQPPort))
	if err != nil {
		return fmt.Errorf("AMQP: %w", err)
	}
	defer func() { _ = conn.Close() }() // the probe has its answer
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

func (s *Stack) probeManagement(ctx context.Context) (version string, err error) {
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

func (s *Stack) stopBroker(ctx context.Context, sig syscall.Signal, timeout time.Duration) error {
	for _, one := range []struct {
		mark string
		pid  int
		sig  syscall.Signal
	}{
		{s.brokerMark(), s.snapshot().Broker.PID, sig},
		{s.epmdMark(), s.snapshot().Epmd.PID, syscall.SIGKILL},
	} {
		for _, pid := range append(marked(one.mark), one.pid) {
			if err := stop(ctx, pid, one.mark, one.sig, timeout); err != nil {
				return fmt.Errorf("stop RabbitMQ: %w", err)
			}
		}
	}
	st := s.snapshot()
	return s.awaitPortsFree(ctx, st.AMQPPort, st.ManagementPort, st.DistPort, st.EpmdPort)
}

// KillBroker ends RabbitMQ as a crash does. Durable queues and persistent messages stay, except the
// declarations of about the last two seconds: the broker answers before it writes.
func (s *Stack) KillBroker(ctx context.Context) error {
	return s.locked(ctx, func() error { return s.stopBroker(ctx, syscall.SIGKILL, time.Second) })
}

// StartBroker restarts RabbitMQ after KillBroker on the same ports, and returns when it answers.
func (s *Stack) StartBroker(ctx context.Context) error {
	return s.locked(ctx, func() error {
		_, err := s.ensureBroker(ctx)
		return err
	})
}

// Rabbitmqctl runs one command of the broker's control program and returns its output, for faults that only
// it can cause (alarms, closed connections). A call takes half a second.
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
