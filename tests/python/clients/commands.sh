#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/python/clients/commands.sh - shardpack and shardcat as pip built them from an sdist: they
# pack what the build's pack, and what is said if a library is missing
. "${0%/*}/lib.sh"
die() {
	echo "$*"
	exit 1
}
pack() { # DIR OUT OPTION...
	from=$1 out=$2
	shift 2
	"$from/shardpack" images "$ROOT/examples/photos/val" -o "$out" --quiet "$@"
}
pack "$VENV/bin" installed
pack "$BUILD/bin" built
pack "$BUILD/bin" other --crop 100
same() { diff -r --brief --exclude=.shardpack "$1" "$2" >/dev/null; }
same built installed || die "the shardpack that pip installed packs other bytes"
! same built other || die "the comparison finds no difference"
"$VENV/bin/shardcat" verify --quiet built
[ "$("$VENV/bin/shardpack" --version)" = "$("$BUILD/bin/shardpack" --version)" ] || die "the versions differ"
for page in man/man1/shardpack.1 man/man1/shardcat.1 bash-completion/completions/shardcat \
	zsh/site-functions/_shardpack fish/vendor_completions.d/shardcat.fish; do
	[ -s "$VENV/share/$page" ] || die "pip installed no $page"
done

# ---- without a library ----

mkdir none
setup() { (cd "$ROOT/python" && env PYTHONDONTWRITEBYTECODE=1 PKG_CONFIG_LIBDIR="$TMPDIR/none" PKG_CONFIG_PATH= "$@" \
	"$VENV/bin/python" setup.py --quiet build_scripts --build-dir "$TMPDIR/made"); }
! said=$(setup LIBSHARD_COMMANDS= 2>&1) || die "shardpack is built without its libraries"
for words in 'without: liblz4 libxxhash libjpeg libpng ' 'apt-get install liblz4-dev ' 'dnf install lz4-devel xxhash-devel ' \
	'LIBSHARD_COMMANDS=0 pip install'; do
	echo "$said" | grep -qF "$words" || die "'$words' is missing from: $said"
done
[ ! -e made ] || die "something was built all the same"
echo "the same bytes, 5 pages, and the words for a missing library"
