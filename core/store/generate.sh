#!/bin/sh
# Generates internal/db from the queries and migrations, the aliases by which
# other packages name the results, and the checksum that the drift test reads.
# Several of these may run at once; each waits for the one before.
set -eu
cd "$(dirname "$0")"
exec 9>.generate.lock
flock 9
sqlc generate
go run ./internal/aliases
