package api

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"sync"
)

// certificates holds the certificate of two files, and reads them again when they change. If the
// files are unreadable or do not belong together, the last certificate stays in force.
type certificates struct {
	cert, key string
	logger    *slog.Logger

	mu      sync.Mutex
	current *tls.Certificate // guarded by mu
	stamp   string           // of the last files, also of unusable ones; guarded by mu
}

func loadCertificates(cert, key string, logger *slog.Logger) (*certificates, error) {
	if cert == "" || key == "" {
		return nil, fmt.Errorf("TLS needs both executor.http.tls_cert_file and executor.http.tls_key_file")
	}
	c := &certificates{cert: cert, key: key, logger: logger, stamp: stampOfBoth(cert, key)}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("read the certificate (executor.http.tls_cert_file, executor.http.tls_key_file): %w",
			err)
	}
	c.current = &pair
	return c, nil
}

// stampOfBoth distinguishes states of the files.
func stampOfBoth(cert, key string) string {
	first, err := stampOf(cert)
	if err != nil {
		return err.Error()
	}
	second, err := stampOf(key)
	if err != nil {
		return err.Error()
	}
	return first + " " + second
}

// get returns the certificate of a handshake.
func (c *certificates) get(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	stamp := stampOfBoth(c.cert, c.key)
	if stamp == c.stamp {
		return c.current, nil
	}
	c.stamp = stamp
	ctx := hello.Context()
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		c.logger.WarnContext(ctx, "Certificate cannot be read and the old one stays in force", "file", c.cert, "error",
			err)
		return c.current, nil
	}
	c.logger.InfoContext(ctx, "Certificate read again", "file", c.cert)
	c.current = &pair
	return c.current, nil
}

func (c *certificates) config() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: c.get}
}
