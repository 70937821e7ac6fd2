#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Tests the second implementation of the format, format/shardfmt.py, and the files that it made:
# its hashes against known values, golden/ and bad/ against the rules, its writer against its reader
# on generated shards, and its command line. The C reader is tested elsewhere.
# TAKES: 15
set -eu

PYTHON=${PYTHON:-python3}
folder=$(cd "$(dirname "$0")/../../format" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM

command -v "$PYTHON" >/dev/null || { echo "no $PYTHON"; exit 77; }
"$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 9))' || { echo "$PYTHON is older than 3.9"; exit 77; }
PYTHONDONTWRITEBYTECODE=1
export PYTHONDONTWRITEBYTECODE

echo "# hashes and LZ4"
"$PYTHON" "$folder/shardfmt.py" --selftest
"$PYTHON" "$folder/shardfmt.py" --pure --selftest

echo "# golden/ and bad/"
"$PYTHON" "$folder/make_golden.py" --check >"$scratch/table" || { cat "$scratch/table"; exit 1; }
tail -n 1 "$scratch/table"

echo "# round trip"
cat >"$scratch/round_trip.py" <<'END'
"""Shards with random schemas: what is written is read back, and every kind of damage is noticed."""
import hashlib
import os
import random
import sys

sys.path[:0] = sys.argv[1:]
import shardfmt as sf
from random_shards import random_record, random_schema

ROUNDS, DAMAGES = 60, 40


def check_damage(rng, data):
    for _ in range(DAMAGES):
        if rng.random() < 0.2:
            damaged = data[:rng.randrange(len(data))]
        else:
            at = rng.randrange(len(data))
            damaged = data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1:]
        try:
            sf.verify_shard(damaged)
        except sf.FormatError as error:
            assert error.status != "unsupported", "damage was called unsupported: %s" % error
            continue
        raise AssertionError("damage was not noticed")


def round_trip(rng):
    groups, fields = random_schema(rng)
    count = rng.randint(0, 20)
    columns = [[random_record(rng, groups, fields, g) for _ in range(count)] for g in range(len(groups))]
    keys = None
    if rng.random() < 0.5:
        keys = [("key \u00e9 %d" % i).encode("utf-8") * rng.randint(0, 9) for i in range(count)]
    missing = [sf.Missing(i * i, 1 + i, 1 + i % 2) for i in range(rng.randint(0, 3))]
    provenance = rng.choice([None, b"", b"made by a test\n"])
    data = sf.write_shard(groups, fields, columns, keys=keys, missing=missing, provenance=provenance,
                          align_log2=rng.choice([12, 13]), planned_records=100, plan_shard=count)
    shard = sf.verify_shard(data)
    assert (shard.groups, shard.fields, shard.record_count) == (groups, fields, count)
    assert (shard.planned_records, shard.plan_shard) == (100, count)
    assert (shard.keys(), shard.missing(), shard.provenance()) == (keys, missing, provenance)
    for g in range(len(groups)):
        for i in range(count):
            assert shard.stride_bytes(i, g) == columns[g][i]
            assert shard.record(i, g) == columns[g][i][:groups[g].record_bytes]
    check_damage(rng, data)
    return groups, fields, data


def check_manifest(rng, groups, fields, data):
    """One shard twice, under two names: read back, and canonical."""
    lines = [sf.shard_line(name, data) for name in ("a.shard", "b/a.shard")]
    text = sf.write_manifest(groups, fields, lines, classes=["one", "tw\u00f6 %"],
                             plan=hashlib.sha256(data).hexdigest(), order="shuffle %d" % rng.getrandbits(64))
    manifest = sf.read_manifest(text, verify=True)
    assert (manifest.groups, manifest.fields, manifest.shards) == (groups, fields, lines)
    assert sf.seal_manifest(sf.manifest_lines(manifest)) == text
    for at in range(0, len(text), 7):
        try:
            sf.read_manifest(text[:at] + bytes([text[at] ^ 1]) + text[at + 1:], verify=True)
        except sf.FormatError:
            continue
        raise AssertionError("damage of byte %d of a manifest was not noticed" % at)


def main():
    rng = random.Random(20)
    for _ in range(ROUNDS):
        check_manifest(rng, *round_trip(rng))
    for name in ("dataset", "dataset_empty", "dataset_nested"):
        text = sf.read_file(os.path.join(sys.argv[1], "golden", name, sf.MANIFEST_NAME))
        assert sf.seal_manifest(sf.manifest_lines(sf.read_manifest(text))) == text, name
    print("%d shards and manifests" % ROUNDS)


main()
END
"$PYTHON" "$scratch/round_trip.py" "$folder" "$folder/../tests/twin"

echo "# command line"
expect() {
	wanted=$1
	shift
	status=0
	"$PYTHON" "$folder/shardfmt.py" "$@" >"$scratch/out" 2>&1 || status=$?
	[ "$status" -eq "$wanted" ] || {
		echo "shardfmt.py $*: exit status $status, wanted $wanted"
		cat "$scratch/out"
		exit 1
	}
}
expect 0 verify "$folder/golden/all_sections.shard"
[ "$(cat "$scratch/out")" = ok ]
expect 0 verify "$folder/golden/dataset"
expect 1 verify "$folder/bad/I13_reserved_byte.shard"
grep -q '^I13: ' "$scratch/out"
expect 0 verify --skip I13 "$folder/bad/I13_reserved_byte.shard"
expect 1 verify --skip I12 "$folder/bad/I13_reserved_byte.shard"
expect 1 verify "$folder/bad/M07_leading_zero.manifest"
expect 0 verify --skip M07 "$folder/bad/M07_leading_zero.manifest"
expect 4 verify "$folder/bad/I10_incompat_bit.shard"
expect 5 verify "$folder/bad/D3_root"
expect 3 verify "$scratch/not-there.shard"
expect 2 verify
expect 0 info "$folder/golden/lz4_mixed.shard"
expect 0 info "$folder/golden/dataset"
expect 0 dump "$folder/golden/lz4_mixed.shard"
cmp "$scratch/out" "$folder/golden/lz4_mixed.json"
expect 0 dump "$folder/golden/dataset"
cmp "$scratch/out" "$folder/golden/dataset.json"
expect 0 get "$folder/golden/dataset" 3 1
printf '\003\000\000\000\000\000\000\000' | cmp - "$scratch/out"
expect 2 get "$folder/golden/dataset" 5 1
echo "exit statuses as documented"
