#!/bin/sh
# Makes the passwords of compose.yaml: .env, secrets/token (a bearer token for the API) and secrets/tokens (its hash).
# What exists stays as it is.
#
#   sh deploy/secrets.sh        # writes the files
#   sh deploy/secrets.sh env    # prints exports for programs on this machine, for eval
set -eu
cd "$(dirname "$0")/.."
umask 077

random() { od -An -N24 -tx1 /dev/urandom | tr -d ' \n'; }
sha256() { if command -v sha256sum >/dev/null; then sha256sum; else shasum -a 256; fi; }

case "${1:-}" in
env)
	[ -f .env ] || {
		echo "there is no .env: run sh deploy/secrets.sh first" >&2
		exit 1
	}
	. ./.env
	echo "export ATTUNE__DATABASE__URL='postgresql://attune:$ATTUNE_DATABASE_PASSWORD@127.0.0.1:5432/attune?sslmode=disable'"
	echo "export ATTUNE__MESSAGE_QUEUE__URL='amqp://attune:$ATTUNE_BROKER_PASSWORD@127.0.0.1:5672/%2f'"
	echo "export ATTUNE__SECURITY__ENCRYPTION_KEY='$ATTUNE_ENCRYPTION_KEY'"
	exit
	;;
"") ;;
*)
	echo "usage: sh deploy/secrets.sh [env]" >&2
	exit 2
	;;
esac

# Containers run as the user of these files, since only that user may read them, but never as root.
user=$(id -u) group=$(id -g)
[ "$user" != 0 ] || user=10001 group=10001

if [ ! -e .env ]; then
	cat >.env <<EOF
ATTUNE_DATABASE_PASSWORD=$(random)
ATTUNE_BROKER_PASSWORD=$(random)
ATTUNE_ENCRYPTION_KEY=$(random)
ATTUNE_UID=$user
ATTUNE_GID=$group
EOF
	echo "wrote .env" >&2
fi
mkdir -p secrets packs
chmod go+rx packs
if [ ! -e secrets/token ]; then
	random >secrets/token
	printf 'operator read,operate,submit %s\n' "$(printf %s "$(cat secrets/token)" | sha256 | cut -d' ' -f1)" >secrets/tokens
	[ "$(id -u)" != 0 ] || chown "$user:$group" secrets/tokens
	echo "wrote secrets/token, a bearer token for http://127.0.0.1:8080: export TOKEN=\$(cat secrets/token)" >&2
fi
