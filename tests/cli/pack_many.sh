#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/cli/pack_many.sh - 100,000 inputs and more are planned in little memory, and the plan is
# that of plain memory
#
# The twin is a shardpack whose shelf has no files.  Its plans must be the same, and it must fail
# within the limit, or the limit proves nothing.
# TIMEOUT: 600
# TAKES: 40
# shellcheck disable=SC1091
. "$ROOT/tests/cli/lib.sh"

need_pillow
"$PYTHON" - <<'EOF2'
import io, os, tarfile
from PIL import Image
N, CLASSES = 100_000, 100
out = io.BytesIO()
Image.new("RGB", (8, 8), (9, 8, 7)).save(out, "PNG")
png = out.getvalue()
for i in range(10):  # a file has at most 65,000 names
    with open(f"original{i}", "wb") as f:
        f.write(png)
names = [f"class_{i % CLASSES:02}/image_{i * 7919 % N:06}.png" for i in range(N)]
for c in range(CLASSES):
    os.makedirs(f"src/class_{c:02}")
for i, name in enumerate(names):
    os.link(f"original{i % 10}", f"src/{name}")
with open("t.csv", "w") as t, open("l.csv", "w") as l, open("list", "w") as s:
    t.write("path,label,caption\n")
    l.write("path,label\n")
    for i, name in enumerate(names):
        t.write(f"src/{name},name {i * 31 % CLASSES},a photograph of number {i} of many things\n")
        l.write(f"{name},name {i * 31 % CLASSES}\n")
        s.write(f"src/{name}\n")
with tarfile.open("t.tar", "w") as tar:
    for name in names:
        info = tarfile.TarInfo(name)
        info.size = len(png)
        tar.addfile(info, io.BytesIO(png))
with tarfile.open("t.tar") as tar, open("e.csv", "w") as e:
    e.write("path,offset,bytes,label\n")
    for m in tar:
        e.write(f"t.tar,{m.offset_data},{m.size},{m.name[6:8]}\n")
EOF2

# many OUT ARGUMENTS...: plan so
many() {
	local out=$1
	shift
	rm -rf "$out"
	"$PACK" plan "$@" -o "$out" -q <list 2>err
}

# Plain memory of the program and of its libraries, of which libavif brings 2 MiB.  The pages of its
# files do not count, as the system can drop them.
small=30
plans=0
# as_in_memory ARGUMENTS...: the plan, within the limit, is that of plain memory
as_in_memory() {
	plans=$((plans + 1))
	(ulimit -d $((small << 10)) && many on_shelf "$@") || die "not within $small MiB: $* $(cat err)"
	(PACK=$PWD/broken && many plain "$@") || die "failed: $* $(cat err)"
	cmp on_shelf/.shardpack/plan plain/.shardpack/plan
	cmp on_shelf/.shardpack/sources plain/.shardpack/sources
}

# little_memory ARGUMENTS...: the same, and plain memory has no room within the limit
little_memory() {
	as_in_memory "$@"
	if (PACK=$PWD/broken && ulimit -d $((small << 10)) && many plain "$@"); then
		die "plain memory has room within $small MiB, so the limit proves nothing: $*"
	fi
	grep -q "out of memory" err || die "failed for another reason: $* $(cat err)"
}
break_pack shelf.c 's/> SHELF_MEMORY_BYTES/> SIZE_MAX \/ 8/'

little_memory images t.csv --field caption:kind=text,max=64 --crop 8
little_memory images - --crop 8 # a list on standard input
as_in_memory images e.csv --extents --crop 8
little_memory images src --labels l.csv --crop 8
as_in_memory images src --label-regex '_([0-9]*)/' --crop 8
as_in_memory images t.tar --crop 8

# Documents, of which a plan has each; seal reads that plan.
"$PYTHON" -c 'import sys; sys.stdout.buffer.write(b"\1\0\2\0\0\0" * 700_000)' >documents.bin
little_memory tokens documents.bin --dtype u16 --seq-len 3 --documents 0
( # within the limit, too
	ulimit -d $((small << 10))
	run 5 "$PACK" seal on_shelf
)
grep -q "1 of 1 shard is not there yet" err || die "$(cat err)"

# All of it in one class: a list is longest there.
mkdir one && mv src one/all
many one_plan images one --crop 8 || die "$(cat err)"
grep -q '^inputs 100000$' one_plan/.shardpack/plan || die "not all inputs"
grep '^input ' one_plan/.shardpack/plan | cut -d ' ' -f 5 | LC_ALL=C sort -c || die "not in byte order"

# A disk without room is one sentence, before anything is written.
run 3 "$PACK" plan images t.csv --crop 8 -o no --field caption:kind=text,max=64 -q --spool /proc
grep -q "^shardpack: /proc: no room for .*/t.csv, after .*: No such file or directory; choose another folder with --spool DIR$" err || die "$(cat err)"
[ ! -e no ] || die "something was written"
echo "$plans plans of 100,000 inputs or more within $small MiB of memory, as plain memory makes them"
