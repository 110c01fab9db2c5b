package broker

import "github.com/attune-go/attune/core/config"

// Configured is a connection of the given name to the configured broker.
func Configured(cfg *config.Config, name string) Config {
	mq := cfg.MessageQueue
	return Config{
		URL: mq.URL, Login: cfg.Login("message_queue.url"), ManagementURL: mq.ManagementURL,
		ManagementLogin: cfg.Login("message_queue.management_url"), ConnectionName: name,
		DialTimeout: mq.RabbitMQ.ConnectionTimeout, Heartbeat: mq.RabbitMQ.Heartbeat,
		ConfirmTimeout: mq.RabbitMQ.PublishTimeout, MaxBackoff: mq.RabbitMQ.ReconnectDelay, Properties: cfg.Names(),
		QuorumQueues: mq.RabbitMQ.Quorum(),
	}
}
