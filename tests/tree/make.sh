#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/tree/make.sh - make builds again what a change needs, and no more, and a look writes nothing
#
# Asks make what it would do in the build that runs this test, if a file were new (`-W`) or a list
# shorter.  Nothing is built.
set -eu
unset T
make() {
	command make --no-print-directory DEPS=skip "$@"
}
die() {
	echo "$*"
	exit 1
}
build=$(sed -n '1s,/libshard/.*,,p' "$BUILD/libshard/base/error.d") # as the build was told to spell it
named() { # ARGUMENT...: what make would compile and link, one a line
	cases=$((${cases-0} + 1))
	make BUILD="$build" -n "$@" >"$TMPDIR/log" 2>&1 || die "make -n $*: $(tail -n 5 "$TMPDIR/log")"
	sed -n "s/.*echo '  [A-Z]*  *\([^']*\)'.*/\1/p" "$TMPDIR/log" | sed "s,^$build/,," | sort >"$TMPDIR/named"
}
exactly() { # STORY FILE...
	story=$1
	shift
	[ "$(cat "$TMPDIR/named")" = "$(printf '%s\n' "$@" | sort)" ] ||
		die "$story: make should name: $*; it names: $(tr '\n' ' ' <"$TMPDIR/named")"
}
among() { # STORY FILE...
	story=$1
	shift
	for file; do grep -qx "$file" "$TMPDIR/named" || die "$story: make does not name $file"; done
}
none() { # STORY PATTERN
	! grep -E "$2" "$TMPDIR/named" || die "$1: make names these"
}
so=$(basename "$(readlink -f "$BUILD/libshard.so")")
linked_with_library=$(printf '%s\n' bench/*.c examples/*.c tests/*/t_*.c tests/*/dump_*.c tests/*/prog_*.c \
	tests/fuzz/fuzz_*.c | sed 's/\.c$//' && echo bin/shardpack bin/shardcat libshard.a "$so" python/libshard/_core.abi3.so)

# ---- what is out of date ----

make -q all tests BUILD="$BUILD" || die "there is something to do after a build; run: make check T=tree/make"
make -q all tests BUILD="$BUILD/../${BUILD##*/}" || die "there is something to do in a BUILD by another name"
for name in "$BUILD" "$BUILD/../${BUILD##*/}" "$(realpath --relative-to=. "$BUILD")"; do
	make BUILD="$name" -n -W tools/shardpack/plan/plan.h all >"$TMPDIR/log" 2>&1
	grep -q "CC    tools/shardpack/plan/plan.c" "$TMPDIR/log" || die "BUILD=$name: a header that is new goes unnoticed"
done
make -n BUILD= DEPS=skip all >"$TMPDIR/log" 2>&1
! grep -E "[> ]/(flags|objects|bin)" "$TMPDIR/log" || die "an empty BUILD builds in the root of the file system"
# So it is where the environment says it, and a sanitizer's build lies below.
BUILD=$BUILD command make --no-print-directory -n DEPS=skip asan T=unit/t_bytes >"$TMPDIR/log" 2>&1 ||
	die "make -n asan: $(tail -n 5 "$TMPDIR/log")"
grep -q " BUILD=$build/asan" "$TMPDIR/log" || die "make asan builds elsewhere than in $build/asan: $(cat "$TMPDIR/log")"
named -W tools/shardcat/main.c all tests
exactly "a source of a tool" tools/shardcat/main.c bin/shardcat
named -W docs/man/shardcat.md all tests
exactly "a manual" docs/man/shardcat.md tools/shardcat/manual.c bin/shardcat
named -W tests/cuda/fake_full.map all tests
exactly "a map" tests/cuda/full/libcuda.so.1
named -W tools/shardpack/plan/plan.h all tests
among "a header" tools/shardpack/plan/plan.c bin/shardpack tests/pack/t_plan
none "a header of one tool" '^(libshard|bin/shardcat|python)'
# shellcheck disable=SC2086 # words
for file in libshard/base/error.c libshard/gpu/gather.ptx; do
	case $file in *.ptx) source=$(grep -lF "${file##*/}" libshard/gpu/*.c) ;; *) source=$file ;; esac
	named -W $file all tests
	among "$file" $source $linked_with_library
done
named CPPFLAGS=-DX='"it'\''s"' all tests
among "other flags" libshard/base/error.c tools/shardpack/main.c $(find python/core -name "*.c") $linked_with_library
make -q all tests BUILD="$BUILD" || die "make -n wrote the other flags"

# ---- a file less: archives are made again without it, and nothing is compiled ----

named SRC="$(printf '%s ' libshard/*/*.c | sed 's,libshard/io/engine_uring[a-z_]*.c ,,g; s,libshard/base/error.c ,,')" all
among "a file of the library less" libshard.a "$so" bin/shardpack
none "a file less" '\.c$'
! make -n all UNFUSED=libshard/gone.c >"$TMPDIR/log" 2>&1 || die "flags for a file that is not there went unnoticed"
grep -q "there is no libshard/gone.c" "$TMPDIR/log" || die "$(cat "$TMPDIR/log")"

# ---- on a clean tree: one test alone, and looks that write nothing ----

out=$TMPDIR/out
for t in unit/t_bytes cuda/t_fake; do
	named BUILD="$out" check T=$t
	none "$t alone" "^($out/)?(tools|examples|bench|python|bin)/"
	among "$t alone" "$out/tests/$t"
done
for look in help "-n all tests" "-q all" "-n check" "-n deps"; do
	# shellcheck disable=SC2086 # words
	make BUILD="$out" $look >"$TMPDIR/log" 2>&1 || [ "$look" = "-q all" ] || die "make $look: $(cat "$TMPDIR/log")"
	[ ! -e "$out" ] || die "make $look wrote $(find "$out" | head -n 5)"
done

# ---- what is installed is built, and nothing else ----

named BUILD="$out" PREFIX=/usr DESTDIR="$out/root" install
among "install" "$out/bin/shardpack" "$out/bin/shardcat" "$out/$so" "$out/libshard.a"
none "install" "^($out/)?(bench|examples|tests|python)/"
named BUILD="$out" PREFIX=/usr DESTDIR="$out/root" PYTHONDIR=/usr/python install
among "install with Python" "$out/python/libshard/_core.abi3.so"
none "install with Python" "^($out/)?(bench|examples|tests)/"

# ---- a virtual environment is made again if its list is another one ----

# shellcheck disable=SC2016 # the stand-in expands it
printf '#!/bin/sh\nmkdir -p "$3/bin" && printf "#!/bin/sh\\n" >"$3/bin/python" && chmod +x "$3/bin/python"\n' >"$TMPDIR/python"
chmod +x "$TMPDIR/python"
venv=$out/venv/wheel/packages
remade() { make BUILD="$out" -q "$venv" "$@" >"$TMPDIR/log" 2>&1 && return 1 || [ $? = 1 ] || die "$(cat "$TMPDIR/log")"; }
remade || die "a virtual environment that is not there is up to date"
PYTHON3="$TMPDIR/python" make BUILD="$out" "$venv" VENV_wheel='one==1 --no-deps two==2' >"$TMPDIR/log" 2>&1 ||
	die "$(cat "$TMPDIR/log")"
! remade VENV_wheel='one==1 --no-deps two==2' || die "a virtual environment is made again with the same list"
remade VENV_wheel='one==1 --no-deps two==3' || die "another version in the list goes unnoticed"
remade VENV_wheel='one==1' || die "a shorter list goes unnoticed"
remade || die "another list goes unnoticed"
: >"$venv"
remade VENV_wheel='one==1 --no-deps two==2' || die "one of an older Makefile, without a list, goes unnoticed"
rm -r "$out"

# ---- a library that is missing ----

mkdir "$TMPDIR/bin"
# shellcheck disable=SC2016 # the stand-in expands it
printf '#!/bin/sh\n[ "$1" != --exists ] || { echo "No package found" && exit 1; }\n' >"$TMPDIR/bin/pkg-config"
chmod +x "$TMPDIR/bin/pkg-config"
! PATH="$TMPDIR/bin:$PATH" make all URING=1 BUILD="$out" >"$TMPDIR/log" 2>&1 || die "a missing library went unnoticed"
grep -q "^a library is missing: 'make deps' installs it" "$TMPDIR/log" || die "$(cat "$TMPDIR/log")"
echo "$cases questions"
