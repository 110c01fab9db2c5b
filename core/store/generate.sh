#!/bin/sh
# Generates the code of the queries, and the checksum that the drift test reads.
# Several of these may run at once; each waits for the one before.
set -eu
cd "$(dirname "$0")"
exec 9>.generate.lock
flock 9
rm -f ./*.sql.go
sqlc generate
go run ./internal/sources/record
