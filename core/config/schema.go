package config

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
)

// setting is one key of a Config; value is the addressable field.
type setting struct {
	key   string
	value reflect.Value
	tag   reflect.StructTag
}

// settings lists every key of c in the order of the documentation, those of alert rules by name.
func (c *Config) settings() []setting {
	return collect(nil, "", reflect.ValueOf(c).Elem())
}

func collect(list []setting, prefix string, structure reflect.Value) []setting {
	for i := range structure.NumField() {
		field := structure.Type().Field(i)
		name := field.Tag.Get("key")
		if name == "" || name == "-" {
			continue
		}
		value, key := structure.Field(i), prefix+name
		if rules, ok := reflect.TypeAssert[map[string]*AlertRule](value); ok {
			for _, rule := range sortedKeys(rules) {
				list = collect(list, key+"."+rule+".", reflect.ValueOf(rules[rule]).Elem())
			}
		} else if value.Kind() == reflect.Struct {
			list = collect(list, key+".", value)
		} else {
			list = append(list, setting{key: key, value: value, tag: field.Tag})
		}
	}
	return list
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// unit is the unit of a plain number for a duration key.
func (s setting) unit() time.Duration {
	if strings.HasSuffix(s.key, "_ms") {
		return time.Millisecond
	}
	return time.Second
}

func (s setting) isDuration() bool { return s.value.Type() == reflect.TypeFor[time.Duration]() }

// isTree reports whether the value is a map, whose keys are free.
func (s setting) isTree() bool { return s.value.Kind() == reflect.Map }

// aliases are further spellings of a key.
var aliases = map[string]string{
	"executor.worker_queue_ttl": "message_queue.rabbitmq.worker_queue_ttl_ms",
}

// fileVariants maps the key of a secret's file to the key of the secret. A password file replaces the password of the
// URL.
var fileVariants = map[string]string{ //nolint:gosec // names of keys
	"database.url_file":                 "database.url",
	"database.password_file":            "database.url",
	"message_queue.url_file":            "message_queue.url",
	"message_queue.password_file":       "message_queue.url",
	"message_queue.management_url_file": "message_queue.management_url",
	"security.encryption_key_file":      "security.encryption_key",
	"security.jwt_secret_file":          "security.jwt_secret",
}

// inert are published keys of our sections without effect here, with the reason. Other services may need them in the
// same file. A key stands for its whole subtree.
var inert = map[string]string{
	"message_queue.exchange":                        "the exchanges are attune.events, attune.executions and attune.notifications",
	"message_queue.enable_dlq":                      "use message_queue.rabbitmq.dead_letter.enabled",
	"message_queue.message_ttl":                     "messages do not expire",
	"message_queue.rabbitmq.host":                   "use message_queue.url",
	"message_queue.rabbitmq.port":                   "use message_queue.url",
	"message_queue.rabbitmq.username":               "use message_queue.url",
	"message_queue.rabbitmq.password":               "use message_queue.url",
	"message_queue.rabbitmq.vhost":                  "use message_queue.url",
	"message_queue.rabbitmq.pool_size":              "two connections are used, one to publish and one to consume",
	"message_queue.rabbitmq.max_reconnect_attempts": "reconnecting never gives up",
	"message_queue.rabbitmq.confirm_publish":        "every publish is confirmed",
	"message_queue.rabbitmq.consumer_timeout_secs":  "the broker decides it",
	"message_queue.rabbitmq.exchanges":              "exchanges keep their published names",
	"message_queue.rabbitmq.queues":                 "queues keep their published names",
	"worker.runtime_id":                             "runtimes are chosen by name",
	"worker.service_name":                           "use worker.name",
	"worker.cleanup_interval":                       "folders of executions are removed when these end",
	"worker.work_dir":                               "executions run in the folder of their pack",
	"worker.python":                                 "use worker.interpreters",
	"worker.nodejs":                                 "use worker.interpreters",
	"worker.shell":                                  "use worker.interpreters",
	"worker.execution_log_retention_policy":         "output is stored with the result",
	"worker.execution_log_retention_limit":          "output is stored with the result",
	"worker.stream_logs":                            "output is stored with the result",
}

// shared are sections with keys of other services, which are ignored like their sections.
var shared = []string{"security", "retention", "server"}

// inertReason explains why a published key, or its subtree, has no effect.
func inertReason(key string) (string, bool) {
	for root, reason := range inert {
		if key == root || strings.HasPrefix(key, root+".") {
			return reason, true
		}
	}
	return "", false
}
