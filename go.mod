module github.com/attune-go/attune

go 1.26.0

toolchain go1.26.10

require (
	github.com/anishathalye/porcupine v1.3.1 // checks recorded histories for linearizability, in tests
	github.com/cenkalti/backoff/v5 v5.0.3 // pauses that grow, with jitter, between attempts
	github.com/charmbracelet/bubbles v1.0.0 // text input, viewport, spinner, keys and help of the dashboard
	github.com/charmbracelet/bubbletea v1.3.10 // the loop of the dashboard: messages, commands, rendering
	github.com/charmbracelet/lipgloss v1.1.0 // colours of the dashboard, as the terminal has them
	github.com/charmbracelet/x/ansi v0.11.9 // widths and cuts of styled text
	github.com/golang-jwt/jwt/v5 v5.3.1 // tokens of the published API and of executions
	github.com/google/uuid v1.6.0 // ids of messages and replicas
	github.com/jackc/pgx/v5 v5.12.0 // PostgreSQL: pool, batches, COPY, LISTEN
	github.com/lmittmann/tint v1.2.1 // log lines for people at a terminal
	github.com/muesli/termenv v0.16.0 // what colours and background a terminal has
	github.com/pressly/goose/v3 v3.29.0 // migrations, in order and once
	github.com/prometheus/client_golang v1.25.0 // metrics
	github.com/rabbitmq/amqp091-go v1.16.0 // AMQP 0-9-1
	github.com/rogpeppe/go-internal v1.16.0 // scripts that run the commands as users do, in tests
	github.com/santhosh-tekuri/jsonschema/v6 v6.0.3 // compares answers of the HTTP API with openapi.yaml, in tests
	github.com/spf13/cobra v1.10.2 // commands, flags, completions and manual pages
	github.com/spf13/pflag v1.0.9 // flags of attune-tui, and groups of flags that commands share
	github.com/stretchr/testify v1.12.1 // assertions, in tests
	go.uber.org/goleak v1.3.0 // refuses goroutines that outlive a test, in tests
	go.yaml.in/yaml/v3 v3.0.6 // packs, workflows and configuration, with positions
	golang.org/x/sync v0.24.0 // groups of goroutines, and a weighted semaphore
	golang.org/x/sys v0.49.0 // processes, users and limits of actions
	golang.org/x/term v0.47.0 // is this a terminal; passwords without echo
	pgregory.net/rapid v1.3.0 // random inputs that shrink, in tests
)

require (
	github.com/atotto/clipboard v0.1.4 // indirect
	github.com/aymanbagabas/go-osc52/v2 v2.0.1 // indirect
	github.com/beorn7/perks v1.0.1 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/charmbracelet/colorprofile v0.4.1 // indirect
	github.com/charmbracelet/x/cellbuf v0.0.15 // indirect
	github.com/charmbracelet/x/term v0.2.2 // indirect
	github.com/clipperhouse/displaywidth v0.11.0 // indirect
	github.com/clipperhouse/uax29/v2 v2.7.0 // indirect
	github.com/erikgeiser/coninput v0.0.0-20211004153227-1c3628e74d0f // indirect
	github.com/inconshreveable/mousetrap v1.1.0 // indirect
	github.com/jackc/pgpassfile v1.0.0 // indirect
	github.com/jackc/pgservicefile v0.0.0-20240606120523-5a60cdf6a761 // indirect
	github.com/jackc/puddle/v2 v2.2.3 // indirect
	github.com/kylelemons/godebug v1.1.0 // indirect
	github.com/lucasb-eyer/go-colorful v1.4.1 // indirect
	github.com/mattn/go-isatty v0.0.24 // indirect
	github.com/mattn/go-localereader v0.0.1 // indirect
	github.com/mattn/go-runewidth v0.0.31 // indirect
	github.com/mfridman/interpolate v0.0.2 // indirect
	github.com/muesli/ansi v0.0.0-20230316100256-276c6243b2f6 // indirect
	github.com/muesli/cancelreader v0.2.2 // indirect
	github.com/munnerz/goautoneg v0.0.0-20191010083416-a7dc8b61c822 // indirect
	github.com/prometheus/client_model v0.6.3 // indirect
	github.com/prometheus/common v0.72.0 // indirect
	github.com/prometheus/procfs v0.22.0 // indirect
	github.com/rivo/uniseg v0.4.7 // indirect
	github.com/sethvargo/go-retry v0.5.0 // indirect
	github.com/xo/terminfo v0.0.0-20220910002029-abceb7e1c41e // indirect
	go.uber.org/multierr v1.11.0 // indirect
	golang.org/x/text v0.43.0 // indirect
	golang.org/x/tools v0.52.0 // indirect
	google.golang.org/protobuf v1.36.12 // indirect
)

// A version the module proxy does not serve; only tests of dependencies of dependencies name it.
exclude golang.org/x/exp v0.0.0-20261011100332-faecfb24eb49
