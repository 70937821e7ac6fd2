#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/cuda/_cgroup2.sh - cgroup.sh, and the limits that a loader finds, under control groups of
# version 2; by hand, with `make check-cgroup2`
#
# A machine has its memory controller in one version.  So this runs in a kernel of its own, which
# Debian has as user-mode-linux.  It shows the machine's files, and has a disk and swap of its own.
. "${ROOT:-$(dirname "$0")/../..}/tests/cli/lib.sh"
for needed in linux.uml mkfs.ext4 mkswap; do
	command -v $needed >/dev/null || PATH=$PATH:/usr/sbin:/sbin
	command -v $needed >/dev/null || skip "$needed is not there: Debian has it in user-mode-linux, e2fsprogs or util-linux"
done
[ "$(id -u)" = 0 ] || skip "only root may do in that kernel what this needs"
truncate -s 700M disk
head -c 128M /dev/zero >swap
chmod 600 swap
mkfs.ext4 -q -F disk
mkswap swap >mkswap.out
truncate -s 16M zero.bin
run 0 "$PACK" raw zero.bin -o set --schema 'x:u8[131072]' -q

# Its limits are those of the group and its parent, in MiB.
cat >init <<INIT
#!/bin/bash
export PATH=/usr/sbin:/usr/bin:/sbin:/bin ROOT='$ROOT' BUILD='$BUILD' TMPDIR=/run/disk PYTHONPATH='$BUILD/python'
groups=/sys/fs/cgroup
mount -t proc proc /proc && mount -t tmpfs tmpfs /run && mount -t cgroup2 none \$groups && mkdir /run/disk &&
	mount -t ext4 /dev/ubda /run/disk && swapon /dev/ubdb && echo +memory >\$groups/cgroup.subtree_control &&
	mkdir -p \$groups/a && echo +memory >\$groups/a/cgroup.subtree_control && mkdir \$groups/a/b
echo "mounted: \$?"
may_have() { # PARENT_MEMORY PARENT_SWAP MEMORY HIGH SWAP
	echo \$1 >\$groups/a/memory.max && echo \$2 >\$groups/a/memory.swap.max && echo \$3 >\$groups/a/b/memory.max &&
		echo \$4 >\$groups/a/b/memory.high && echo \$5 >\$groups/a/b/memory.swap.max || return
	bash -c 'echo \$\$ >\$0/a/b/cgroup.procs && exec $PYTHON -c "
import libshard
libshard.Loader(\"$PWD/set\", 128, prefetch=1000)"' \$groups 2>&1 | tail -n 1
}
may_have 300M 64M max max max
may_have 300M max 250M max 40M
may_have max max 300M 200M 0
may_have 300M 0 max max 40M
rmdir \$groups/a/b
cd /run/disk && bash "\$ROOT/tests/cuda/cgroup.sh"
echo "cgroup.sh: \$?"
echo o >/proc/sysrq-trigger
sleep 60
INIT
chmod +x init
timeout 300 linux.uml mem=1500M ubd0=disk ubd1=swap rootfstype=hostfs root=/dev/root rootflags=/ rw "init=$PWD/init" \
	con=null con0=fd:0,fd:1 </dev/null >kernel.out 2>&1 || die "linux.uml: $(tail -n 20 kernel.out)"
tr -d '\r' <kernel.out >out
printed "mounted: 0"
sed -n 's/.*this process may have \([0-9]*\) bytes of memory and swap.*/\1/p' out >found
printf '%s\n' $((364 << 20)) $((290 << 20)) $((200 << 20)) $((300 << 20)) >wanted
cmp -s found wanted || die "limits: $(cat found), not $(cat wanted); $(tail -n 40 out)"
printed "cgroup.sh: 0"
grep '^version 2: ' out || die "cgroup.sh did not use version 2: $(tail -n 40 out)"
