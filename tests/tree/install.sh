#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/tree/install.sh - what `make install` writes is enough, through pkg-config, and
# `make uninstall` leaves nothing
set -eu
root=$TMPDIR/root
fail() {
	echo "$1"
	exit 1
}
files() { (cd "$root" && find . -type f -o -type l) | sort; }
# shellcheck disable=SC2086 # LAUNCH is a command and its option
run() { env LD_LIBRARY_PATH="$root/usr/lib/here" ${LAUNCH-} "$@"; }

staged() {
	make --no-print-directory DEPS=skip BUILD="$BUILD" PREFIX=/usr LIBDIR=/usr/lib/here \
		PYTHONDIR=/usr/lib/here/python DESTDIR="$root" "$1" >"$TMPDIR/log" 2>&1 || { cat "$TMPDIR/log" && exit 1; }
}

staged install
files >"$TMPDIR/files"
for f in bin/shardpack bin/shardcat include/shard.h include/shard_gpu.h include/shard_inspect.h \
	include/shard_pack.h include/shard_transform.h \
	lib/here/libshard.a lib/here/libshard.so lib/here/pkgconfig/libshard.pc \
	share/man/man1/shardpack.1 share/man/man1/shardcat.1 share/man/man3/shard.h.3 share/man/man3/shard_pack.h.3 \
	share/bash-completion/completions/shardcat \
	lib/here/python/libshard/_core.abi3.so lib/here/python/libshard/_core.pyi lib/here/python/libshard/torch.py \
	share/zsh/site-functions/_shardcat share/fish/vendor_completions.d/shardcat.fish; do
	[ -s "$root/usr/$f" ] || fail "install did not write $f"
done
grep -rIl "$TMPDIR\|$BUILD" "$root" && fail "the files above name the place where they were built or staged"
grep -q '^\.TH ' "$root/usr/share/man/man1/shardcat.1" || fail "shardcat.1 is not a man page"
bash -n "$root/usr/share/bash-completion/completions/shardpack"
if command -v man >/dev/null; then
	for page in "$root"/usr/share/man/man[13]/*.[13]; do
		man --warnings -E UTF-8 -l "$page" 2>&1 >/dev/null | grep . && fail "man complains about $page"
	done
fi

# A program that knows nothing but pkg-config, with the shared library and then without it.
PKG_CONFIG_LIBDIR=$root/usr/lib/here/pkgconfig:$(pkg-config --variable pc_path pkg-config)
export PKG_CONFIG_LIBDIR
cat >"$TMPDIR/user.c" <<-'USER'
	#include <shard.h>
	#include <stdio.h>
	#include <string.h>
	int main(void)
	{
		char header[64];
		struct shard_dataset *ds = NULL;
		struct shard_error err;

		snprintf(header, sizeof(header), "%d.%d.%d", SHARD_VERSION_MAJOR, SHARD_VERSION_MINOR,
			 SHARD_VERSION_PATCH);
		if (strcmp(header, shard_version()))
			return 1;
		if (shard_dataset_open(&ds, "no/such/dataset", NULL, &err) != SHARD_E_IO)
			return 2;
		if (!strstr(err.message, "no/such/dataset"))
			return 3;
		puts(header);
		return 0;
	}
USER
flags=$(PKG_CONFIG_SYSROOT_DIR=$root pkg-config --cflags --libs libshard)
# shellcheck disable=SC2086 # compiler flags are words
${CC:-cc} -Wall -Werror "$TMPDIR/user.c" -o "$TMPDIR/user" $flags
version=$(run "$TMPDIR/user") || fail "a program linked with libshard.so exits with $?"
[ "$version" = "$(pkg-config --modversion libshard)" ] || fail "libshard.pc and the library differ on the version"
mkdir "$TMPDIR/static"
cp "$root/usr/lib/here/libshard.a" "$TMPDIR/static"
others=$(pkg-config --static --libs-only-l libshard)
# shellcheck disable=SC2086
${CC:-cc} "$TMPDIR/user.c" -o "$TMPDIR/user_static" -I"$root/usr/include" -L"$TMPDIR/static" -pthread $others
"$TMPDIR/user_static" >/dev/null || fail "a program linked with libshard.a exits with $?"
run "$root/usr/bin/shardpack" --version >/dev/null || fail "the installed shardpack does not start"
run "$root/usr/bin/shardcat" --version >/dev/null || fail "the installed shardcat does not start"

# Python finds the package, and what it is.
PYTHONPATH=$root/usr/lib/here/python PYTHONDONTWRITEBYTECODE=1 ${PYTHON:-python3} - "$version" "$root" <<-'END'
	import importlib.metadata
	import sys

	import libshard

	info = importlib.metadata.distribution("libshard")
	assert libshard.__file__.startswith(sys.argv[2]), libshard.__file__
	assert libshard.__version__ == info.version == sys.argv[1], (libshard.__version__, info.version)
	said = {name: info.metadata[name] for name in ("Name", "License", "Requires-Python")}
	assert said == {"Name": "libshard", "License": "Apache-2.0", "Requires-Python": ">=3.11"}, said
	assert "datasets" in info.metadata["Summary"], info.metadata["Summary"]
END

echo keep >"$root/usr/bin/somebody_elses"
staged uninstall
[ "$(files)" = ./usr/bin/somebody_elses ] ||
	{ files && fail "uninstall should leave somebody_elses, and no other file"; }
echo "$(wc -l <"$TMPDIR/files") files installed and removed"
