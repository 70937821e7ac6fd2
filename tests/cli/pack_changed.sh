#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/cli/pack_changed.sh - a source that changes between plan, build, resume and a later run ends
# it with exit code 5 and its name, whether its new time is later or earlier; chmod is no change
# shellcheck disable=SC1091
. "$ROOT/tests/cli/lib.sh"

make_sources
mkdir cifar mnist
head -c $((40 * 3073)) /dev/zero >cifar/test_batch.bin
"$PYTHON" - <<'EOF'
import struct
open("mnist/t10k-images-idx3-ubyte", "wb").write(struct.pack(">4I", 2051, 40, 28, 28) + bytes(40 * 784))
open("mnist/t10k-labels-idx1-ubyte", "wb").write(struct.pack(">2I", 2049, 40) + bytes(40))
import tarfile
with open("extents.csv", "w") as f:
    f.write("path,offset,bytes,label\n")
    for m in tarfile.open("images.tar").getmembers():
        if m.isfile():
            f.write("images.tar,%d,%d,1\n" % (m.offset_data, m.size))
EOF
gzip -1 --no-name <images.tar >packed.tar.gz
"$PYTHON" -c 'import shutil; shutil.make_archive("images", "zip", "src")'
cases=0

# rewritten FILE NS: other bytes of the same size, written so many nanoseconds later
rewritten() {
	"$PYTHON" - "$@" <<'EOF'
import os, sys
before = os.stat(sys.argv[1]).st_mtime_ns
with open(sys.argv[1], "r+b") as f:
	data = f.read()
	at = len(data) - 1
	if data[:2] == b"\x1f\x8b":
		at = 5 # a gzip's time
	elif data[:2] == b"PK":
		at = data.index(b"PK\x01\x02") + 12 # that of a member
	elif b"\xff\xd9" in data:
		at = data.rindex(b"\xff\xd9") - 3
	f.seek(at)
	f.write(bytes([data[at] ^ 1]))
os.utime(sys.argv[1], ns=(before, before + int(sys.argv[2])))
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
	for ns in 1 -1; do
		# Between two parts.  Another mode is no change.
		run 0 "$PACK" plan "${command[@]}" -o ds -q
		run 0 "$PACK" build ds --part 0/3 -q
		chmod o-r "$file"
		run 0 "$PACK" build ds --part 1/3 -q
		rewritten "$file" $ns
		run 5 "$PACK" build ds
		grep -q "/$name: changed since the plan was made: ${time%;*}" err || die "$file: $(cat err)"
		grep -q "or remove ds and begin\|as it is, $again" err || die "$file: $(cat err)"
		run 5 "$PACK" plan "${command[@]}" -o ds
		grep -q "/$name: changed since the plan was made: $time, $again" err || die "$file: $(cat err)"
		run 5 "$PACK" "${command[@]}" -o ds
		grep -q "/$name: changed since the plan was made: $time, pack everything again with --replace; if only" err ||
			die "$file: $(cat err)"
		[ ! -e ds/dataset.manifest ] || die "$file: a mixed dataset"
		# --replace takes it as it is, and leaves nothing of before.
		run 0 "$PACK" "${command[@]}" -o whole -q
		run 0 "$PACK" "${command[@]}" -o ds --replace --trust-names -q
		same whole ds
		# Finished: the sources are the same, then one is not.
		chmod o+r "$file"
		run 0 "$PACK" "${command[@]}" -o ds
		grep -q "is there already (same names, sizes, times and options)" err || die "$file: $(cat err)"
		run 0 "$PACK" "${command[@]}" -o ds --dry-run
		rewritten "$file" $ns
		for option in "" --dry-run; do
			run 5 "$PACK" "${command[@]}" -o ds $option
			grep -q "/$name: changed since ds was made: $time, pack everything again with --replace; if only its" err ||
				die "$file: $(cat err)"
		done
		same whole ds
		run 0 "$PACK" "${command[@]}" -o ds --replace -q
		cp -p kept "$file"
		run 0 "$PACK" "${command[@]}" -o ds --replace -q
		rm -rf ds whole
	done
	cases=$((cases + 1))
}

pixels=(--resize 16 --crop 16 --accept warnings)
changes label.npy array image.npy label.npy
changes records.bin raw records.bin --schema 'x:u8[16]'
changes tokens.bin tokens tokens.bin --seq-len 8 --dtype u16
changes cifar/test_batch.bin cifar cifar --split test
changes mnist/t10k-labels-idx1-ubyte mnist mnist --split test
changes images.tar images images.tar "${pixels[@]}"
changes images.tar images extents.csv --extents "${pixels[@]}"
changes packed.tar.gz images packed.tar.gz "${pixels[@]}"
changes images.zip images images.zip "${pixels[@]}"
# Files of their own: one that the last part reads.
last=$(find src -type f | sort | sed -n 24p)
changes "$last" images src "${pixels[@]}"
changes "$last" images images.csv "${pixels[@]}"
changes "$last" images images.csv "${pixels[@]}" --field second:kind=image,crop=8

# ---- a kill half way, then other pictures of the same size ----

run 0 "$PACK" images src -o whole "${pixels[@]}" --shard-records 4 -q
run 0 "$PACK" plan images src -o ds "${pixels[@]}" --shard-records 4 -q
run 0 "$PACK" build ds --part 1/3 -q
cp -rp src fresh
find src -type f | while read -r f; do rewritten "$f" 1; done
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
	static int opened; /* for each record that has it */
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
for nth in 1 2; do
	command=(images src -o ds "${pixels[@]}" --order source -j1)
	[ $nth = 1 ] || command=(images images.csv -o ds "${pixels[@]}" --order source -j1 --field second:kind=image,crop=8)
	run 5 "${late[@]}" NTH=$nth "$PACK" "${command[@]}"
	grep -q "/${first#src/}: changed while the dataset was built: written 20.* when it was read, 20.* now" err ||
		die "open $nth: $(cat err)"
	[ ! -e ds/00000.shard ] || die "open $nth: published"
	run 0 "${late[@]}" NTH=$nth "$PACK" "${command[@]}" --trust-names -q
	rm -rf ds
done

# ---- a file of many inputs that is written in the middle of a run, which ends before the next shard ----

in_the_middle() { # COMMAND...
	local pid code
	for _ in $(seq 50); do
		rm -rf ds
		"$PACK" "$@" -o ds -j1 -q >out 2>err </dev/null &
		pid=$!
		until [ -e ds/00000.shard ] || ! kill -0 $pid 2>/dev/null; do :; done
		kill -STOP $pid 2>/dev/null || true
		rewritten records.bin 1
		kill -CONT $pid 2>/dev/null || true
		code=0
		wait $pid || code=$?
		[ "$code" = 0 ] || break # else it had ended before
	done
	[ "$code" = 5 ] || die "exit code $code: $(cat err)"
	grep -q "/records.bin: changed while it was read; when nothing writes to it any more, " err || die "$(cat err)"
	[ ! -e ds/dataset.manifest ] || die "a mixed dataset"
	cases=$((cases + 1))
}
"$PYTHON" -c 'import numpy; numpy.zeros(1 << 22, "u1").tofile("records.bin")'
in_the_middle raw records.bin --schema 'x:u8[16]' --shard-records 256
in_the_middle raw records.bin --schema 'x:u8[16]' --shard-records 256 --trust-names

# ---- other bytes under the same size and time: a shard that is built a second time must be the same ----

"$PYTHON" -c 'import numpy; numpy.save("label.npy", numpy.arange(40, dtype="i8"))'
rm -rf ds && run 0 "$PACK" plan array label.npy -o ds --shard-records 10 --order source -q
run 0 "$PACK" build ds -q
rm ds/00003.shard
cp -p label.npy kept
rewritten label.npy 0
run 5 "$PACK" build ds
said "shardpack: ds/00003.shard: has other bytes than when it was built before, so a source changed \
meanwhile; remove this file and restore the source as it was then, or remove ds and begin again with \`shardpack plan\`"
run 5 "$PACK" seal ds
rm ds/00003.shard
cp -p kept label.npy
run 0 "$PACK" build ds -q
run 0 "$PACK" seal ds -q

# ---- copies have other times, and the dataset is the same ----

rm -rf src && mv fresh src
cp -r src copy && find copy -type f -exec touch -d 2020-02-02 {} +
run 0 "$PACK" plan images src -o cluster "${pixels[@]}" --shard-records 4 -q
run 0 "$PACK" build cluster --part 0/2 -q
run 5 "$PACK" build cluster --part 1/2 --source copy
run 0 "$PACK" build cluster --part 1/2 --source copy --trust-names -q
run 0 "$PACK" seal cluster -q
same whole cluster
run 0 "$PACK" images copy -o single "${pixels[@]}" --shard-records 4 -q
rm single/dataset.sources cluster/dataset.sources # which has the times
same single cluster

# ---- without its times nothing is known ----

unknown="is missing, cut, or of another release, so nothing says whether the sources are"
run 0 "$PACK" plan images src -o lost "${pixels[@]}" --shard-records 4 -q
rm lost/.shardpack/sources
run 5 "$PACK" build lost
said "shardpack: lost/.shardpack/sources: $unknown those of the plan; run the same \`shardpack plan\` command again \
to restore it, or add --trust-names"
run 0 "$PACK" plan images src -o lost "${pixels[@]}" --shard-records 4 -q
run 0 "$PACK" build lost --part 0/2 -q
cp lost/.shardpack/sources times
rm lost/.shardpack/sources
for release in "" "shardpack-sources 2" s; do # lost, begun by an earlier version, or cut
	[ ! "$release" ] || echo "$release" >lost/.shardpack/sources
	run 5 "$PACK" images src -o lost "${pixels[@]}" --shard-records 4
	said "shardpack: lost/.shardpack/sources: $unknown still those that were packed; if they are, add --trust-names; \
if not, pack everything again with --replace"
done
head -c -1 times >lost/.shardpack/sources
run 1 "$PACK" build lost
said "shardpack: lost/.shardpack/sources: damaged, or of another plan; if the sources are those that were packed, add --trust-names"
{ head -c 30 times && printf '0123' && tail -c +35 times; } >lost/.shardpack/sources
run 1 "$PACK" build lost
said "shardpack: lost/.shardpack/sources: damaged, or of another plan; if the sources are those that were packed, add --trust-names"
rm lost/.shardpack/sources
run 0 "$PACK" images src -o lost "${pixels[@]}" --shard-records 4 --trust-names -q

# Negative control: a shardpack that looks at sizes alone mixes two versions.
break_pack source_times.c 's/^\t\tif (then->file_ns\[i\] != now_ns)$/\t\tif (false \&\& now_ns)/'
rm -rf ds && "$PYTHON" -c 'import numpy; numpy.save("label.npy", numpy.zeros(40, "i8"))'
run 0 ./broken plan array image.npy label.npy -o ds --shard-records 10 --order source -q
run 0 ./broken build ds --part 0/2 -q
"$PYTHON" -c 'import numpy; numpy.save("label.npy", numpy.ones(40, "i8"))'
run 0 ./broken build ds -q && run 0 ./broken seal ds -q
run 0 "$CAT" list ds
[ "$(cut -f2 out | sort -u | wc -l)" -ge 2 ] || die "the control does not mix: $(cat out)"
echo "$cases sources that change at five moments, to later and earlier times; kills, copies, lost times; the control mixes"
