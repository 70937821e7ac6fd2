#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# train_loop.sh - examples/train_loop.c learns the photographs, and learns nothing from mixed-up
# labels
#
# The second half is the control: an accuracy that came from a leak, say of labels into the order of
# records, would stay high.  Chance is 0.11.
# TAKES: 20
. "${ROOT:-$(dirname "$0")/../..}/tests/cli/lib.sh"

loop=$BUILD/examples/train_loop
run 0 "$PACK" images "$PHOTOS/train" -o train --resize 256 --crop 224
run 0 "$PACK" images "$PHOTOS/val" -o val --resize 256 --crop 224 --classes train

# accuracy ARGUMENT...: the number on the last line
accuracy() {
	run 0 "$loop" train val "$@"
	tail -n 1 out | grep -qx 'val accuracy [01]\.[0-9][0-9][0-9]' || die "last line: $(tail -n 1 out)"
	tail -n 1 out | cut -d ' ' -f 3
}

# between LOW VALUE HIGH
between() {
	awk -v low="$1" -v value="$2" -v high="$3" 'BEGIN { exit !(low <= value && value <= high) }'
}

# Two runs of the same seed say the same, one of another seed does not.
accuracy --epochs 2 >/dev/null
cp out short
accuracy --epochs 2 >/dev/null
cmp short out || die "two runs differ"
accuracy --epochs 2 --seed 2 >/dev/null
! cmp -s short out || die "the seed does nothing"
if [ -n "${VARIANT-}" ]; then # a sanitizer slows down the learning, at which it has nothing to find
	echo "2 epochs; the plain build learns"
	exit 0
fi

real=$(accuracy)
# What the loader did since the last line, twice in 20 epochs.
line='^loader: 90 batches in [0-9.]+ s, [0-9.]+ records/s, [0-9.]+ MB/s; next waited [0-9.]+ % of the time$'
[ "$(grep -Ec "$line" err)" = 2 ] || die "lines about the loader: $(cat err)"
between 0.95 "$real" 1 || die "accuracy $real; at least 0.95"
mixed=$(accuracy --permute-labels)
between 0 "$mixed" 0.25 || die "accuracy $mixed with labels permuted; at most 0.25"

run 1 "$loop" train
run 1 "$loop" train nowhere
run 1 "$loop" train val --epoch 3
run 0 "$BUILD/examples/read_random" train label 3
printed "108 records; label is i64, 8 bytes"
[ "$(wc -l <out)" = 4 ] || die "read_random: $(cat out)"
# Which side waits depends on what else the machine has to do.
run 0 "$BUILD/examples/loader_report" train 20 12
grep -q '^next waited .* of 9 times)$' out || die "loader_report: $(cat out)"
tail -n 1 out | grep -qE '^(the trainer is|the loader is|each side waits)' || die "loader_report: $(cat out)"
# Where there is a GPU, it says what these batches lose.  Its driver is files in a namespace.
on_machine() { # GPU NODE COMMAND...: files below /proc/driver/nvidia/gpus and /dev; "": none
	unshare -Urm bash -euc '
		mount -t tmpfs x /proc && mount -t tmpfs x /dev
		mkdir -p "/proc/driver/nvidia/gpus/$1"
		[ -z "$2" ] || touch "/dev/$2"
		shift 2 && exec "$@"' on_machine "$@"
}
if unshare -Urm mount -t tmpfs x /proc 2>/dev/null; then
	lost='^this machine has a GPU, and copies of these batches to it are slow, .*: call shard_loader_next_device\(\)'
	while IFS='|' read -r want gpu node visible; do
		story="GPU '$gpu', node '$node', CUDA_VISIBLE_DEVICES '$visible'"
		run 0 on_machine "$gpu" "$node" env ${visible:+"CUDA_VISIBLE_DEVICES=${visible#=}"} \
			"$BUILD/examples/loader_report" train 0 12
		[ "$(grep -Ec "$lost" out)" = "$want" ] || die "loader_report with $story: $(cat out)"
		[ "$(wc -l <out)" -ge 4 ] || die "loader_report with $story: $(cat out)"
	done <<-END
		1|0000:65:00.0|nvidia0|
		1|0000:65:00.0|nvidia3|=3
		1|0000:65:00.0|nvidia0|=GPU-1f2e
		0|0000:65:00.0|nvidiactl|
		0|0000:65:00.0||
		0||nvidia0|
		0|||
		0|0000:65:00.0|nvidia0|=
		0|0000:65:00.0|nvidia0|=-1
	END
fi
run 0 "$BUILD/examples/crops" train 200
[ "$(grep -cE '^record [0-9]+: 200 x 200 from [0-9]+,[0-9]+(, mirrored)?$' out)" = 8 ] || die "crops: $(cat out)"
grep -q ', mirrored$' out || die "crops mirrors nothing: $(cat out)"
[ "$(tail -n 1 out)" = "8 squares, and their mirror images" ] || die "crops: $(cat out)"
run 1 "$BUILD/examples/crops" train 225
run 1 "$BUILD/examples/loader_report" nowhere
run 2 "$BUILD/examples/loader_report"
echo "accuracy $real; $mixed with labels permuted"
