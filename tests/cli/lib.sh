# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# tests/cli/lib.sh - what scripts that run the tools share; sourced, not run
#
# Sourcing it goes to the script's own empty folder.  `run` keeps what a command printed in the
# files out and err, for the checks that follow it.
set -euo pipefail
: "${ROOT:=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)}"
: "${BUILD:=$ROOT/build}" "${PYTHON:=/usr/bin/python3}"
cd "${TMPDIR:?tests/run.sh gives each test a folder of its own}"

PACK=$BUILD/bin/shardpack CAT=$BUILD/bin/shardcat PHOTOS=$ROOT/examples/photos
export PACK CAT PHOTOS LC_ALL=C NO_COLOR=1

die() {
	echo "$*" >&2
	exit 1
}

skip() {
	echo "$*"
	exit 77
}

# run CODE COMMAND...: it must end with that exit code
run() {
	local want=$1 got=0
	shift
	"$@" >out 2>err </dev/null || got=$?
	[ "$got" = "$want" ] || {
		cat out err >&2
		die "exit code $got instead of $want: $*"
	}
}

# The last `run` printed exactly this line on stderr.
said() {
	grep -qxF -- "$1" err || {
		sed 's/^/  /' err >&2
		die "this line was expected: $1"
	}
}

# ... and no other one.
said_only() {
	[ "$(cat err)" = "$1" ] || {
		sed 's/^/  /' err >&2
		die "this was expected, alone: $1"
	}
}

# The last `run` printed this line on stdout.
printed() {
	grep -qxF -- "$1" out || {
		sed 's/^/  /' out >&2
		die "this line was expected: $1"
	}
}

# refused CODE LINE ARGUMENT...: `shardpack VERB ARGUMENT... ARGS`, words that a script sets, ends
# with that code, says this one line alone and makes nothing.  Counted in n.
VERB=() ARGS=() n=0
refused() {
	local code=$1 line=$2
	shift 2
	run "$code" "$PACK" "${VERB[@]}" "$@" -o no "${ARGS[@]}"
	said_only "shardpack: $line"
	[ ! -e no ] || die "made for nothing: $*"
	n=$((n + 1))
}

# bad_input WHY ARGUMENT...: the same words, but an input alone is bad.  Exit 1, a warning that ends
# so, and nothing made.
bad_input() {
	local why=$1
	shift
	run 1 "$PACK" "${VERB[@]}" "$@" -o no "${ARGS[@]}"
	said_of_one "$why"
	[ ! -e no ] || die "made for nothing: $*"
	n=$((n + 1))
}

# The last `run` warned of an input with these words.
said_of_one() {
	[ "$(grep '^shardpack: warning: ' err | grep -cF -- ": $1")" != 0 ] || { # -c reads all, so the first can write
		sed 's/^/  /' err >&2
		die "a warning that ends so was expected: $1"
	}
}

# same DIR DIR: the same names with the same bytes, hidden ones included
same() {
	diff -r "$1" "$2" >&2 || die "$1 and $2 differ"
}

# alike DIR DIR: the same, made of files that may have other times
alike() {
	diff -r -x dataset.sources "$1" "$2" >&2 || die "$1 and $2 differ"
}

# contents DIR: every name in it, on one line
contents() {
	(cd "$1" && find . -mindepth 1 | sort | sed 's,^\./,,' | tr '\n' ' ' | sed 's/ $//')
}

# json FILE EXPRESSION: the value of a Python expression, with the document in d
json() {
	"$PYTHON" -c 'import json, sys
d = json.load(open(sys.argv[1]))
print(eval(sys.argv[2]))' "$1" "$2"
}

# small_source [N]: a folder of 5 or N photographs in each of two classes, at src
small_source() {
	mkdir -p src/a src/b
	cp "$PHOTOS"/train/cat/*_00[0-$((${1-5} - 1))].jpg src/a
	cp "$PHOTOS"/train/rocket/*_00[0-$((${1-5} - 1))].jpg src/b
}

# The odd ones, as one class, at odd.
odd_source() {
	mkdir -p odd/odd
	cp "$PHOTOS"/odd/* odd/odd
}

# make_images DIR COUNT [MORE]: generated images, see make_images.py
make_images() {
	"$PYTHON" "$ROOT/tests/cli/make_images.py" "$@"
}

# make_sources: sources of many kinds: src, images.tar, images.csv, *.npy, records.bin, tokens.bin
make_sources() {
	make_images src 24 2
	tar --sort=name -C src -cf images.tar .
	{ echo path,label,second && (find src -type f | sort | sed 's/.*/&,1,&/'); } >images.csv
	"$PYTHON" - <<'EOF'
import numpy
numpy.save("image.npy", numpy.zeros((40, 4, 4, 3), "u1"))
numpy.save("label.npy", numpy.zeros(40, "i8"))
numpy.arange(40 * 16, dtype="u1").tofile("records.bin")
(numpy.arange(40 * 17) % 5).astype("u2").tofile("tokens.bin")
EOF
}

# powerless COMMAND...: without root's power to read and write everything, so that modes count for
# root as well
powerless() {
	if [ "$(id -u)" = 0 ]; then
		setpriv --bounding-set=-dac_override,-dac_read_search "$@"
	else
		"$@"
	fi
}

# Where CI must not skip, a missing maker is a failure.
need_pillow() {
	local why="no Python with Pillow and NumPy (Debian: python3-pil python3-numpy)"
	"$PYTHON" -c 'import PIL, numpy' 2>/dev/null && return
	[ "${CI:-}" != true ] || die "$why"
	skip "$why"
}

# needs_part FILE LIBRARY: shardpack was built with that optional file, which needs a library
needs_part() {
	grep -q "/$1.o" "$BUILD/parts" && return
	[ "${CI:-}" != true ] || die "this shardpack was built without $2"
	skip "this shardpack was built without $2"
}

# --pixels of the Pillow that is here, as ${LIKE[@]}; for what is compared with its resize
pixels_of_pillow() {
	local name
	name=$(PYTHONPATH=$ROOT/tests/twin "$PYTHON" -c 'import pillow; print(pillow.PIXELS[pillow.pixels_of()])') ||
		die "cannot tell which pixels Pillow gives"
	LIKE=(--pixels "$name")
}

# The receipts of shards, in one file for each process.  Each ends with the line "end DIGEST".
pick_receipts() { # 1 SHARD FILE...: print those of the shard; with 0 those of all others
	awk -v want="$1" -v shard="$2" '/^receipt / { one = "" } { one = one $0 "\n" }
		/^shard / { mine = $2 == shard } /^end / && mine == want { printf "%s", one }' "${@:3}"
}
receipt() { # DIR SHARD: print it
	pick_receipts 1 "$2" "$1"/.shardpack/receipts-*
}
lose_receipt() { # DIR SHARD...: take them away
	local dir=$1 shard file
	shift
	for shard; do
		[ -n "$(receipt "$dir" "$shard")" ] || die "$dir: shard $shard has no receipt"
		for file in "$dir"/.shardpack/receipts-*; do
			pick_receipts 0 "$shard" "$file" >left
			cat left >"$file"
		done
	done
}
edit_receipt() { # DIR SHARD SED
	local one
	one=$(receipt "$1" "$2" | sed "$3")
	lose_receipt "$1" "$2"
	echo "$one" >>"$1/.shardpack/receipts-00000"
}

# link_pack OUT SOURCE FILE [FLAG]: OUT is shardpack with SOURCE in the place of that file of it
link_pack() {
	local objects=("$BUILD/tools/shardpack/manual.o") object san= library libraries=()
	case ${VARIANT-} in asan) san=-fsanitize=address,undefined ;; tsan) san=-fsanitize=thread ;; esac
	read -r CC object _ <"$BUILD/flags" # the compiler that made the objects
	[ "$CC" != ccache ] || CC=$object
	for object in $(tr ' ' '\n' <"$BUILD/parts" | grep -E '^tools/(shardpack|cli|common)/.*\.o$' | sort -u); do
		case $object in tools/shardpack/manual.o | "${3%.c}.o") continue ;; esac
		objects+=("$BUILD/$object")
	done
	for library in libjpeg libpng libwebp libwebpdemux jansson zlib libzstd liblz4 liburing libarchive libgif \
		libtiff-4 libavif; do
		! pkg-config --exists $library || libraries+=("$library")
	done
	# shellcheck disable=SC2046,SC2086 # words of flags
	(cd "$ROOT" && $CC -std=c11 -pthread -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -O1 $san ${4-} -Iinclude -I. \
		-o "$OLDPWD/$1" "$2" "${objects[@]}" "$BUILD/base.a" "$BUILD/libshard.a" \
		$(pkg-config --libs "${libraries[@]}") -ldl -lm)
}

# break_pack FILE SED: ./broken is shardpack with that file of it edited so, for tests of tests;
# "s/x/x/" changes nothing
break_pack() {
	local file
	file=$(cd "$ROOT" && find tools/shardpack tools/common -name "$1")
	sed "$2" "$ROOT/$file" >broken.c
	[ "$2" = s/x/x/ ] || ! cmp -s broken.c "$ROOT/$file" || die "this edits nothing: $2"
	link_pack broken "$PWD/broken.c" "$file"
}

# without_pack LIBRARY FILE: ./without is shardpack as a build without it, which that file is told
without_pack() {
	link_pack without "$ROOT/$2" "$2" "-DWITHOUT_$1"
}

# replan SED FROM TO: TO has the plan of FROM, edited so, with the digest of what it is now, there and
# in the times of its sources; "s/x/x/" changes nothing
replan() {
	mkdir -p "$3/.shardpack" && cp "$2/.shardpack/source" "$2/.shardpack/sources" "$3/.shardpack"
	sed "$1" "$2/.shardpack/plan" | head -n -1 >new
	[ "$1" = s/x/x/ ] || ! cmp -s new <(head -n -1 "$2/.shardpack/plan") || die "this edit changes nothing: $1"
	{ cat new && echo "end $(sha256sum <new | cut -d ' ' -f 1)"; } >"$3/.shardpack/plan"
	printf %b "$(sha256sum <new | cut -c 1-64 | sed 's/../\\x&/g')" |
		dd of="$3/.shardpack/sources" bs=1 seek=24 conv=notrunc status=none
}

# peak MIB COMMAND...: it may not have more than that in memory; the file peak says how much it had
peak() {
	local most=$1
	shift
	"$PYTHON" - "$@" <<'EOF' >peak || { cat err >&2 && die "failed: $*"; }
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stderr=open("err", "w"))
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024)
EOF
	echo "$(cat peak) MiB, at most $most: $*"
	[ "$(cat peak)" -le "$most" ] || die "too much"
}

# break_library NUMBER: ./broken is shardcat with a library that is wrong in one place.  Write
# broken.c first, whose BREAK is then NUMBER, and set wraps to the functions that it stands before.
break_library() {
	local san= objects=("$BUILD/tools/shardcat/manual.o") source cc work=$PWD
	case ${VARIANT-} in asan) san=-fsanitize=address,undefined ;; tsan) san=-fsanitize=thread ;; esac
	read -r cc _ <"$BUILD/flags" # the compiler that made the objects
	for source in $(cd "$ROOT" && find tools/shardcat tools/common -name '*.c'); do
		objects+=("$BUILD/${source%.c}.o")
	done
	# shellcheck disable=SC2046,SC2086 # words of flags and names
	(cd "$ROOT" && $cc -std=c11 -pthread -D_GNU_SOURCE -O1 -g $san -DBREAK="$1" -Iinclude -I. -o "$work/broken" \
		"$work/broken.c" \
		"${objects[@]}" $(sed "s,[^ ]* *,$BUILD/&,g" "$BUILD/objects") \
		$(printf ' -Wl,--wrap=%s' $wraps) \
		$(pkg-config --libs liblz4 libpng) $(pkg-config --silence-errors --libs liburing) -ldl -lm)
}

same_images() { # DIR DIR: the same pixels, whatever the names of their inputs; PYTHONPATH has tests/cli
	"$PYTHON" -c 'import records, sys
a, b = (records.read(folder)["image"] for folder in sys.argv[1:])
assert a.shape == b.shape, (a.shape, b.shape)
for i, (x, y) in enumerate(zip(a, b)):
    records.same(x, y, str(i))' "$@" || die "$1 and $2 have other pixels"
}
