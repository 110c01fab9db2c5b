#!/bin/sh
# Builds attune-executor as it was at a commit or tag, and prints where it is. Prints nothing where the
# commit is not there, as in a copy without its history.
#
# usage: sh .ci/release.sh COMMIT
set -eu
cd "$(dirname "$0")/.."
commit=$(git rev-parse --verify --quiet "$1^{commit}") || exit 0
dir=$PWD/.attune/before/$commit
if [ ! -x "$dir/attune-executor" ]; then
	mkdir -p "$dir/source"
	git archive "$commit" | tar -x -C "$dir/source"
	go -C "$dir/source" build -buildvcs=false -o "$dir/attune-executor" ./cmd/attune-executor >&2
	rm -rf "$dir/source"
fi
echo "$dir/attune-executor"
