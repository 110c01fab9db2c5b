#!/bin/sh
# Prints the path of a development tool in the wanted version: the one on PATH
# when it is that version, else one built into .attune/tools.
#   tool.sh NAME VERSION MODULE
set -eu
name=$1 version=$2 module=$3
here=$(cd "$(dirname "$0")/.." && pwd)
tool=$here/.attune/tools/$name-$version

found=$(command -v "$name" || true)
if [ -n "$found" ] && "$found" version 2>/dev/null | grep -qF "${version#v}"; then
	echo "$found"
	exit 0
fi
if [ ! -x "$tool" ]; then
	echo "building $name $version (once)" >&2
	mkdir -p "$here/.attune/tools"
	GOBIN=$here/.attune/tools go install "$module@$version" >&2
	mv "$here/.attune/tools/$name" "$tool"
fi
echo "$tool"
