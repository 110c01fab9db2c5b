#!/bin/sh
# Installs what the build and the tests need and the machine lacks: PostgreSQL
# 15 or newer, RabbitMQ 3.10 or newer with its management plugin, and a C
# compiler for the race detector. When nothing is missing it returns at once.
# Packages come from apt (with sudo when not root) or brew; elsewhere it says
# what to install. No service is started or enabled to start by this script.
set -eu

say() { printf 'install: %s\n' "$*" >&2; }

# patiently TEXT COMMAND... says every two seconds how long the command has taken.
patiently() {
	text=$1
	shift
	say "$text"
	(
		begun=$(date +%s)
		while sleep 2 && kill -0 $$ 2>/dev/null; do
			say "$text: $(($(date +%s) - begun)) s"
		done
	) >/dev/null &
	reporter=$!
	ended=0
	"$@" || ended=$?
	kill $reporter 2>/dev/null || :
	return $ended
}

# at_least VERSION MINIMUM compares "major.minor" numbers.
at_least() {
	printf '%s %s\n' "$1" "$2" | awk '{
		split($1, have, "."); split($2, need, ".")
		exit !(have[1] + 0 > need[1] + 0 || (have[1] + 0 == need[1] + 0 && have[2] + 0 >= need[2] + 0))
	}'
}

have_postgres() {
	for bin in /usr/lib/postgresql/*/bin /usr/pgsql-*/bin /opt/homebrew/opt/postgresql@*/bin \
		/usr/local/opt/postgresql@*/bin /usr/local/pgsql/bin "$(dirname "$(command -v postgres || echo /none/x)")"; do
		[ -x "$bin/postgres" ] && [ -x "$bin/initdb" -o -L "$bin/postgres" ] || continue
		version=$("$bin/postgres" --version 2>/dev/null | sed 's/^[^0-9]*\([0-9][0-9]*\).*/\1/')
		at_least "${version:-0}" 15 && return 0
	done
	return 1
}

# rabbitmq_version prints the version that the package's folder names, nothing
# when there is no broker, and "unknown" when the folder does not tell.
rabbitmq_version() {
	for home in /usr/lib/rabbitmq/lib/rabbitmq_server-* /opt/homebrew/Cellar/rabbitmq/* /usr/local/Cellar/rabbitmq/*; do
		[ -d "$home" ] || continue
		basename "$home" | sed 's/^rabbitmq_server-//'
		return 0
	done
	if command -v rabbitmq-server >/dev/null 2>&1; then echo unknown; fi
}

have_rabbitmq() {
	version=$(rabbitmq_version)
	[ -n "$version" ] || return 1
	[ "$version" = unknown ] || at_least "$version" 3.10
}

have_compiler() { command -v "${CC:-cc}" >/dev/null 2>&1 || command -v gcc >/dev/null 2>&1; }

wanted=${1:-}

missing() {
	have_postgres || echo postgresql
	have_rabbitmq || echo rabbitmq
	have_compiler || echo compiler
	[ -z "$wanted" ] || command -v "$wanted" >/dev/null 2>&1 || echo "$wanted"
}

with_apt() {
	root=
	if [ "$(id -u)" != 0 ]; then
		command -v sudo >/dev/null 2>&1 || {
			say "missing: $1. Not root and no sudo: run 'apt-get install $2' as root"
			exit 1
		}
		root=sudo
	fi
	# Packages start their services unless this file says no. One that is there
	# already is left alone.
	policy=/usr/sbin/policy-rc.d
	if [ ! -e "$policy" ]; then
		printf '#!/bin/sh\nexit 101\n' | $root tee "$policy" >/dev/null
		$root chmod 755 "$policy"
		trap '$root rm -f "$policy"' EXIT
		trap 'exit 130' INT
		trap 'exit 143' TERM
	fi
	patiently "updating the lists of packages" $root apt-get update -qq || say "apt-get update failed; trying with the lists that are there"
	# shellcheck disable=SC2086 # a list of packages
	patiently "installing with apt: $2" $root env DEBIAN_FRONTEND=noninteractive \
		apt-get install -y -qq -o DPkg::Lock::Timeout=120 $2 >&2
	if ! have_postgres && [ -x /usr/share/postgresql-common/pgdg/apt.postgresql.org.sh ]; then
		say "the distribution's PostgreSQL is older than 15: using the PostgreSQL project's packages"
		$root /usr/share/postgresql-common/pgdg/apt.postgresql.org.sh -y >&2
		$root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq -o DPkg::Lock::Timeout=120 postgresql-17 >&2
	fi
}

packages() { # packages NAME... prints what the manager calls them
	manager=$1
	shift
	for name in "$@"; do
		case "$manager/$name" in
		apt/postgresql) echo postgresql ;;
		apt/rabbitmq) echo rabbitmq-server ;;
		apt/compiler) echo gcc libc6-dev ;;
		*/tmux) echo tmux ;;
		brew/postgresql) echo postgresql@17 ;;
		brew/rabbitmq) echo rabbitmq ;;
		esac
	done | tr '\n' ' '
}

command -v go >/dev/null 2>&1 || {
	say "Go is missing: install Go 1.26 or newer from https://go.dev/dl/"
	exit 1
}

lacks=$(missing | tr '\n' ' ')
[ -n "$lacks" ] || exit 0

if command -v apt-get >/dev/null 2>&1; then
	# shellcheck disable=SC2086 # a list of names
	with_apt "$lacks" "$(packages apt $lacks)"
elif command -v brew >/dev/null 2>&1; then
	# shellcheck disable=SC2086 # a list of names
	list=$(packages brew $lacks)
	say "installing with brew: $list"
	# shellcheck disable=SC2086 # a list of packages
	[ -z "$list" ] || brew install $list >&2
fi

lacks=$(missing | tr '\n' ' ')
[ -z "$lacks" ] || {
	say "still missing: $lacks"
	say "install PostgreSQL 15 or newer, RabbitMQ 3.10 or newer (with the management plugin), a C compiler${wanted:+ and $wanted}, then try again"
	exit 1
}
