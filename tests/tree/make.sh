#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/tree/make.sh - make builds what it must and no more, says so beforehand, and writes only
# when it builds
#
# TAKES: 25
#
# Works on a copy of the sources.  Compiler, linker and archiver are stand-ins that make empty files
# in no time.
# shellcheck disable=SC2016 # what stands in single quotes is for the stand-ins to expand
set -eu
. tests/tree/lib.sh
copy=$TMPDIR/copy out=$TMPDIR/out bin=$TMPDIR/bin
mkdir "$copy" "$bin"
tree_files | tar -cf - -T - | tar -xf - -C "$copy"
cd "$copy"
unset MAKEFLAGS MFLAGS MAKELEVEL T
: >"$TMPDIR/built" # what the stand-ins made

cat >"$bin/cc" <<'STANDIN'
#!/bin/sh
# cc ... -c FILE -o OUT, or ... -o OUT: an empty OUT and, for a FILE, the headers that it names
# itself
source=
while [ $# -gt 0 ]; do
	case $1 in
	-c) source=$2 && shift ;;
	-o) out=$2 && shift ;;
	esac
	shift
done
: >"$out"
echo "$out" >>"$TMPDIR/built"
[ -n "$source" ] || exit 0
headers=$(sed -n 's/^#include "\([a-z]*\/.*\)"/\1/p' "$source" | tr '\n' ' ')
echo "$out: $source $headers" >"${out%.o}.d"
for h in $headers; do echo "$h:"; done >>"${out%.o}.d"
STANDIN
printf '#!/bin/sh\nexec "%s/cc" "$@"\n' "$bin" >"$bin/ld"
printf '#!/bin/sh\n' >"$bin/objcopy"
# ar FLAGS OUT OBJECT...: OUT is a list of its objects
printf '#!/bin/sh\nshift\nout=$1\nshift\necho "$@" >"$out"\necho "$out" >>"$TMPDIR/built"\n' >"$bin/ar"
chmod +x "$bin"/*
cases=0 cflags=-O2

die() {
	echo "$*"
	exit 1
}
run_make() { # the output is in $TMPDIR/log
	cases=$((cases + 1))
	: >"$TMPDIR/built"
	PATH=$bin:$PATH make --no-print-directory CC="$bin/cc" LD="$bin/ld" AR="$bin/ar" CFLAGS=$cflags \
		DEPS=skip BUILD="$out" "$@" >"$TMPDIR/log" 2>&1
}
good_make() {
	run_make "$@" || { tail -n 20 "$TMPDIR/log" && die "make $* failed"; }
}
named() { # what the last `make -n` said that it would compile and link, one a line
	sed -n "s/.*echo '  [A-Z]*  *\([^']*\)'.*/\1/p" "$TMPDIR/log" | sed "s,^$out/,," | sort
}
up_to_date() {
	run_make -q all tests || die "$1: make -q says that there is something to do"
	good_make -n all tests
	[ -z "$(named)" ] || die "$1: nothing is to be done, but make -n names: $(named | head -n 5)"
}
names() { # STORY WHAT...: make -n all tests says exactly this
	story=$1
	shift
	good_make -n all tests
	[ "$(named)" = "$(printf '%s\n' "$@" | sort)" ] ||
		die "$story: make -n should name: $*; it names: $(named | tr '\n' ' ')"
	! run_make -q all tests || die "$story: make -q says that there is nothing to do"
}
linked_with_library() { # every program, as links name them
	printf '%s\n' examples/*.c bench/*.c tests/*/t_*.c tests/*/dump_*.c tests/*/prog_*.c tests/fuzz/fuzz_*.c |
		sed 's/\.c$//'
	printf '%s\n' bin/shardpack bin/shardcat libshard.a "$(basename "$out"/libshard.so.*.*.*)" \
		python/libshard/_core.abi3.so
}

# ---- nothing is written by looking ----

for look in help "-n all tests" "-q all" "-n check" "-n deps"; do
	# shellcheck disable=SC2086 # words
	run_make $look || [ "$look" = "-q all" ] || die "make $look failed: $(cat "$TMPDIR/log")"
	[ ! -e "$out" ] || die "make $look wrote $(find "$out" | head -n 5)"
	! grep -q 'passed, ' "$TMPDIR/log" || die "make $look ran tests"
done

# ---- one test alone, on a clean tree ----

builds() { # PATTERN: what `make check` of it compiles and links
	good_make -n check T="$1"
	named
}
for t in unit/t_bytes cuda/t_fake; do
	builds "$t" >"$TMPDIR/alone"
	! grep -E '^(tools|examples|bench|python|bin)/' "$TMPDIR/alone" || die "$t needs none of these"
	grep -qx "tests/$t" "$TMPDIR/alone" || die "$t is not built for itself"
done
drivers=$(printf 'tests/cuda/%s/libcuda.so.1 ' bare full old)
[ "$(grep '^tests/' "$TMPDIR/alone" | grep -v 'tests/cuda/fake_' | tr '\n' ' ')" = \
	"${drivers}tests/cuda/t_fake tests/cuda/t_fake.c " ] ||
	die "a test of a GPU needs the drivers, and itself: $(cat "$TMPDIR/alone")"
builds pack/t_plan >"$TMPDIR/alone"
grep -q '^tools/shardpack/' "$TMPDIR/alone" || die "pack/t_plan needs the converter"
! grep -E '^(examples|bench|python|bin)/' "$TMPDIR/alone" || die "pack/t_plan needs none of these"
builds "" >"$TMPDIR/all"
[ "$(wc -l <"$TMPDIR/all")" -gt 400 ] || die "all tests need all there is"
builds tree/spdx >"$TMPDIR/alone"
cmp -s "$TMPDIR/all" "$TMPDIR/alone" || die "a script may need all there is"

# ---- what is out of date ----

good_make -j2 all tests
up_to_date "after a build"
flags=$(cat "$out/flags")

run_make -q all tests BUILD=../out || die "make -q says that there is something to do in the same BUILD by another name"

touch tools/shardcat/main.c
names "a touched source of a tool" tools/shardcat/main.c bin/shardcat
good_make all tests
[ "$(sed "s,^$out/,," "$TMPDIR/built" | tr '\n' ' ')" = "tools/shardcat/main.o bin/shardcat " ] ||
	die "a touched source: built $(cat "$TMPDIR/built")"
up_to_date "after a touched source"

touch docs/man/shardcat.md
names "a touched manual" docs/man/shardcat.md tools/shardcat/manual.c bin/shardcat
good_make all tests
touch docs/manual.awk
# shellcheck disable=SC2046 # names without blanks
names "a touched maker of manuals" $(for t in shardcat shardpack; do
	echo "docs/man/$t.md tools/$t/manual.c bin/$t"
done) tests/pack/t_jobs tests/pack/t_verbs
good_make all tests

touch libshard/gpu/gather.ptx
# shellcheck disable=SC2046 # names without blanks
names "touched kernels" libshard/gpu/kernels.c $(linked_with_library)
good_make all tests

touch tests/cuda/fake_full.map
names "a touched map" tests/cuda/full/libcuda.so.1
good_make all tests

touch libshard/base/error.c
# shellcheck disable=SC2046 # names without blanks
names "a touched source of the library" libshard/base/error.c $(linked_with_library)
good_make all tests

grep -v '^docs/man/' "$TMPDIR/all" >"$TMPDIR/flagged" # awk takes no flags
for edit in "CFLAGS=-O1" "LDFLAGS=-s" "CPPFLAGS=-DX='\"it'\''s\"'"; do
	good_make -n all tests "$edit"
	named >"$TMPDIR/now"
	cmp -s "$TMPDIR/now" "$TMPDIR/flagged" ||
		die "$edit: not all is built again: $(diff "$TMPDIR/flagged" "$TMPDIR/now" | head -n 5)"
	[ "$(cat "$out/flags")" = "$flags" ] || die "make -n wrote the flags of $edit"
done
up_to_date "after looks with other flags"
cflags=-O3
good_make -j2 all tests
up_to_date "after a build with other flags"

# ---- a file more, and a file less ----

for room in libshard/base tools/shardpack python/core bench/common tests/cuda/fake_; do
	case $room in *_) new=${room}zz_new.c ;; *) new=$room/zz_new.c ;; esac
	echo '/* nothing */' >"$new"
	good_make -n all tests
	named | grep -qx "$new" || die "$new is new, but make -n does not name it"
	good_make all tests
	rm "$new"
	good_make -n all tests
	case $room in
	libshard/base) user=libshard.a ;;
	tools/shardpack) user=bin/shardpack ;;
	python/core) user=python/libshard/_core.abi3.so ;;
	bench/common) user=bench/loader ;;
	*) user=tests/cuda/full/libcuda.so.1 ;;
	esac
	named | grep -qx "$user" || die "$new is gone, but make -n does not name $user"
	! named | grep '\.c$' || die "$new is gone, and nothing is to be compiled"
	good_make all tests
	! grep -l 'zz_new\.o' "$out"/*.a "$out"/tools/*.a || die "$new is gone, and still in these archives"
done
up_to_date "after files came and went"
mkdir "$TMPDIR/aside"
own=$(sed -n 's/^UNFUSED *:= *\([^ ]*\).*/\1/p' Makefile) # the first file that has flags of its own
mv "$own" "$TMPDIR/aside"
! run_make -n all || die "flags for a file that is not there went unnoticed"
grep -q "there is no $own" "$TMPDIR/log" || die "it is not said: $(cat "$TMPDIR/log")"
mv "$TMPDIR/aside/${own##*/}" "$own"

# ---- which Pillows are asked for ----

printf '#!/bin/sh\nmkdir -p "$1"\ntouch "$1/packages"\n' >tests/python/clients/_venv.sh
printf '#!/bin/sh\necho "asked for $PILLOWS"\n' >tests/twin/_pillows.sh
asks() { # PILLOWS TARGET...
	want=$1
	shift
	good_make "$@"
	grep -q "  asked for $want\$" "$TMPDIR/log" || die "make $*: not $want, but $(grep 'asked for' "$TMPDIR/log")"
}
asks "$(sed -n 's/^PILLOWS *:= *//p' Makefile)" check-pillow
asks 12.2.0 check-pillow PILLOWS=12.2.0
asks newest check-newest

# ---- the control: a stamp that is always out of date, and one that never is ----

cp Makefile "$TMPDIR/aside"
sed -i 's/^stale = .*/stale = FORCE/' Makefile
! (up_to_date "control") >/dev/null || die "a stamp that is always out of date went unnoticed"
sed -i 's/^stale = .*/stale =/' Makefile
good_make -n all tests CFLAGS=-O1
[ -z "$(named)" ] || die "a stamp that is never out of date would go unnoticed"
cp "$TMPDIR/aside/Makefile" .

# ---- a library that is missing ----

printf '#!/bin/sh\n[ "$1" != --exists ] || { echo "No package found" && exit 1; }\n' >"$bin/pkg-config"
chmod +x "$bin/pkg-config"
! run_make all URING=1 || die "a missing library went unnoticed"
grep -q "^a library is missing: 'make deps' installs it" "$TMPDIR/log" || die "it is not said: $(cat "$TMPDIR/log")"
good_make help
good_make -n deps
good_make clean
[ ! -e "$out" ] || die "make clean left $out"
rm "$bin/pkg-config"

echo "$cases calls of make"
