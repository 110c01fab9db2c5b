#!/bin/sh
# Prints the folder of promtool: that of the one on PATH, else one that is unpacked from Debian's
# package into .attune/tools. The package is not installed, so no Prometheus starts.
set -eu
if found=$(command -v promtool); then
	dirname "$found"
	exit 0
fi
here=$(cd "$(dirname "$0")/.." && pwd)
place=$here/.attune/tools/prometheus
if [ ! -x "$place/usr/bin/promtool" ]; then
	command -v apt-get >/dev/null || {
		echo "promtool is missing: install Prometheus, or put promtool on PATH" >&2
		exit 1
	}
	temporary=$(mktemp -d)
	trap 'rm -rf "$temporary"' EXIT
	(cd "$temporary" && apt-get -q download prometheus >&2 && dpkg -x prometheus_*.deb unpacked)
	rm -rf "$place"
	mkdir -p "$(dirname "$place")"
	mv "$temporary/unpacked" "$place"
fi
echo "$place/usr/bin"
