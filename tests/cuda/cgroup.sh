#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/cuda/cgroup.sh - a loader that page-locks in a control group of little memory stays far from
# its limit, and nobody is killed
#
# The dataset is larger than the limit.  The control does not see the limit, and goes beyond it.
# How the limit is found, in versions 1 and 2, tests/unit/t_available_memory.c tests without a group.
# On a machine of version 1, `make check-cgroup2` runs this under version 2.
# TAKES: 10
. "${ROOT:-$(dirname "$0")/../..}/tests/cli/lib.sh"
[ -z "${VARIANT-}" ] || skip "sanitizers need memory of their own"
mib=$((1 << 20)) limit=$((160 << 20))

# Make a group below this process's own, or below the root.  Version 2 has a file of controllers, and
# allows no group below one that has processes, except the root.
version= group=
make_group() { # VERSION PARENT LIMIT_FILE
	group=${2%/}/libshard-test-$$
	[ -e "${group%/*}/cgroup.procs" ] && mkdir "$group" 2>/dev/null || return 1
	version=$1
	[ -e "$group/$3" ] && { echo $limit >"$group/$3"; } 2>/dev/null && return 0
	rmdir "$group"
	version= group=
	return 1
}
own() { # CONTROLLER: the path of this process's group
	sed -n "s/^[0-9]*:\([^:]*,\)\?$1\(,[^:]*\)\?://p" /proc/self/cgroup | head -n 1
}
at=/sys/fs/cgroup
make_group 2 "$at$(own '')" memory.max || make_group 2 $at memory.max ||
	make_group 1 "$at/memory$(own memory)" memory.limit_in_bytes ||
	skip "no control group with a limit of memory can be made here: that needs root, and a writable $at"
trap 'rmdir "$group" || { sleep 1 && rmdir "$group"; }' EXIT # what was killed leaves it a moment later
case $version in
1) killed() { sed -n 's/^oom_kill //p' "$group/memory.oom_control"; } ;;
2) killed() { sed -n 's/^oom_kill //p' "$group/memory.events"; } ;;
esac

# Shards of 32 MiB, each of which is page-locked at once.  What wrote them has left the page cache, so
# that their pages become those of the group.
truncate -s $((192 * mib)) zero.bin
run 0 "$PACK" raw zero.bin -o set --schema 'x:u8[131072]' --shard-records 256 -q
sync set/*
for shard in set/*.shard; do
	dd if="$shard" iflag=nocache count=0 2>/dev/null || skip "this file system keeps what it has in memory"
done

in_group() { # COMMAND...: its status; the most that it page-locked is in `most`
	status=0
	bash -c 'echo $$ >"$1/cgroup.procs" && shift && exec "$@"' in_group "$group" "$@" >out 2>err || status=$?
	[ $status != 5 ] || skip "no memory may be locked here: $(cat err)"
	most=$(tail -n 1 out)
	most=${most:-0}
}
in_group "$BUILD/tests/cuda/prog_pinned" set 3
[ $status = 0 ] || die "the loader ends with $status, $(killed) killed: $(cat out err)"
[ "$(killed)" = 0 ] || die "$(killed) processes were killed"
[ "$most" -gt 0 ] || die "nothing was page-locked"
[ "$most" -le $((limit / 2)) ] || die "$most bytes were page-locked, of a limit of $limit"
seen=$((most / mib))

in_group "$BUILD/tests/cuda/prog_pinned" set 3 blind
[ $status = 137 ] || [ "$most" -gt $((limit / 2)) ] ||
	die "a loader that does not see the limit page-locks $most bytes, and ends with $status: $(cat err)"
echo "version $version: $seen of $((limit / mib)) MiB; without the limit $((most / mib)), exit status $status, \
$(killed) killed"
