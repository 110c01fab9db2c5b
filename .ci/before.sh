#!/bin/sh
# Builds the programs that measure the engine as it was at a commit: attune-bench, with the
# flags of bin/attune-bench, and beside it attune-system, whose command bench measures the
# whole system. Prints where the first one is, or nothing where the commit is not there, as
# in a copy without its history.
#
# usage: sh .ci/before.sh COMMIT
set -eu
cd "$(dirname "$0")/.."
dir=$PWD/.attune/before/$1
if [ ! -x "$dir/attune-bench" ] || [ ! -x "$dir/attune-system" ]; then
	git cat-file -e "$1^{commit}" 2>/dev/null || exit 0
	mkdir -p "$dir/source"
	git archive "$1" | tar -x -C "$dir/source"
	system=./cmd/attune-executor # had the command before attune-lab
	[ ! -d "$dir/source/cmd/attune-lab" ] || system=./cmd/attune-lab
	go -C "$dir/source" build -buildvcs=false -o "$dir/attune-system" "$system" >&2
	for bench in lab/bench bench; do [ ! -d "$dir/source/$bench" ] || module=$dir/source/$bench; done
	if [ -n "${module:-}" ]; then
		go -C "$module" build -buildvcs=false -o "$dir/attune-bench" . >&2
	else # the engine itself had the command
		printf '#!/bin/sh\nexec "%s" bench "$@"\n' "$dir/attune-system" >"$dir/attune-bench"
		chmod +x "$dir/attune-bench"
	fi
	rm -rf "$dir/source"
fi
echo "$dir/attune-bench"
