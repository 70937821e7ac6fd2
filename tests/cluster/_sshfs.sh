#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/cluster/_sshfs.sh - two mounts of one folder by sshfs: packing, sealing, growing and reading
# on both at once, while workers are killed and connections are lost
# TIMEOUT: 1500
# TAKES: 200
# shellcheck disable=SC1091
. "$ROOT/tests/cluster/lib.sh"
. "$ROOT/tests/cluster/lib_ssh.sh"
. "$ROOT/tests/cluster/lib_sshfs.sh"
start_ssh
start_sshfs

# Silent owners are replaced after 15 s: those of the other mount run on another machine.
break_pack claim.c "s/\.beat = .*/.beat = 1000000000,/; s/\.look = .*/.look = 1000000000,/
	s/\.stale = .*/.stale = UINT64_C(15000000000),/"
mv broken quick
sets=0
PACK=$PWD/quick

# A plan in the folder, under a name that no mount has in its caches: `name`, and `ds` is what the
# server has.
begin_shared() { # STORY WORKERS
	story=$1 workers=$2 kills=0 began=$SECONDS name=set$((++sets))
	rm -f ds ./*.err
	ln -s "store/$name" ds
	run 0 "$PACK" plan images src -o "a/$name" "${RECIPE[@]}" -q
	until_true test -e "b/$name/.shardpack/plan"
}

# work MOUNT ARGUMENT... &: those of b run on a machine of their own
work() {
	local mount=$1
	shift
	# shellcheck disable=SC2030,SC2031
	export SHIM="delay ${WHAT-}" SHIM_SEED=$RANDOM SHIM_DELAY_US=${SLOW-20000} LD_PRELOAD=$PWD/shim.so
	if [ "$mount" = b ]; then
		machine "$PACK" build "b/$name" -j1 "$@"
	else
		exec "$PACK" build "a/$name" -j1 "$@"
	fi
}

# both COMMAND...: on a and on b at once, with the mount in the place of @; their exit codes are in
# code_a and code_b, and what they said in a.err and b.err
both() {
	local pid
	code_a=0 code_b=0
	"${@//@/a}" >a.out 2>a.err </dev/null &
	pid=$!
	"${@//@/b}" >b.out 2>b.err </dev/null || code_b=$?
	wait $pid || code_a=$?
}

is_complete() { # as seen on MOUNT: caches may be 20 s old
	[ -z "$("$PACK" status "$1/$name" --retry-list)" ]
}

seal_both() {
	until_true is_complete a
	until_true is_complete b
	both "$PACK" seal "@/$name" -q
	[ "$code_a$code_b" = 00 ] || die "$story: seal ended with $code_a and $code_b: $(cat a.err b.err)"
	[ ! -e "store/$name/.shardpack" ] || run 0 "$PACK" seal "a/$name" -q
	no_temps "store/$name" || die "$story: temporary files are left"
	same reference "store/$name"
	id_is "$reference_id" "$name"
	row "equal id"
}

id_is() { # ID DATASET
	[ "$("$CAT" info "store/$2" --json >info && json info 'd["id"]')" = "$1" ] || die "$story: store/$2 has another id"
}

# ---- packing: workers are killed, a connection is cut, and then a whole mount is lost ----

begin_shared "sshfs: --steal on two mounts" 6
pids=()
for k in 1 2 3; do
	work a --steal 2>a$k.err &
	pids+=($!)
	work b --steal 2>b$k.err &
	pids+=($!)
done
kill_worker
run 0 "$PACK" status "a/$name"
run 0 "$PACK" status "b/$name"
cut_connection b
kill_worker
lose_mount b
for pid in "${pids[@]}"; do wait "$pid" || :; done
mount_store b node2
(work b --steal) 2>again.err || die "$story: $(cat again.err)"
seal_both

# ---- reading: every hash, and every record once by the loader, on both ----

story="sshfs: reading on both mounts" workers=2 kills=0 began=$SECONDS
both "$CAT" verify "@/$name" --sha256
[ "$code_a$code_b" = 00 ] || die "$(cat a.err b.err)"
both "$CAT" prove-order "@/$name"
[ "$code_a$code_b" = 00 ] || die "$(cat a.err b.err)"
row "equal records"

# ---- datasets that grow ----

story="sshfs: merge and append" workers=2 kills=0 began=$SECONDS
make_images src2 64
run 0 "$PACK" images src2 -o more "${RECIPE[@]}" --classes reference -q
run 0 "$PACK" merge reference more -o merged --duplicates keep -q
both "$PACK" merge "@/$name" more -o @/merged --duplicates keep -q
[ "$code_a$code_b" = 00 ] || die "merge ended with $code_a and $code_b: $(cat a.err b.err)"
same merged store/merged
cp -r reference grown
SHIM_COUNT=$PWD/calls run 0 with_shim die "$PACK" append grown more --duplicates keep -q
verified() { # b may have the size of the manifest before in its caches for 20 s, and refuses it
	"$CAT" verify "b/$name"
}
SHIM_DIE_AT=$(($(stat -c %s calls) / 2)) run 137 with_shim die "$PACK" append "b/$name" more --duplicates keep -q
kills=$((kills + 1))
[ -n "$(find "store/$name" -name 'added-*')" ] && cmp "store/$name/dataset.manifest" reference/dataset.manifest ||
	die "$story: killed too early or too late"
run 0 "$PACK" append "a/$name" more --duplicates keep -q
id_is "$("$CAT" info grown --json >info && json info 'd["id"]')" "$name"
until_true verified >/dev/null 2>&1
row "equal id"

# ---- parts, without claims; and the control, which trusts locks ----

# The last image waits until the other part has begun and ended on the other mount.
held=$(find src -name '*.jpg' | sort | tail -n 1)
export SHIM_HOLD=${held#src/} SHIM_UNTIL=$PWD/go
record=$("$CAT" list reference | awk -F '\t' -v key="$SHIM_HOLD" '$4 == key {print $1}')
part=$((record * SHARDS / IMAGES % 2))
parts() { # WHAT
	local pid
	rm -f go go.held
	WHAT="hold $1" SLOW=1 work a --part $part/2 2>a.err &
	pid=$!
	until_true test -L go.held
	until_true has_work "store/$name"
	(WHAT=$1 SLOW=1 work b --part $((1 - part))/2) 2>b.err || die "$(cat b.err)"
	: >go
	code=0
	wait $pid || code=$?
}
begin_shared "sshfs: --part on two mounts" 2
parts ""
[ $code = 0 ] || die "$story: part $part lost what it had in work: $(cat a.err)"
seal_both
begin_shared "sshfs: control, trusts locks" 2
parts local
[ $code = 3 ] && grep -q "No such file or directory" a.err || die "the control is not noticed: $code, $(cat a.err)"
row "noticed"
echo "6 workers, 2 mounts that are cut and lost, sealing, growing and reading on both; 1 control"
