#!/bin/sh
# Builds the measurement of River, which is a module of its own, and prints where it is.
# Prints nothing where its modules cannot be downloaded.
set -eu
cd "$(dirname "$0")/.."
program=$PWD/.attune/river
if (cd core/bench/river && go build -buildvcs=false -o "$program" .) >&2; then
	echo "$program"
fi
