#!/bin/sh
# Builds the release into dist/: an archive for each system, Debian packages, a list of the dependencies (CycloneDX) and
# SHA256SUMS. The same commit gives the same bytes in every folder.
#   PACKAGE_TARGETS    GOOS/GOARCH of the archives (linux/amd64 linux/arm64 darwin/arm64); those of Linux get a package
#   VERSION            otherwise that of the last tag, or 0.0.0 with the commit
#   SOURCE_DATE_EPOCH  time of all files, otherwise that of the commit
# usage: sh .ci/package.sh NFPM, the path of nfpm
set -eu
cd "$(dirname "$0")/.."
umask 022
export LC_ALL=C TZ=UTC
nfpm=$1
targets=${PACKAGE_TARGETS:-linux/amd64 linux/arm64 darwin/arm64}
dist=$PWD/dist

tar=tar
! command -v gtar >/dev/null 2>&1 || tar=gtar
{ "$tar" --version | grep -q GNU && date -u -R -d @0 >/dev/null 2>&1; } || {
	echo "package: GNU tar or GNU coreutils are missing" >&2
	exit 1
}

SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
commit=${COMMIT:-$(git rev-parse HEAD)}
if [ -z "${VERSION:-}" ]; then
	VERSION=$(git describe --tags --match 'v[0-9]*' 2>/dev/null | sed 's/^v//; s/-\([0-9]*\)-g/+\1.g/')
	[ -n "$VERSION" ] || VERSION=0.0.0+$(git log -1 --date=format:%Y%m%d%H%M%S --format=%cd).$(git rev-parse --short=8 HEAD)
fi
export VERSION SOURCE_DATE_EPOCH

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
rm -rf "$dist"
mkdir -p "$dist" "$stage/shared/completions"

put() { # put MODE SOURCE... FOLDER
	mode=$1
	shift
	for last; do :; done
	mkdir -p "$last"
	install -m "$mode" "$@"
}

# What all systems share.
put 644 LICENSE README.md CHANGELOG.md config.example.yaml "$stage/shared"
put 644 docs/*.md "$stage/shared/docs"
put 644 docs/alerts/attune.rules.yml "$stage/shared/docs/alerts"
put 644 docs/man/attune-executor.1 docs/man/attune-tui.1 "$stage/shared/man"
for shell in bash zsh fish; do
	bin/attune-executor completion "$shell" >"$stage/shared/completions/attune-executor.$shell"
	bin/attune-tui --completion "$shell" >"$stage/shared/completions/attune-tui.$shell"
done

# components PROGRAM... prints the modules of the programs in the format CycloneDX.
components() {
	printf '{\n  "bomFormat": "CycloneDX",\n  "specVersion": "1.5",\n  "version": 1,\n'
	printf '  "metadata": {"component": {"type": "application", "name": "attune", "version": "%s"}},\n' "$VERSION"
	printf '  "components": [\n'
	{
		go version "$1" | sed 's/.*: go/std v/'
		go version -m "$@" | awk '$1 == "dep" { print $2, $3 }' | sort -u
	} | awk '{
		printf "%s    {\"type\": \"library\", \"name\": \"%s\", \"version\": \"%s\", ", (NR > 1 ? ",\n" : ""), $1, $2
		printf "\"bom-ref\": \"pkg:golang/%s@%s\", \"purl\": \"pkg:golang/%s@%s\"}", $1, $2, $1, $2
	}'
	printf '\n  ]\n}\n'
}

build() { # build FOLDER PACKAGE... for the system and processor of the turn
	folder=$1
	shift
	CGO_ENABLED=0 GOOS=$os GOARCH=$arch go build -trimpath -buildvcs=false \
		-ldflags "-s -w -buildid= -X main.version=$VERSION -X main.commit=$commit" -o "$folder" "$@"
}

archive() { # archive FOLDER of the stage, which it removes
	"$tar" --sort=name --format=ustar --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" \
		-C "$stage" -cf - "$1" | gzip -9n >"$dist/$1.tar.gz"
	rm -rf "${stage:?}/$1"
}

for target in $targets; do
	os=${target%/*} arch=${target#*/}
	name=attune-$VERSION-$os-$arch
	tree=$stage/$name
	echo "building $name" >&2
	cp -R "$stage/shared" "$tree"
	build "$tree/" ./cmd/attune-executor ./cmd/attune-tui
	components "$tree/attune-executor" "$tree/attune-tui" >"$dist/$name.cdx.json"
	if [ "$os" = linux ]; then
		put 644 deploy/systemd/* "$tree/systemd"

		# The folders of the Debian package.
		root=$stage/root
		rm -rf "$root"
		put 755 "$tree/attune-executor" "$tree/attune-tui" "$root/usr/bin"
		put 644 deploy/systemd/* "$root/usr/lib/systemd/system"
		put 644 docs/man/attune-executor.1 docs/man/attune-tui.1 "$root/usr/share/man/man1"
		put 644 README.md "$root/usr/share/doc/attune"
		put 644 docs/*.md "$root/usr/share/doc/attune/docs"
		put 644 CHANGELOG.md "$root/usr/share/doc/attune"
		printf 'attune (%s) unstable; urgency=medium\n\n  * CHANGELOG.md.gz says what changed.\n\n -- %s  %s\n' "$VERSION" \
			"$(sed -n 's/^maintainer: //p' deploy/package/nfpm.yaml)" "$(date -u -R -d "@$SOURCE_DATE_EPOCH")" \
			>"$root/usr/share/doc/attune/changelog"
		gzip -9n "$root"/usr/share/man/man1/* "$root/usr/share/doc/attune/changelog" \
			"$root/usr/share/doc/attune/CHANGELOG.md"
		put 644 deploy/package/copyright "$root/usr/share/doc/attune"
		put 644 deploy/package/lintian-overrides "$root/usr/share/lintian/overrides"
		mv "$root/usr/share/lintian/overrides/lintian-overrides" "$root/usr/share/lintian/overrides/attune"
		put 644 config.example.yaml "$root/usr/share/doc/attune"
		for program in attune-executor attune-tui; do
			put 644 "$tree/completions/$program.bash" "$root/usr/share/bash-completion/completions"
			put 644 "$tree/completions/$program.zsh" "$root/usr/share/zsh/vendor-completions"
			put 644 "$tree/completions/$program.fish" "$root/usr/share/fish/vendor_completions.d"
			mv "$root/usr/share/bash-completion/completions/$program.bash" "$root/usr/share/bash-completion/completions/$program"
			mv "$root/usr/share/zsh/vendor-completions/$program.zsh" "$root/usr/share/zsh/vendor-completions/_$program"
		done
		put 640 config.example.yaml "$root/etc/attune"
		mv "$root/etc/attune/config.example.yaml" "$root/etc/attune/attune.yaml"
		find "$root" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
		ARCH=$arch ROOT=$root "$nfpm" package --config deploy/package/nfpm.yaml --packager deb \
			--target "$dist/attune_${VERSION}_$arch.deb" >&2
	fi
	archive "$name"

	# The laboratory is a package of its own.
	lab=attune-lab-$VERSION-$os-$arch
	put 644 LICENSE docs/man/attune-lab.1 "$stage/$lab"
	build "$stage/$lab/" ./cmd/attune-lab
	if [ "$os" = linux ]; then
		rm -rf "$root"
		put 755 "$stage/$lab/attune-lab" "$root/usr/bin"
		put 644 docs/man/attune-lab.1 "$root/usr/share/man/man1"
		gzip -9n "$root"/usr/share/man/man1/*
		put 644 deploy/package/copyright "$root/usr/share/doc/attune-lab"
		find "$root" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
		ARCH=$arch ROOT=$root "$nfpm" package --config deploy/package/lab.yaml --packager deb \
			--target "$dist/attune-lab_${VERSION}_$arch.deb" >&2
	fi
	archive "$lab"
done

sums() { if command -v sha256sum >/dev/null; then sha256sum "$@"; else shasum -a 256 "$@"; fi; }
(cd "$dist" && sums * >SHA256SUMS.new && mv SHA256SUMS.new SHA256SUMS && cat SHA256SUMS)
