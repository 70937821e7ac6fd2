#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/tree/wheel.sh - the sources of the wheel: from a folder, or by apt, and never another file;
# when a library is built again, and which comments are a licence
#
# apt is a stand-in: it knows two archives, and gives a tarball whose text is "zlib".
set -eu
die() {
	echo "$*"
	exit 1
}
mkdir "$TMPDIR/bin" "$TMPDIR/kept"
plant() {
	printf '#!/bin/sh\n%s\n' "$2" >"$TMPDIR/bin/$1"
	chmod +x "$TMPDIR/bin/$1"
}
# shellcheck disable=SC2016 # the stand-in expands it
plant apt-get 'case "$*" in
indextargets*) printf "%s\n" "mirror:/main/ Debian" "mirror:/safe/ Debian-Security" "mirror:/other/ Some Debian" ;;
*" source --download-only "*) printf zlib >z_1.tar.gz ;;
esac'
sum=$(printf zlib | sha256sum | cut -d ' ' -f 1)
plant apt-cache "printf 'Version: 1-1\n %s 4 z_1.tar.gz\n' $sum"
fetch() { # SHA-256: into $TMPDIR/build
	PYTHONPATH=python/wheel PYTHONDONTWRITEBYTECODE=1 "$PYTHON" -c '
import sys, pathlib, libraries
libraries.LIBRARIES = [libraries.Library("z", "1", "home", "z", "z_1.tar.gz", sys.argv[1], "Zlib", ())]
(path,) = libraries.fetch(pathlib.Path(sys.argv[2]))["z"]
print(path)' "$1" "$TMPDIR/build" >"$TMPDIR/log" 2>&1
}
stories=0
refused() { # STATUS TEXT ARGUMENT...: a fetch that ends so
	status=0 want=$1 text=$2
	shift 2
	fetch "$@" || status=$?
	[ "$status" = "$want" ] && grep -qF -e "$text" "$TMPDIR/log" || die "exit $status, want $want and '$text': $(cat "$TMPDIR/log")"
	stories=$((stories + 1))
}
got() { # PATH: a fetch that finds it there
	fetch "$sum" && [ "$(tail -n 1 "$TMPDIR/log")" = "$1" ] || die "want $1: $(cat "$TMPDIR/log")"
	stories=$((stories + 1))
}
unset WHEEL_SOURCES
path=$PATH

PATH="$TMPDIR/bin:$path"
got "$TMPDIR/build/z_1.tar.gz"
sort "$TMPDIR/build/apt/sources.list" >"$TMPDIR/lists"
grep -qx 'deb-src mirror:/main/ trixie main' "$TMPDIR/lists" || die "lists: $(cat "$TMPDIR/lists")"
grep -qx 'deb-src mirror:/safe/ trixie-security main' "$TMPDIR/lists" || die "lists: $(cat "$TMPDIR/lists")"
! grep -E 'main/ .*security|safe/ (sid|trixie) |other' "$TMPDIR/lists" || die "lists that no mirror has"
echo damaged >"$TMPDIR/build/z_1.tar.gz"
refused 1 "z_1.tar.gz: its SHA-256 is " "$sum"
rm "$TMPDIR/build/z_1.tar.gz"
refused 77 "there is no z_1.tar.gz, and apt got no source package z with SHA-256 00" 00
export WHEEL_SOURCES="$TMPDIR/kept"
got "$TMPDIR/kept/z_1.tar.gz"
# Now without a mirror.
plant apt-get 'exit 1'
got "$TMPDIR/kept/z_1.tar.gz"
WHEEL_SOURCES=$TMPDIR/gone
rm -f "$TMPDIR/build/z_1.tar.gz"
refused 77 "Download z 1 from home" "$sum"

# ---- when a library is built again ----

# Three libraries: b needs a.  This prints which of them are built.
builds() { # FOLDER VERSION-OF-A
	PYTHONPATH=python/wheel PYTHONDONTWRITEBYTECODE=1 "$PYTHON" -c '
import sys, libraries
libraries.LIBRARIES = [libraries.Library(name, version, "home", name, f"{name}.tar", "0", "Zlib", (), needs=needs)
                       for name, version, needs in (("a", sys.argv[2], ()), ("b", "1", ("a",)), ("c", "1", ()))]
libraries.check_programs = lambda arch, path: None
libraries.make_compiler = lambda arch, folder: "true"
libraries.fetch = lambda folder: {name: [] for name in "abc"}
libraries.build = lambda library, arch, folder: None
libraries.main("x86_64", sys.argv[1])' "$1" "$2" | sed 's/^  BUILD \([a-z]\) .*/\1/' | tr -d '\n'
}
built() { # WANT FOLDER VERSION-OF-A
	got=$(builds "$2" "$3")
	[ "$got" = "$1" ] || die "built '$got', want '$1', in $2 with a $3"
	stories=$((stories + 1))
}
mkdir "$TMPDIR/here"
built abc "$TMPDIR/here" 1
built "" "$TMPDIR/here" 1
built ab "$TMPDIR/here" 2
mv "$TMPDIR/here" "$TMPDIR/moved"
built abc "$TMPDIR/moved" 2
built "" "$TMPDIR/moved" 2

# ---- which comments of a source are a licence ----

licence() { # SUFFIX, with the text on standard input
	cat >"$TMPDIR/source.$1"
	PYTHONPATH=python/wheel PYTHONDONTWRITEBYTECODE=1 "$PYTHON" -c '
import pathlib, sys, wheel
sys.stdout.write(wheel.licence_text(pathlib.Path(sys.argv[1])).decode())' "$TMPDIR/source.$1" 2>&1
}
text='/* Copyright (c) 1 A */
int x; /* of x */
/*
 * Copyright © 2 B
 */'
got=$(echo "$text" | licence c | tr '\n' '|')
[ "$got" = '/* Copyright (c) 1 A */||/*| * Copyright © 2 B| */|' ] || die "a source: $got"
got=$(printf ';* Copyright (C) 1 A\n;* more\nmov a\n; other\n' | licence asm | tr '\n' '|')
[ "$got" = ';* Copyright (C) 1 A|;* more|' ] || die "an assembler's source: $got"
got=$(echo "$text" | licence txt)
[ "$got" = "$text" ] || die "a text: $got"
got=$(echo '/* copyright-free */' | licence c) && die "a source without a licence: $got"
echo "$got" | grep -qF 'no comment states a copyright' || die "a source without a licence: $got"
stories=$((stories + 4))
echo "$stories stories"
