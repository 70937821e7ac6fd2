#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# cat_doctor_machine.sh - shardcat doctor on machines of other kinds: their /proc and /sys lie over
# those of this one
#
# Each machine is a folder of files, mounted one by one in a namespace of the test's own; only a
# user namespace is needed.
. "${ROOT:-$(dirname "$0")/../..}/tests/cli/lib.sh"
unshare -Urm true 2>/dev/null || skip "no user namespaces here (unshare -Urm), so no other machine's /proc and /sys"

# file PATH TEXT: what that file says on the machine in the making
file() {
	mkdir -p "machine$(dirname "$1")"
	printf '%s\n' "$2" >"machine$1"
}

# on_machine COMMAND...: folders of sysfs that the machine has are its own; its other files lie over
# this machine's
on_machine() {
	unshare -Urm bash -euc '
		cd machine
		for dir in sys/bus/pci/devices sys/devices/system/node; do
			[ ! -d $dir ] || [ ! -d /$dir ] || mount --bind "$PWD/$dir" /$dir
		done
		find proc sys -type f ! -path "sys/bus/*" ! -path "sys/devices/*" | while read -r f; do
			[ ! -e "/$f" ] || mount --bind "$PWD/$f" "/$f"
		done
		cd ..
		exec "$@"' on_machine "$@"
}
n=0
# says LINE...: the last `run` printed these lines, one below the other
says() {
	local want
	want=$(printf '%s\n' "$@")
	case $(cat out) in
	*"$want"*) n=$((n + 1)) ;;
	*)
		sed 's/^/  /' out >&2
		die "these lines were expected: $want"
		;;
	esac
}
at=/sys/bus/pci/devices
export LD_LIBRARY_PATH=$BUILD/tests/cuda/full
[ -d $at ] && [ -d /sys/devices/system/node ] && [ -e /sys/kernel/mm/transparent_hugepage/enabled ] ||
	skip "this kernel has no PCI, NUMA or huge pages to speak of"

# ---- a server: two sockets, one GPU in a slot that is too short, huge pages off ----

file /sys/kernel/mm/transparent_hugepage/enabled "always madvise [never]"
file /proc/meminfo "MemTotal:       1056289124 kB
MemFree:        900000000 kB
MemAvailable:   104857600 kB
HugePages_Total:     512
HugePages_Free:      500
Hugepagesize:       2048 kB"
mkdir -p machine/sys/devices/system/node/{node0,node1,power}
for gpu in fa4e:ca fa4e:cb; do
	file $at/$gpu:00.0/vendor 0x10de
	file $at/$gpu:00.0/class 0x030200
	file $at/$gpu:00.0/current_link_speed "2.5 GT/s PCIe"
	file $at/$gpu:00.0/max_link_speed "32.0 GT/s PCIe"
	file $at/$gpu:00.0/current_link_width 16
	file $at/$gpu:00.0/max_link_width 16
	file $at/$gpu:00.0/numa_node 1
done
file $at/fa4e:cb:00.0/current_link_width 8
run 0 on_machine "$CAT" doctor
says "good     NUMA           2 nodes" \
	"                        so: memory, disks and GPUs of another node are further" \
	"                            away" \
	"                        do: keep each rank on the node of its GPU: numactl" \
	"                            --cpunodebind=N --membind=N"
says "good     memory         100.0 GiB of 1007.4 GiB available" \
	"                        so: datasets of up to 60.0 GiB are read through the" \
	"                            page cache and stay there; larger ones are read" \
	"                            past it"
says "slower   huge pages     transparent ones: never; 512 in the hugetlb pool, which" \
	"                        is not used" \
	"                        so: batches lie in small pages: direct reads and" \
	"                            page-locking take longer" \
	"                        do: echo madvise | sudo tee" \
	"                            /sys/kernel/mm/transparent_hugepage/enabled"
says "good     GPU 0          Fake GPU 0, 24.0 GiB, compute capability 8.6; PCIe 32.0" \
	"                        GT/s x16" \
	"                        so: copies to it are at most 63.0 GB/s" \
	"                        do: run its rank on the same node: numactl" \
	"                            --cpunodebind=1 --membind=1"
says "slower   GPU 1          Fake GPU 1, 24.0 GiB, compute capability 8.6; PCIe 32.0" \
	"                        GT/s x8" \
	"                        so: copies to it are at most 31.5 GB/s" \
	"                        do: it supports 16 lanes, for 63.0 GB/s: try another" \
	"                            slot, without a riser card"
run 0 on_machine "$CAT" doctor --json
[ "$(json out '[f for f in d["findings"] if f["name"] == "GPU 1"][0]["facts"]["link_width"]')" = 8 ] ||
	die "facts: $(cat out)"

# ---- the GPUs are there, the driver is not ----

mkdir none && echo "no library" >none/libcuda.so.1
LD_LIBRARY_PATH=$PWD/none run 0 on_machine "$CAT" doctor
grep -q '^missing  GPU driver     no GPU driver:' out || die "a GPU without a driver: $(cat out)"
says "                        so: no batches can be delivered on a GPU; in host" \
	"                            memory everything works" \
	"                        do: install NVIDIA's driver, or in a container pass in" \
	"                            the host's driver libraries"
LD_LIBRARY_PATH=$PWD/none run 0 on_machine "$CAT" doctor --json
[ "$(json out 'd["findings"][-1]["facts"]["gpus_on_bus"]')" = 2 ] || die "GPUs on the bus: $(cat out)"
rm -r machine"$at"/*
LD_LIBRARY_PATH=$PWD/none run 0 on_machine "$CAT" doctor
says "missing  GPU driver     none, and no NVIDIA GPU on the PCI bus" \
	"                        so: no batches can be delivered on a GPU; in host" \
	"                            memory everything works" \
	"                        do: nothing, if this machine needs no GPU"

# ---- a chroot without /proc: the CPU itself is asked what it has ----

grep '^[a-z]* *CPUs ' out >with_proc
run 0 on_machine bash -euc 'mount -t tmpfs x /proc && exec "$@"' no_proc "$CAT" doctor
# A control group may still have a limit here, as /sys says.
grep -qE '^(unknown  memory         the system does not say|good     memory         [0-9.]+ [KMGT]iB available$)' out ||
	die "memory without /proc: $(cat out)"
grep '^[a-z]* *CPUs ' out | cmp with_proc - || die "CPUs without /proc: $(cat out)"
! grep -q ' CPUs.*AVX2' with_proc || ! grep -q 'portable code' out || die "a CPU with AVX2 is said to have none: $(cat out)"

# ---- a chroot without /sys ----

run 0 on_machine bash -euc 'mount -t tmpfs x /sys && exec "$@"' no_sys "$CAT" doctor
says "unknown  huge pages     the system does not say whether it has transparent" \
	"                        ones; 512 in the hugetlb pool, which is not used" \
	"                        do: mount /sys"
! grep -q NUMA out || die "NUMA without /sys: $(cat out)"

# ---- io_uring switched off for all ----

if [ -e /proc/sys/kernel/io_uring_disabled ]; then
	file /proc/sys/kernel/io_uring_disabled 2
	code=0
	on_machine "$BUILD/tests/cli/prog_no_uring" 1 "$CAT" doctor >out 2>err || code=$?
	if [ $code = 0 ]; then
		says "slower   io_uring       switched off: the sysctl kernel.io_uring_disabled is 2" \
			"                        so: each thread makes one direct read at a time, which" \
			"                            is slower" \
			"                        do: sudo sysctl kernel.io_uring_disabled=0"
	else
		[ $code = 77 ] || die "exit code $code: $(cat err)"
	fi
fi

# ---- a disk that is memory, and a small machine with a larger dataset ----

rm -r machine && mkdir disk
file /proc/meminfo "MemTotal:       100 kB
MemAvailable:   90 kB"
cp -r "$ROOT/format/golden/dataset" .
run 0 on_machine bash -euc 'mount -t tmpfs x disk && exec "$@"' in_memory "$CAT" doctor disk
says "good     disk           tmpfs" \
	"                        so: files there lie in memory: no disk is read, but" \
	"                            other programs cannot use that memory"
says "good     memory         90.0 KiB of 100.0 KiB available" \
	"                        so: datasets of up to 54.0 KiB are read through the" \
	"                            page cache and stay there; larger ones are read" \
	"                            past it"
# Shards that do not lie in memory: of a file system that drops them, which not every one does.
sync dataset/* && dd if=dataset/00000.shard iflag=nocache count=0 2>/dev/null &&
	dd if=dataset/00001.shard iflag=nocache count=0 2>/dev/null
run 0 on_machine "$CAT" doctor dataset
if grep -q '0 of 2 examined lie in memory' out; then
	says "slower   dataset        56.0 KiB in 2 shards; 0 of 2 examined lie in memory" \
		"                        so: it is larger than the 54.0 KiB that may lie in" \
		"                            memory: each epoch reads it from the disk" \
		"                        do: nothing, if the disk keeps up (see" \
		"                            shard_stats_summary()); otherwise add memory"
fi

# ---- a control group whose limit stands on a parent ----

in_group() { # LIMIT COMMAND...: its parent may have so many bytes, and uses none
	on_machine bash -euc '
		mount -t tmpfs x /sys/fs/cgroup && mkdir -p /sys/fs/cgroup/job/task
		echo 0 >/sys/fs/cgroup/job/memory.current && echo "$1" >/sys/fs/cgroup/job/memory.max
		shift && exec "$@"' in_group "$@"
}
# shellcheck disable=SC2016 # the process itself says this
member='echo 0::/job/task >group && mount --bind group /proc/$$/cgroup && exec "$@"'
if [ -d /sys/fs/cgroup ] && [ -e /proc/self/cgroup ]; then
	run 0 in_group 51200 bash -euc "$member" member "$CAT" doctor
	says "good     memory         50.0 KiB of 100.0 KiB available"
	# shardpack reads a file ahead, with a thread of its own, if it fits half of that.
	head -c 16384 /dev/zero >zero.bin
	threads() {
		rm -rf packed
		run 0 in_group "$1" strace -f -qq -e trace=clone,clone3 -o clones bash -euc "$member" member \
			"$PACK" raw zero.bin -o packed --schema 'x:u8[16]' --order shuffle -q -j 1
		grep -c CLONE_THREAD clones
	}
	# A sanitizer does not work under strace, and a container may forbid it.
	[ -n "${VARIANT-}" ] || ! strace -qq -o none true 2>/dev/null ||
		[ "$(threads 20480)" = $(($(threads 40960) - 1)) ] ||
		die "shardpack reads ahead more than half of its group's memory"
fi
echo "$n findings"
