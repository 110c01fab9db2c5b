package checkup

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/config"
	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/supervise"
	"github.com/attune-go/attune/migrations"
)

// The oldest supported servers.
const (
	oldestPostgres    = 15
	oldestRabbitMajor = 3
	oldestRabbitMinor = 10
)

func lookDatabase(ctx context.Context, v *visit) (Finding, error) {
	address := config.MaskURL(v.Config.Database.URL)
	var version string
	var number int
	var remote bool
	var database, encoding string
	err := v.Store.Pool().QueryRow(ctx, `select current_setting('server_version'), current_setting('server_version_num')::int,
		coalesce(not inet_client_addr() <<= any ('{127.0.0.0/8,::1}'::inet[]), false)
			and not exists (select from pg_stat_ssl where pid = pg_backend_pid() and ssl),
		current_database(), current_setting('server_encoding')`).Scan(&version, &number, &remote, &database, &encoding)
	if err == nil {
		err = v.Store.Check(ctx)
	}
	if err == nil {
		err = migrations.CheckEncoding(database, encoding)
	}
	if err != nil {
		f := troubled(store.Trouble(err), v.Config, "database.url", v.Config.Database.URL)
		switch store.ClassOf(err) {
		case store.ClassUnreachable, store.ClassCanceled, store.ClassUnknown:
			return f.away(), nil
		default:
			if store.IsPooler(err) {
				f = f.away()
			}
			return f, nil
		}
	}
	if number/10_000 < oldestPostgres {
		return failed(fmt.Sprintf("use PostgreSQL %d or later", oldestPostgres), "PostgreSQL %s is too old",
			version), nil
	}
	f := passed("PostgreSQL %s, %s", version, address)
	if remote && !config.Encrypted(v.Config.Database.URL) {
		f.Found += ", not encrypted"
		f.Fix = "give the server TLS and add sslmode=verify-full to database.url, or sslmode=disable to accept it"
	}
	return f, nil
}

// troubled is a failed check of a server, with its address and where that is configured.
func troubled(trouble phrase.Trouble, cfg *config.Config, key, address string) Finding {
	return failed(trouble.Fix, "%s", trouble.Fact).with(key + " of " + cfg.Source(key) + ": " + config.MaskURL(address))
}

// lastLine is the last line of an error: drivers list every attempt.
func lastLine(err error) string {
	lines := strings.Split(strings.TrimSpace(err.Error()), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}

func lookSchema(ctx context.Context, v *visit) (Finding, error) {
	schema := v.Config.Database.Schema
	version, err := migrations.Fits(ctx, v.Store.Pool(), schema)
	if unfit, ok := errors.AsType[*migrations.UnfitError](err); ok {
		what, fix, _ := strings.Cut(unfit.Error(), ": ")
		return failed(fix, "%s", what), nil
	}
	if err != nil {
		return Finding{}, err
	}
	published, err := unidentified(ctx, v)
	if err != nil {
		return Finding{}, err
	}
	if len(published) > 0 {
		return failed("publish named tables, or give each of these one: ALTER TABLE … REPLICA IDENTITY FULL",
			"%s of schema %s are in a publication without a replica identity: updates and deletes of them fail",
			phrase.Plural(len(published), "table", "tables"), schema).with(first(published)...), nil
	}
	if known := migrations.Latest(); version > known {
		return passed("schema %s is at version %d; this program knows %d and can run on it", schema, version, known), nil
	}
	return passed("schema %s is at version %d", schema, version), nil
}

// unidentified lists the tables that PostgreSQL refuses to change, because a publication such as FOR ALL TABLES has
// them and nothing identifies their rows.
func unidentified(ctx context.Context, v *visit) (tables []string, err error) {
	err = v.Store.Pool().QueryRow(ctx, `select coalesce(array_agg(distinct t.tablename::text order by t.tablename::text), '{}')
		from pg_publication_tables t
		join pg_publication p on p.pubname = t.pubname and (p.pubupdate or p.pubdelete)
		join pg_class c on c.relname = t.tablename and c.relnamespace = to_regnamespace($1) and t.schemaname = $2
		where c.relreplident = 'n' or c.relreplident = 'd'
			and not exists (select from pg_index i where i.indrelid = c.oid and i.indisprimary)`,
		pgx.Identifier{v.Config.Database.Schema}.Sanitize(), v.Config.Database.Schema).Scan(&tables)
	if err != nil {
		return nil, fmt.Errorf("read the publications: %w", err)
	}
	return tables, nil
}

// brokerTimeout is how long the connections to the broker may take.
const brokerTimeout = 5 * time.Second

func lookBroker(ctx context.Context, v *visit) (Finding, error) {
	address := config.MaskURL(v.Config.MessageQueue.URL)
	for begin := time.Now(); ; {
		up, tried, server := true, true, ""
		for _, link := range v.Broker.Links() {
			up, tried = up && link.Up, tried && !link.Since.IsZero()
			server = link.Server
		}
		switch {
		case up && tooOld(server):
			return failed(fmt.Sprintf("use RabbitMQ %d.%d or later", oldestRabbitMajor, oldestRabbitMinor),
				"%s is too old", server), nil
		case up:
			f := passed("%s, %s", server, address)
			if unencrypted(v.Config.MessageQueue.URL) {
				f.Found += ", not encrypted: it sends the password as clear text"
				f.Fix = "give the broker TLS and name it with amqps:// in message_queue.url"
			}
			return f, nil
		case tried || time.Since(begin) > brokerTimeout:
			return troubled(v.Broker.Trouble(), v.Config, "message_queue.url", v.Config.MessageQueue.URL).away(), nil
		}
		if !supervise.Sleep(ctx, 20*time.Millisecond) {
			return Finding{}, context.Cause(ctx)
		}
	}
}

var rabbitVersion = regexp.MustCompile(`RabbitMQ (\d+)\.(\d+)`)

// tooOld evaluates the name that a broker reports; an unknown name passes.
func tooOld(server string) bool {
	parts := rabbitVersion.FindStringSubmatch(server)
	if parts == nil {
		return false
	}
	major, _ := strconv.Atoi(parts[1]) // digits by the pattern
	minor, _ := strconv.Atoi(parts[2])
	return major < oldestRabbitMajor || major == oldestRabbitMajor && minor < oldestRabbitMinor
}

// wires is what the management API shows of the virtual host.
type wires struct {
	*broker.Wiring

	queues    map[string]broker.QueueInfo
	consumers []broker.QueueConsumer
	uncounted phrase.Trouble // why consumers are unknown, if they are
}

const unseen = "arguments, bindings and the consumers of others are not seen"

func lookManagement(ctx context.Context, v *visit) (Finding, error) {
	const key = "message_queue.management_url"
	if v.Management == nil {
		return skipped("%s is not set: %s", key, unseen), nil
	}
	w, err := readWires(ctx, v.Management)
	if err != nil {
		if source := v.Config.Source(key); source == "default" || strings.HasPrefix(source, "derived") {
			return skipped("%s; %s", broker.Trouble(err), unseen), nil
		}
		return troubled(broker.Trouble(err), v.Config, key, v.Config.MessageQueue.ManagementURL).with(unseen), nil
	}
	v.wires = w
	f := passed("%d exchanges, %d queues and %d bindings are seen", len(w.Exchanges), len(w.queues), len(w.Bindings))
	if w.uncounted.Fact != "" {
		f.Found, f.Fix = f.Found+"; "+w.uncounted.Fact, w.uncounted.Fix
	}
	if unencrypted(v.Config.MessageQueue.ManagementURL) {
		f.Found += "; not encrypted: it sends the password as clear text"
		f.Fix = "give the management API TLS and name it with https:// in " + key
	}
	return f, nil
}

// unencrypted reports whether connections to an address cross a network without TLS.
func unencrypted(address string) bool { return !config.Loopback(address) && !config.Encrypted(address) }

func readWires(ctx context.Context, management *broker.Management) (*wires, error) {
	wiring, err := management.Wiring(ctx)
	if err != nil {
		return nil, err
	}
	w := &wires{Wiring: wiring, queues: make(map[string]broker.QueueInfo, len(wiring.Queues))}
	for i := range wiring.Queues {
		w.queues[wiring.Queues[i].Name] = wiring.Queues[i]
	}
	if w.consumers, err = management.Consumers(ctx); broker.StatisticsOff(err) {
		w.uncounted = broker.Trouble(err)
	} else if err != nil {
		return nil, err
	}
	return w, nil
}

func lookAlarms(ctx context.Context, v *visit) (Finding, error) {
	if v.wires != nil {
		alarms, err := v.Management.Alarms(ctx)
		if err == nil {
			var names []string
			for _, a := range alarms {
				names = append(names, a.Resource+" on "+a.Node)
			}
			return v.alarmed(strings.Join(names, ", "), "none"), nil
		}
	}
	for _, link := range v.Broker.Links() {
		if link.Blocked {
			return v.alarmed(link.Blocks, ""), nil
		}
	}
	return passed("none reported to this program; a broker reports alarms only to publishers"), nil
}

func (v *visit) alarmed(what, none string) Finding {
	if what == "" {
		return passed("%s", none)
	}
	v.alarm = what
	trouble := broker.Trouble(&broker.BlockedError{Resource: what})
	return failed(trouble.Fix, "%s", trouble.Fact)
}
