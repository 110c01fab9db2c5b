package config

import (
	"reflect"
	"slices"
	"strings"
	"time"
)

// setting is one key of a Config and the place of its value.
type setting struct {
	key   string
	value reflect.Value
	tag   reflect.StructTag
}

// settings lists every key of c in the order of the documentation. Nested
// structs are walked; maps of structs (the alert rules) are walked by name.
func (c *Config) settings() []setting {
	return collect(nil, "", reflect.ValueOf(c).Elem())
}

func collect(list []setting, prefix string, structure reflect.Value) []setting {
	for i := range structure.NumField() {
		field := structure.Type().Field(i)
		name := field.Tag.Get("koanf")
		if name == "" || name == "-" {
			continue
		}
		value, key := structure.Field(i), prefix+name
		switch {
		case value.Kind() == reflect.Struct:
			list = collect(list, key+".", value)
		case isRules(value):
			rules, _ := reflect.TypeAssert[map[string]*AlertRule](value) // isRules has checked it
			for _, rule := range sortedKeys(rules) {
				list = collect(list, key+"."+rule+".", reflect.ValueOf(rules[rule]).Elem())
			}
		default:
			list = append(list, setting{key, value, field.Tag})
		}
	}
	return list
}

func isRules(value reflect.Value) bool {
	return value.Type() == reflect.TypeFor[map[string]*AlertRule]()
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// unit is what a plain number means for a duration key.
func (s setting) unit() time.Duration {
	if strings.HasSuffix(s.key, "_ms") {
		return time.Millisecond
	}
	return time.Second
}

// isDuration reports whether the key holds a duration.
func (s setting) isDuration() bool { return s.value.Type() == reflect.TypeFor[time.Duration]() }

// isTree reports whether the value is a map, below which any key may stand.
func (s setting) isTree() bool { return s.value.Kind() == reflect.Map }

// aliases are further spellings of a key.
var aliases = map[string]string{
	"executor.worker_queue_ttl": "message_queue.rabbitmq.worker_queue_ttl_ms",
}

// fileVariants are the keys that name a file holding a secret, by the key whose
// value it is. The two password files replace the password of the URL.
var fileVariants = map[string]string{ //nolint:gosec // names of keys
	"database.url_file":                 "database.url",
	"database.password_file":            "database.url",
	"message_queue.url_file":            "message_queue.url",
	"message_queue.password_file":       "message_queue.url",
	"message_queue.management_url_file": "message_queue.management_url",
	"security.encryption_key_file":      "security.encryption_key",
	"security.jwt_secret_file":          "security.jwt_secret",
}

// inert are published keys of our sections that other services may need in the
// same file but that have no effect here, with the reason. A whole subtree is
// named by its root.
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

// shared are sections of which only some keys are ours; what is foreign in them
// is ignored like a foreign section.
var shared = []string{"security", "retention", "server"}

// fileOf returns the key whose secret a *_file key holds.
func fileOf(key string) (string, bool) {
	target, ok := fileVariants[key]
	return target, ok
}

// inertReason says why a published key, or the subtree it is in, has no effect.
func inertReason(key string) (string, bool) {
	for root, reason := range inert {
		if key == root || strings.HasPrefix(key, root+".") {
			return reason, true
		}
	}
	return "", false
}
