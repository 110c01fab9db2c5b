package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/attune-go/attune/core/api"
	"github.com/attune-go/attune/core/config"
	"github.com/attune-go/attune/core/phrase"
)

// readiness is the answer of /readyz.
type readiness struct {
	Address string      `json:"address"`
	Status  string      `json:"status"`
	Checks  []api.Check `json:"checks"`
}

func newHealthCommand(a *app) *cobra.Command {
	var address string
	timeout := 5 * time.Second
	cmd := &cobra.Command{
		Use:   "health",
		Short: "Ask a replica or worker of this machine whether it is ready",
		Long: "Ask a replica or worker of this machine whether it is ready, by its /readyz. Containers use it as\n" +
			"their health check. Without --address it asks the replica at executor.http.listen.\n" +
			"Exit codes: 0 ready, 1 not ready, 4 no answer.",
		Example: "  attune-executor health --config attune.yaml\n" +
			"  attune-executor health --address 127.0.0.1:9102    # a worker with --metrics 127.0.0.1:9102",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			target, err := a.healthURL(address)
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			state, err := readReadiness(ctx, target)
			if err != nil {
				return &exitError{exitUnreachable, err}
			}
			return a.showReadiness(cmd, state)
		},
	}
	cmd.Flags().StringVar(&address, "address", "", "HOST:PORT to ask (default executor.http.listen)")
	cmd.Flags().Var(phrase.SpanFlag{To: &timeout}, "timeout", "how long to wait for the answer")
	return cmd
}

func (a *app) showReadiness(cmd *cobra.Command, state readiness) error {
	var failed []string
	for _, check := range state.Checks {
		if !check.OK {
			failed = append(failed, strings.TrimSpace(check.Name+" "+check.Detail))
		}
	}
	if err := a.write(cmd, state, func(w *page) { w.row(state.Status) }); err != nil {
		return err
	}
	if len(failed) > 0 {
		return failedErrorf("%s is not ready: %s", state.Address, strings.Join(failed, ", "))
	}
	return nil
}

// healthURL is the address of /readyz: that of the flag, or that of the configured replica, on loopback if it listens
// on all addresses.
func (a *app) healthURL(address string) (string, error) {
	scheme := "http"
	if address == "" {
		cfg, err := config.Load(a.configPath, a.environ)
		if err != nil {
			return "", &exitError{exitUsage, err}
		}
		if address = cfg.Executor.HTTP.Listen; address == "" {
			return "", usageErrorf("executor.http.listen is empty: name the address with --address")
		}
		if cfg.Executor.HTTP.TLSCertFile != "" {
			scheme = "https"
		}
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", usageErrorf("%q is not HOST:PORT", address)
	}
	if port == "0" {
		return "", usageErrorf("the replica takes a free port: name its address with --address")
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
		if ip != nil && ip.To4() == nil {
			host = "::1"
		}
	}
	return scheme + "://" + net.JoinHostPort(host, port) + "/readyz", nil
}

func readReadiness(ctx context.Context, address string) (readiness, error) {
	state := readiness{Address: address}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return state, fmt.Errorf("ask %s: %w", address, err)
	}
	// The certificate names the host that others use, not loopback; the request holds no secret.
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // see above
	}}
	defer client.CloseIdleConnections()
	answer, err := client.Do(request)
	if err != nil {
		return state, fmt.Errorf("ask whether it is ready: %w", err)
	}
	defer func() { _ = answer.Body.Close() }() // everything was read
	if err := json.NewDecoder(http.MaxBytesReader(nil, answer.Body, 1<<20)).Decode(&state); err != nil {
		return state, fmt.Errorf("read the answer of %s (%s): %w", address, answer.Status, err)
	}
	if answer.StatusCode != http.StatusOK && answer.StatusCode != http.StatusServiceUnavailable {
		return state, fmt.Errorf("ask %s: the answer is %s", address, answer.Status)
	}
	return state, nil
}
