#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/cli/pack_changed.sh - a source that changes between plan, build, resume and a later run ends
# it with exit code 5 and its name; copies with other times make the same dataset
# shellcheck disable=SC1091
. "$ROOT/tests/cli/lib.sh"

make_sources
mkdir cifar
head -c $((40 * 3073)) /dev/zero >cifar/test_batch.bin
cases=0

# rewritten FILE: other bytes of the same size, written later
rewritten() {
	"$PYTHON" - "$1" <<'EOF'
import os, sys
with open(sys.argv[1], "r+b") as f:
	data = f.read()
	at = data.rindex(b"\xff\xd9") - 3 if b"\xff\xd9" in data else len(data) - 1
	f.seek(at)
	f.write(bytes([data[at] ^ 1]))
os.utime(sys.argv[1], ns=(os.stat(sys.argv[1]).st_atime_ns, os.stat(sys.argv[1]).st_mtime_ns + 1))
EOF
}

# changes FILE COMMAND...: rewritten at each moment, it stops what comes next
changes() {
	local file=$1 name=${1##*/} time again
	shift
	local command=("$@" --shard-records 10 --order source)
	time="written 20.* then, 20.* now; to pack it as it is"
	again="remove ds and begin again with .shardpack plan.; if only its time differs"
	rm -rf ds kept && cp -p "$file" kept
	# Between the plan and a part, and between two parts.
	run 0 "$PACK" plan "${command[@]}" -o ds -q
	run 0 "$PACK" build ds --part 0/2 -q
	rewritten "$file"
	run 5 "$PACK" build ds
	grep -q "/$name: changed since the plan was made: ${time%;*}" err || die "$file: $(cat err)"
	grep -q "or remove ds and begin\|as it is, $again" err || die "$file: $(cat err)"
	run 5 "$PACK" plan "${command[@]}" -o ds
	grep -q "/$name: changed since the plan was made: $time, $again" err || die "$file: $(cat err)"
	run 5 "$PACK" "${command[@]}" -o ds
	grep -q "/$name: changed since the plan was made: $time, pack all anew with --replace; if only" err ||
		die "$file: $(cat err)"
	[ ! -e ds/dataset.manifest ] || die "$file: a mixed dataset"
	# --replace takes it as it is, and leaves nothing of before.
	run 0 "$PACK" "${command[@]}" -o whole -q
	run 0 "$PACK" "${command[@]}" -o ds --replace -q
	same whole ds
	# Finished: the sources are the same, then one is not.
	run 0 "$PACK" "${command[@]}" -o ds
	grep -q "is there already (same names, sizes, options and fingerprints)" err || die "$file: $(cat err)"
	run 0 "$PACK" "${command[@]}" -o ds --dry-run
	rewritten "$file"
	for option in "" --dry-run --trust-names; do
		run 5 "$PACK" "${command[@]}" -o ds $option
		grep -q "/$name: has other bytes than the file of which the dataset in ds was made; .* --replace" err ||
			die "$file: $(cat err)"
	done
	same whole ds
	# Without fingerprints times tell.  An older file put in its place is newer there.
	rm ds/dataset.sources
	for dry in "" --dry-run; do
		run 5 "$PACK" "${command[@]}" -o ds $dry
		grep -q "/$name: is newer than the dataset in ds: .*; to pack it as it is, pack all anew with --replace" err ||
			die "$file: $(cat err)"
	done
	cp -p "$file" other && touch -d 2001-01-01 other && mv other "$file"
	run 5 "$PACK" "${command[@]}" -o ds
	run 0 "$PACK" "${command[@]}" -o ds --trust-names
	grep -q "is there already (.*; it has no dataset.sources, so others of these .* are not noticed)" err ||
		die "$file: $(cat err)"
	run 0 "$PACK" "${command[@]}" -o ds --replace -q
	cp -p kept "$file"
	run 0 "$PACK" "${command[@]}" -o ds --replace -q
	rm -rf ds whole
	cases=$((cases + 1))
}

pixels=(--resize 16 --crop 16 --accept warnings)
changes label.npy array image.npy label.npy
changes records.bin raw records.bin --schema 'x:u8[16]'
changes tokens.bin tokens tokens.bin --seq-len 8 --dtype u16
changes cifar/test_batch.bin cifar cifar --split test
changes images.tar images images.tar "${pixels[@]}"
# Files of their own: one that the second part reads.
last=$(find src -type f | sort | sed -n 15p)
changes "$last" images src "${pixels[@]}"
changes "$last" images images.csv "${pixels[@]}"
changes "$last" images images.csv "${pixels[@]}" --field second:kind=image,crop=8

# ---- other files under the same names, all older than a finished dataset ----

tick() { # the clock of files may stand still for some milliseconds
	until [ "$(find probe -newer ds/00000.shard)" ]; do touch probe; done
}
newer() { # newer CODE COMMAND...: times say so, and fingerprints end with that code
	local code=$1
	shift
	for trust in "" --trust-names; do
		run "$code" "$PACK" "$@" -o ds $trust
		grep -q "has other bytes than the file of which the dataset in ds was made\|options and fingerprints" err ||
			die "$*: $(cat err)"
	done
	rm ds/dataset.sources
	run 5 "$PACK" "$@" -o ds
	grep -q ": is newer than the dataset in ds: it was written or put there 20" err || die "$*: $(cat err)"
	run 0 "$PACK" "$@" -o ds --trust-names -q
	rm -rf ds
	renamed=$((renamed + 1))
}
renamed=0
: >probe
for folder in swap other; do
	for i in 0/a 0/b 0/c 1/a 1/b 1/c; do
		mkdir -p $folder/${i%/*}
		{ printf 'P6 16 16 255\n' && head -c 768 /dev/urandom; } >$folder/$i.ppm
	done
done
run 0 "$PACK" images swap -o ds "${pixels[@]}" -q
tick && mv swap/0 swap/x && mv swap/1 swap/0 && mv swap/x swap/1 # classes
newer 5 images swap "${pixels[@]}"
run 0 "$PACK" images swap -o ds "${pixels[@]}" -q
tick && mv swap old && mv other swap # the source itself
newer 5 images swap "${pixels[@]}"
ln -s swap now
run 0 "$PACK" images now -o ds "${pixels[@]}" -q
tick && ln -sfn old now
newer 5 images now "${pixels[@]}"
mkdir links && ln -s ../tokens.bin links/a.bin && ln -s ../links links/below && cp -p tokens.bin other.bin
for at in a.bin below/a.bin; do
	run 0 "$PACK" tokens links/$at -o ds --seq-len 8 --dtype u16 -q
	tick
	if [ $at = a.bin ]; then ln -sfn ../other.bin links/a.bin; else ln -sfn ../links links/below; fi
	newer 0 tokens links/$at --seq-len 8 --dtype u16
done
# A file beside the sources that is no source changes nothing.
run 0 "$PACK" images swap -o ds "${pixels[@]}" -q
touch swap/README swap/0/README && rm swap/README
run 0 "$PACK" images swap -o ds "${pixels[@]}"
rm -rf ds

# ---- a kill half way, then other pictures of the same size ----

run 0 "$PACK" images src -o whole "${pixels[@]}" --shard-records 4 -q
run 0 "$PACK" plan images src -o ds "${pixels[@]}" --shard-records 4 -q
run 0 "$PACK" build ds --part 1/3 -q
cp -rp src fresh
find src -type f | while read -r f; do rewritten "$f"; done
run 5 "$PACK" images src -o ds "${pixels[@]}" --shard-records 4
run 5 "$PACK" build ds
[ "$(tail -n 1 err)" != "" ] && grep -q "inputs changed since the plan was made; shards that need" err || die "$(cat err)"

# ---- a file that is written after it was read, while others of its shard are read ----

cat >late.c <<'C'
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
static int late(const char *call, int dir, const char *path, int flags, unsigned mode)
{
	int (*real)(int, const char *, int, ...) = (int (*)(int, const char *, int, ...))dlsym(RTLD_NEXT, call);
	size_t n = strlen(path), k = strlen(getenv("LAST"));
	static int opened; /* once for its fingerprint, and then for its record */
	if (n >= k && !strcmp(path + n - k, getenv("LAST")) && ++opened == atoi(getenv("NTH")))
		utimensat(AT_FDCWD, getenv("FIRST"), 0, 0);
	return real(dir, path, flags, mode);
}
#define WRAP(name)                                               \
	int name(int dir, const char *path, int flags, ...)      \
	{                                                        \
		va_list ap;                                      \
		unsigned mode;                                   \
		va_start(ap, flags);                             \
		mode = va_arg(ap, unsigned);                     \
		va_end(ap);                                      \
		return late(#name, dir, path, flags, mode);      \
	}
WRAP(openat)
WRAP(openat64)
C
gcc -shared -fPIC late.c -o late.so -ldl
rm -rf ds src && make_images src 24 2
first=$(find src -type f | sort | head -n 1) last=$(find src -type f | sort | tail -n 1)
late=(env FIRST="$first" LAST="${last#src/}" LD_PRELOAD="$PWD/late.so:${LD_PRELOAD-}"
	ASAN_OPTIONS="${ASAN_OPTIONS-}:verify_asan_link_order=0")
for nth in 2 3; do
	command=(images src -o ds "${pixels[@]}" --order source -j1)
	[ $nth = 2 ] || command=(images images.csv -o ds "${pixels[@]}" --order source -j1 --field second:kind=image,crop=8)
	run 5 "${late[@]}" NTH=$nth "$PACK" "${command[@]}"
	grep -q "/${first#src/}: changed while the dataset was built: written 20.* when it was read, 20.* now" err ||
		die "open $nth: $(cat err)"
	[ ! -e ds/00000.shard ] || die "open $nth: published"
	run 0 "${late[@]}" NTH=$nth "$PACK" "${command[@]}" --trust-names -q
	rm -rf ds
done

# ---- copies have other times, and the dataset is the same ----

rm -rf src && mv fresh src
cp -r src copy && find copy -type f -exec touch -d 2020-02-02 {} +
run 0 "$PACK" plan images src -o cluster "${pixels[@]}" --shard-records 4 -q
run 0 "$PACK" build cluster --part 0/2 -q
run 5 "$PACK" build cluster --part 1/2 --source copy
run 0 "$PACK" build cluster --part 1/2 --source copy --trust-names -q
run 0 "$PACK" seal cluster -q
run 0 "$PACK" images copy -o single "${pixels[@]}" --shard-records 4 -q
same single cluster

# ---- without its times nothing is known ----

run 0 "$PACK" plan images src -o lost "${pixels[@]}" --shard-records 4 -q
rm lost/.shardpack/sources
run 5 "$PACK" build lost
run 0 "$PACK" plan images src -o lost "${pixels[@]}" --shard-records 4 -q
run 0 "$PACK" build lost --part 0/2 -q
rm lost/.shardpack/sources
run 5 "$PACK" images src -o lost "${pixels[@]}" --shard-records 4
grep -q "lost/.shardpack/sources: is missing, and there are shards" err || die "$(cat err)"
head -c 70 /dev/zero >lost/.shardpack/sources
run 1 "$PACK" build lost
run 1 "$PACK" build lost --trust-names
rm lost/.shardpack/sources
run 0 "$PACK" images src -o lost "${pixels[@]}" --shard-records 4 --trust-names -q

# Negative control: a shardpack that looks at sizes alone mixes two versions.
break_pack origin_check.c 's/^\treturn .*written_ns == .*;$/\treturn then \&\& now \&\& slot + 1;/
	s/^\treturn !memcmp(then->print.*;$/\treturn true;/'
rm -rf ds && "$PYTHON" -c 'import numpy; numpy.save("label.npy", numpy.zeros(40, "i8"))'
run 0 ./broken plan array image.npy label.npy -o ds --shard-records 10 --order source -q
run 0 ./broken build ds --part 0/2 -q
"$PYTHON" -c 'import numpy; numpy.save("label.npy", numpy.ones(40, "i8"))'
run 0 ./broken build ds -q && run 0 ./broken seal ds -q
run 0 "$CAT" list ds
[ "$(cut -f2 out | sort -u | wc -l)" -ge 2 ] || die "the control does not mix: $(cat out)"
echo "$cases sources that change at five moments, $renamed under other names; kills, copies, times; the control mixes"
