package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/attune-go/attune/core/yamldoc"
)

// assign stores the given values in the Config.
func (l *loader) assign() {
	for _, s := range l.cfg.settings() {
		at, ok := l.given[s.key]
		if !ok {
			continue
		}
		raw := l.values.get(s.key)
		if raw == nil && !s.isTree() {
			continue // an empty key means its default
		}
		l.mistaken(l.store(s, raw, at))
	}
}

func (l *loader) store(s setting, raw any, at place) error {
	if err := s.assign(raw); err != nil {
		if s.tag.Get("secret") != "" {
			err = errNotText // the value itself is not repeated
		}
		return fmt.Errorf("%s: %s: %w", at.source, s.key, err)
	}
	if err := s.check(); err != nil {
		return fmt.Errorf("%s: %s: %w", at.source, s.key, err)
	}
	l.cfg.sources[s.key] = at.source
	return nil
}

// assignAliases stores the values of aliases. If a key and its alias are given, the environment overrides the file; in
// the same place they must not contradict each other.
func (l *loader) assignAliases() error {
	for _, alias := range sortedKeys(aliases) {
		at, ok := l.given[alias]
		if !ok {
			continue
		}
		key := aliases[alias]
		original := l.known[key]
		spelt := original
		spelt.key = alias // the unit follows the name that was used
		before, beforeText := l.given[key], original.text()
		if before.rank > at.rank {
			continue
		}
		if err := l.store(spelt, l.values.get(alias), at); err != nil {
			return err
		}
		if before.rank == at.rank && original.text() != beforeText {
			return fmt.Errorf("%s: %s contradicts %s (%s): keep one of them", at.source, alias, key, before.source)
		}
		l.cfg.sources[key] = at.source + " as " + alias
	}
	return nil
}

func (l *loader) assignSecretFiles() error {
	keys := sortedKeys(fileVariants)
	slices.Reverse(keys) // url_file before password_file, which changes the URL
	for _, key := range keys {
		at, ok := l.given[key]
		path, _ := l.values.get(key).(string)
		if !ok || path == "" {
			continue
		}
		target := fileVariants[key]
		_, name := splitLast(key)
		isPassword := name == "password_file"
		if direct := l.given[target]; !isPassword && direct.rank > 0 {
			if direct.rank > at.rank {
				continue
			}
			if direct.rank == at.rank {
				return fmt.Errorf("%s: %s and %s (%s) are both given: keep one of them", at.source, key, target,
					direct.source)
			}
		}
		if !filepath.IsAbs(path) && at.rank == rankFile {
			path = filepath.Join(l.folder, path)
		}
		secret, err := readSecret(path)
		if err != nil {
			return fmt.Errorf("%s: %s: %w", at.source, key, err)
		}
		l.warnOfPublic(key, path)
		before := l.cfg.rereads[target]
		reread := func() (string, error) { return readSecret(path) }
		if isPassword {
			given := l.known[target].value.String()
			reread = func() (string, error) {
				address := given
				var err error
				if before != nil {
					if address, err = before(); err != nil {
						return "", err
					}
				}
				password, err := readSecret(path)
				if err != nil {
					return "", err
				}
				return withPassword(address, password)
			}
			if secret, err = withPassword(given, secret); err != nil {
				return fmt.Errorf("%s: %s: %w", at.source, key, err)
			}
		}
		l.known[target].value.SetString(secret)
		l.cfg.Reread(target, reread)
		l.cfg.sources[target] = at.source + " from " + path
	}
	return nil
}

// readSecret returns the text of a file with a secret.
func readSecret(path string) (string, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	return strings.TrimRight(strings.TrimPrefix(string(content), yamldoc.BOM), "\r\n"), nil
}

// warnOfPublic warns of a file with a secret that every user of the machine can read.
func (l *loader) warnOfPublic(key, path string) {
	if path == "" {
		return
	}
	if info, err := os.Stat(path); err == nil && info.Mode().Perm()&0o004 != 0 {
		l.cfg.Warnings = append(l.cfg.Warnings,
			fmt.Sprintf("%s: every user of this machine can read %s: chmod o-rwx %s", key, path, path))
	}
}

// warnOfInline warns of secrets in a configuration file that every user of the machine can read.
func (l *loader) warnOfInline() {
	for _, s := range l.cfg.settings() {
		kind, text, source := s.tag.Get("secret"), s.value, l.cfg.sources[s.key]
		if kind == "" || l.given[s.key].rank != rankFile || text.String() == "" ||
			kind == "url" && MaskURL(text.String()) == text.String() ||
			!strings.HasPrefix(source, l.cfg.Path+":") || strings.Contains(source, " from ") {
			continue
		}
		l.warnOfPublic(s.key, l.cfg.Path)
		return
	}
}

// errNotText replaces the error of a secret of the wrong type, which has the value.
var errNotText = errors.New("the value is not a text")

var schemaName = regexp.MustCompile(`^[A-Za-z0-9_]{1,63}$`)

// deadLetterExchange is an argument of the queues of every Attune service; the broker refuses a queue with another one.
const deadLetterExchange = "attune.dlx"

// finish derives keys from other keys and checks what the tags of single fields cannot express.
func (l *loader) finish() error {
	c := l.cfg
	l.warnOfInline()
	if len(l.foreign) > 0 {
		slices.Sort(l.foreign)
		c.Warnings = append(c.Warnings,
			"ignored, as they belong to other Attune services: "+strings.Join(l.foreign, ", "))
	}
	l.warnOfPublic("executor.http.tokens_file", c.Executor.HTTP.TokensFile)
	l.warnOfPublic("executor.http.tls_key_file", c.Executor.HTTP.TLSKeyFile)
	l.warnOfPublic("telemetry.headers_file", c.Telemetry.HeadersFile)
	if deadLetters := &c.MessageQueue.RabbitMQ.DeadLetter; deadLetters.Exchange != "" &&
		deadLetters.Exchange != deadLetterExchange {
		const key = "message_queue.rabbitmq.dead_letter.exchange"
		c.Warnings = append(c.Warnings, fmt.Sprintf(
			"%s: %s has no effect: the exchange is %s, with which every Attune service declares its queues",
			c.Source(key), key, deadLetterExchange))
		deadLetters.Exchange = deadLetterExchange
	}
	if c.sources["message_queue.url"] != "" && c.sources["message_queue.management_url"] == "" {
		if derived := DeriveManagement(c.MessageQueue.URL); derived != "" {
			c.MessageQueue.ManagementURL = derived
			c.sources["message_queue.management_url"] = "derived from message_queue.url"
			if reread := c.rereads["message_queue.url"]; reread != nil {
				c.Reread("message_queue.management_url", reread) // it has the same login
			}
		}
	}
	c.ShareLogin()
	for i := range c.Worker.Taints {
		if c.Worker.Taints[i].Effect == "" {
			c.Worker.Taints[i].Effect = "no_schedule"
		}
	}
	if c.sources["worker.heartbeat_interval"] != "" && c.sources["executor.heartbeat_interval"] == "" {
		c.Executor.HeartbeatInterval = c.Worker.HeartbeatInterval
		c.sources["executor.heartbeat_interval"] = "derived from worker.heartbeat_interval"
	}
	l.followAlerts()
	for _, name := range sortedKeys(c.Alerts) {
		key := "alerts." + name + ".measure"
		if err := l.known[key].check(); err != nil {
			return fmt.Errorf("%s: %s: %w", l.sourceBelow("alerts."+name), key, err)
		}
	}
	for _, rule := range l.rules() {
		if rule.problem != "" {
			return fmt.Errorf("%s: %s: %s", l.sourceBelow(rule.key), rule.key, rule.problem)
		}
	}
	return nil
}

// sourceBelow names the origin of a key, or of the first key below it.
func (l *loader) sourceBelow(key string) string {
	for _, given := range sortedKeys(l.cfg.sources) {
		if given == key || strings.HasPrefix(given, key+".") {
			return l.cfg.sources[given]
		}
	}
	return "default"
}

// leastJWTSecret is shorter than what new installations should use: published programs accept any length, and existing
// installations cannot change the secret of one program alone.
const leastJWTSecret = 16

type rule struct{ key, problem string }

// rules checks single keys and pairs of keys; a problem is empty if there is none.
func (l *loader) rules() []rule {
	c := l.cfg
	when := func(bad bool, problem string) string {
		if bad {
			return problem
		}
		return ""
	}
	key, secret := c.Security.EncryptionKey, c.Security.JWTSecret
	return []rule{
		{"database.url", AddressProblem(c.Database.URL, "postgresql", "postgres")},
		{"database.schema", when(!schemaName.MatchString(c.Database.Schema),
			"the name must have 1 to 63 letters, digits or underscores")},
		{"database.min_connections", when(c.Database.MinConnections > c.Database.MaxConnections,
			"must not exceed database.max_connections")},
		{"message_queue.url", AddressProblem(c.MessageQueue.URL, "amqp", "amqps")},
		{"message_queue.management_url", AddressProblem(c.MessageQueue.ManagementURL, "http", "https")},
		{"message_queue.rabbitmq.dead_letter.exchange", when(c.MessageQueue.RabbitMQ.DeadLetter.Exchange == "",
			"must not be empty")},
		{"security.encryption_key", when(key != "" && len(key) < 32, "the key must have at least 32 characters")},
		{"security.jwt_secret", when(secret != "" && len(secret) < leastJWTSecret, fmt.Sprintf(
			"the secret must have at least %d characters, as anyone who guesses it can sign tokens", leastJWTSecret))},
		{"executor.retry.max_delay", when(c.Executor.Retry.MaxDelay < c.Executor.Retry.BaseDelay,
			"must not be shorter than executor.retry.base_delay")},
		{"executor.http.listen", listenProblem(c.Executor.HTTP)},
		{"worker.taints", taintProblem(c.Worker.Taints)},
		{"telemetry.otlp_endpoint", when(c.Telemetry.OTLPEndpoint != "" &&
			AddressProblem(c.Telemetry.OTLPEndpoint, "http", "https") != "", "must be a URL like http://host:4318")},
	}
}

func listenProblem(http HTTP) string {
	if http.Listen == "" {
		return ""
	}
	host, _, err := net.SplitHostPort(http.Listen)
	if err != nil {
		return fmt.Sprintf("%q is not of the form host:port", http.Listen)
	}
	if host != "localhost" && !isLoopback(host) && http.TokensFile == "" {
		return fmt.Sprintf("%q is reachable from other machines: set executor.http.tokens_file, or listen on 127.0.0.1",
			http.Listen)
	}
	return ""
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

func taintProblem(taints []Taint) string {
	for _, taint := range taints {
		if taint.Key == "" {
			return "every taint needs a key"
		}
		if taint.Effect != "no_schedule" && taint.Effect != "prefer_no_schedule" {
			return fmt.Sprintf("the effect of %s must be no_schedule or prefer_no_schedule", taint.Key)
		}
	}
	return ""
}

// ShareLogin gives the management API the login of the broker if its URL has no password, nor another user.
func (c *Config) ShareLogin() {
	mq := &c.MessageQueue
	of, own := split(mq.ManagementURL), ""
	user, password := loginOf(mq.URL)
	if own, _, _ = strings.Cut(of.login, ":"); password == "" || strings.Contains(of.login, ":") ||
		own != "" && own != url.User(user).String() || !isURL(mq.ManagementURL) || of.raw() != "" {
		return
	}
	mq.ManagementURL = of.scheme + "://" + url.UserPassword(user, password).String() + "@" + of.hosts + of.tail
	if reread := c.rereads["message_queue.url"]; reread != nil {
		c.Reread("message_queue.management_url", reread)
	}
}

// DeriveManagement guesses the management API of a broker from its AMQP URL: the same hosts, user and password, and the
// usual port. Without a host it is empty.
func DeriveManagement(address string) string {
	address, list := oneHost(address)
	parsed, err := url.Parse(address)
	if err != nil || parsed.Hostname() == "" {
		return ""
	}
	derived, port := url.URL{Scheme: "http", User: parsed.User}, "15672"
	if parsed.Scheme == "amqps" {
		derived.Scheme, port = "https", "15671"
	}
	var hosts []string
	for host := range strings.SplitSeq(list, ",") {
		name := (&url.URL{Host: host}).Hostname()
		hosts = append(hosts, net.JoinHostPort(name, port))
	}
	derived.Host = strings.Join(hosts, ",")
	if derived.User == nil {
		derived.User = url.UserPassword("guest", "guest")
	}
	return derived.String()
}
