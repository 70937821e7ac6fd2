#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# cat_doctor.sh - shardcat doctor on this machine: its driver of any age or none, io_uring refused,
# a small memlock limit
#
# Machines that this one is not are cat_doctor_machine.sh.
. "${ROOT:-$(dirname "$0")/../..}/tests/cli/lib.sh"
cp -r "$ROOT/format/golden/dataset" .
mkdir none folder
echo "no library" >none/libcuda.so.1 # in front of one that the machine may have

# finding NAME LINE...: that finding of the last `run`, as it stands on the screen
finding() {
	local name=$1 got want
	shift
	got=$(awk -v n="$name" '/^[^ ]/ {on = substr($0, 10, 15) == sprintf("%-15s", n)} on' out)
	want=$(printf '%s\n' "$@")
	[ "$got" = "$want" ] || {
		diff <(echo "$want") <(echo "$got") | sed 's/^/  /' >&2
		die "$name: other words were expected (<)"
	}
}
nothing="                        so: no batches can be delivered on a GPU; in host
                            memory everything works"
update="                        do: update NVIDIA's driver"

# ---- drivers ----

run 0 env LD_LIBRARY_PATH="$BUILD/tests/cuda/full" "$CAT" doctor
finding "GPU driver" "good     GPU driver     for CUDA 12.9, with all functions that libshard needs;" \
	"                        2 devices" \
	"                        so: batches can be delivered on a GPU"
finding "batch copies" "good     batch copies   the driver takes many copies in one call"
finding "GPU 1" "good     GPU 1          Fake GPU 1, 24.0 GiB, compute capability 8.6; the speed" \
	"                        of its PCIe link is unknown"
grep -q '^good     page-locking   works; 64.0 MiB took [0-9]*\.[0-9] ms$' out || die "page-locking: $(cat out)"
said "shardcat: no disk was examined; name a dataset, or a folder on the disk that will hold one"
cp out full.out
run 0 env LD_LIBRARY_PATH="$BUILD/tests/cuda/old" "$CAT" doctor
finding "GPU driver" "good     GPU driver     for CUDA 12.9, with all functions that libshard needs;" \
	"                        2 devices" \
	"                        so: batches can be delivered on a GPU"
run 0 env LD_LIBRARY_PATH="$BUILD/tests/cuda/bare" "$CAT" doctor
finding "GPU driver" "missing  GPU driver     libcuda.so.1 has no cuGetProcAddress: it is older than" \
	"                        CUDA 11.3" "$nothing" "$update"
! grep -qE '^[a-z]+ +page-locking ' out || die "page-locking without a driver"
run 0 env LD_LIBRARY_PATH="$PWD/none" "$CAT" doctor
grep -q '^missing  GPU driver ' out && ! grep -q 'with all functions that libshard needs' out ||
	die "no driver: $(cat out)"

# ---- io_uring, and who may lock how much ----

expect=("slower   io_uring       refused by a seccomp filter, as is usual in containers"
	"                        (EPERM)"
	"                        so: each thread makes one direct read at a time, which"
	"                            is slower"
	"                        do: use a seccomp profile that allows io_uring_setup,"
	"                            io_uring_enter and io_uring_register")
code=0
"$BUILD/tests/cli/prog_no_uring" 1 "$CAT" doctor >out 2>err || code=$?
if [ $code = 0 ]; then
	finding io_uring "${expect[@]}"
	run 0 "$BUILD/tests/cli/prog_no_uring" 38 "$CAT" doctor
	finding io_uring "slower   io_uring       refused by a seccomp filter, as is usual in containers" \
		"                        (ENOSYS)" "${expect[@]:2}"
else
	[ $code = 77 ] || die "exit code $code without io_uring: $(cat err)"
fi

# low COMMAND...: as nobody, who may lock 64 KiB; with OLD=setarch --uname-2.6 on an old kernel.
# The last to execute is setpriv, which can enter a home that nobody else may enter.
low() {
	(
		ulimit -l 64 || exit
		if [ "$(id -u)" = 0 ]; then
			${OLD-} setpriv --reuid=65534 --regid=65534 --clear-groups "$@"
		else
			${OLD-} "$@"
		fi
	)
}
run 0 low "$CAT" doctor
finding memlock "good     memlock        64.0 KiB may be locked" \
	"                        so: enough: neither io_uring nor NVIDIA's driver counts" \
	"                            what it locks against it"
! grep -q '^good     io_uring ' full.out || grep -q '^good     io_uring ' out ||
	die "nobody gets no io_uring: $(cat out)"
if setarch --uname-2.6 true 2>/dev/null; then # the kernel says that it is an old one
	OLD="setarch --uname-2.6" run 0 low "$CAT" doctor
	finding memlock "slower   memlock        64.0 KiB may be locked" \
		"                        so: before Linux 5.12 io_uring's rings count against" \
		"                            it, and may be refused" \
		"                        do: ulimit -l unlimited (docker run --ulimit" \
		"                            memlock=-1; systemd: LimitMEMLOCK=infinity)"
fi

# ---- disks ----

run 0 "$CAT" doctor dataset
grep -q '^good     dataset        56.0 KiB in 2 shards; [0-2] of 2 examined lies\? in memory$' out ||
	die "dataset: $(cat out)"
grep -q '^[a-z]*  *disk   ' out || die "no disk: $(cat out)"
count() { grep -c "^$1  *[^ ]" out; }
said "shardcat: $(grep -c '^[a-z]' out) findings: $(count good) good, $(count slower) slower, \
$(count missing) missing, $(count unknown) unknown"
run 0 "$CAT" doctor folder
! grep -q ' dataset ' out || die "a folder is no dataset: $(cat out)"
[ -z "$(ls -A folder)" ] || die "something was left behind"
cp dataset/00000.shard folder/x
chmod 500 folder
run 0 "$CAT" doctor folder/x
grep -q '  disk   ' out || die "a file has a disk, too: $(cat out)"
rm -f folder/x
run 0 powerless "$CAT" doctor folder
type=$(stat -f -c %T .)
[ "$type" = tmpfs ] || grep -q '^unknown  disk ' out ||
	die "nothing can be tried there: $(cat out)" # there nothing has to be
[ "$(findmnt -n -o FSTYPE -T .)" != ext4 ] ||
	finding disk "unknown  disk           ext4; no shard is in this folder, and no file can be" \
		"                        made in it: Permission denied" \
		"                        do: name a dataset, or a file on that disk"
run 3 "$CAT" doctor nowhere
said "shardcat: nowhere: cannot be looked at: No such file or directory"
echo garbage >folder.manifest && mkdir broken && cp folder.manifest broken/dataset.manifest
run 1 "$CAT" doctor broken
grep -q '^shardcat: broken/dataset.manifest: ' err || die "a broken manifest: $(cat err)"

# ---- forms ----

run 0 env LD_LIBRARY_PATH="$BUILD/tests/cuda/full" "$CAT" doctor -q dataset
! grep -q '^good' out || die "-q leaves out what is good"
[ ! -s err ] || die "-q says nothing else: $(cat err)"
run 0 env LD_LIBRARY_PATH="$BUILD/tests/cuda/full" "$CAT" doctor --json dataset
cp out all.json
[ "$(json all.json '[f["name"] for f in d["findings"]][-6:]')" = \
	"['GPU driver', 'batch copies', 'GPU 0', 'GPU 1', 'page-locking', 'page cache']" ] ||
	die "names: $(cat out)"
[ "$(json all.json '{f["name"]: f for f in d["findings"]}["dataset"]["facts"]["data_bytes"]')" = 57344 ] ||
	die "facts: $(cat out)"
[ "$(json all.json 'd["findings"][-2]["facts"]["tried_bytes"]')" = $((64 << 20)) ] || die "facts: $(cat out)"
[ "$(json all.json 'all(set(f) == {"name", "verdict", "found", "so", "advice", "facts"} for f in d["findings"])')" = \
	True ] || die "keys: $(cat out)"
[ "$(json all.json '{f["verdict"] for f in d["findings"]} <= {"good", "slower", "missing", "unknown"}')" = True ] ||
	die "verdicts: $(cat out)"
run 0 env LD_LIBRARY_PATH="$BUILD/tests/cuda/full" "$CAT" doctor dataset
[ "$(wc -L <out)" -le 79 ] || die "wider than a screen: $(cat out)"
[ "$(json all.json 'len(d["findings"])')" = "$(grep -c '^[a-z]' out)" ] || die "text and JSON differ"
echo "$(grep -c '^[a-z]' out) findings"
