package tracing

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/attune-go/attune/core/config"
	"github.com/attune-go/attune/core/yamldoc"
)

// Config configures the traces of a process.
type Config struct {
	// Endpoint is the base URL of the collector, without /v1/traces.
	Endpoint string
	// Ratio is the share of traces that are sampled.
	Ratio float64
	// HeadersFile names a file with headers for the collector, a line NAME: VALUE each.
	HeadersFile string
	// Resource describes the process.
	Resource []Attr
	// Version is the version of the program.
	Version string
}

// sendTimeout bounds one request to the collector.
const sendTimeout = 10 * time.Second

// client posts spans.
type client struct {
	url      string
	headers  http.Header // of the start
	file     string      // read again for each request, as its token may be replaced
	http     *http.Client
	resource []Attr
	version  string
}

func newClient(cfg Config) (*client, error) {
	headers, err := readHeaders(cfg.HeadersFile)
	if err != nil {
		return nil, fmt.Errorf("read telemetry.headers_file: %w", err)
	}
	return &client{
		url: strings.TrimSuffix(cfg.Endpoint, "/") + Path, headers: headers, file: cfg.HeadersFile,
		http: &http.Client{Timeout: sendTimeout}, resource: cfg.Resource, version: cfg.Version,
	}, nil
}

func readHeaders(file string) (http.Header, error) {
	headers := http.Header{}
	if file != "" {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for n, line := range strings.Split(strings.TrimPrefix(string(content), yamldoc.BOM), "\n") {
			if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
				continue
			}
			name, value, ok := strings.Cut(line, ":")
			if !ok {
				return nil, fmt.Errorf("%s:%d: a line must be NAME: VALUE", file, n+1)
			}
			headers.Add(strings.TrimSpace(name), strings.TrimSpace(value))
		}
	}
	headers.Set("Content-Type", "application/json")
	headers.Set("Content-Encoding", "gzip")
	return headers, nil
}

// errRefused reports that the collector refuses these spans: a retry would fail again.
var errRefused = errors.New("the collector refuses the spans")

// send posts spans. After an error that is not errRefused they may be sent again.
func (c *client) send(ctx context.Context, spans []Span) error {
	body, err := Encode(c.resource, c.version, spans)
	if err != nil {
		return fmt.Errorf("%w: encode %d spans: %w", errRefused, len(spans), err)
	}
	var packed bytes.Buffer
	writer := gzip.NewWriter(&packed)
	_, _ = writer.Write(body) // a buffer takes everything
	_ = writer.Close()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, &packed)
	if err != nil {
		return fmt.Errorf("%w: %w", errRefused, err)
	}
	request.Header = c.headers.Clone()
	if now, err := readHeaders(c.file); err == nil {
		request.Header = now
	}
	response, err := c.http.Do(request)
	if err != nil {
		return fmt.Errorf("send %d spans: %w", len(spans), err)
	}
	defer response.Body.Close() //nolint:errcheck // it was read
	text, _ := io.ReadAll(io.LimitReader(response.Body, 512))
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 1<<20)) // the connection is used again
	switch {
	case response.StatusCode < http.StatusMultipleChoices:
		return nil
	case response.StatusCode == http.StatusTooManyRequests, response.StatusCode >= http.StatusInternalServerError:
		return fmt.Errorf("send %d spans to %s: %s", len(spans), config.MaskURL(c.url), response.Status)
	}
	return fmt.Errorf("%w: %s: %s: %.200q", errRefused, config.MaskURL(c.url), response.Status, text)
}
