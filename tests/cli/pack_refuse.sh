#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/cli/pack_refuse.sh - what is wrong with a command, a source or an output: one line, an exit code, nothing touched
# shellcheck disable=SC1091
. "$ROOT/tests/cli/lib.sh"

small_source
ARGS=(--resize 16 --crop 16)

# ---- the source ----

run 3 "$PACK" images nowhere -o ds "${ARGS[@]}"
said_only "shardpack: nowhere: No such file or directory: the source must be a folder of class folders"
run 3 "$PACK" images src/a/cat_000.jpg -o ds "${ARGS[@]}"
said_only "shardpack: src/a/cat_000.jpg: Not a directory: the source must be a folder of class folders"
mkdir -p flat && cp src/a/*.jpg flat
run 1 "$PACK" images flat -o ds "${ARGS[@]}"
said_only "shardpack: flat: no folders in it; each class must be a folder of images (5 files found)"
mkdir -p src/empty && touch src/empty/notes.txt
run 1 "$PACK" images src -o ds "${ARGS[@]}"
said_only "shardpack: src/empty: a class without images (1 other files); remove the folder or fill it"
rm -r src/empty

mkdir -p loop/a/deep && cp src/a/cat_000.jpg loop/a && ln -s ../../a loop/a/deep/again
run 1 "$PACK" images loop -o ds "${ARGS[@]}"
said_only "shardpack: loop/a/deep/again: this link leads back to loop/a; the folder would never end"
mkdir -p dangling/a && ln -s nowhere dangling/a/x.jpg
run 3 "$PACK" images dangling -o ds "${ARGS[@]}"
said_only "shardpack: dangling/a/x.jpg: No such file or directory (a link that leads nowhere?)"

mkdir -p latin && cp -r src/a latin/$'caf\xe9'
run 1 "$PACK" images latin -o ds "${ARGS[@]}"
said_only "shardpack: latin: class name 'caf\\351' must be UTF-8 of 1 to 1024 bytes, it has 4"

mkdir -p fifo/a && cp src/a/cat_000.jpg fifo/a && mkfifo fifo/a/pipe.jpg
run 1 timeout 20 "$PACK" images fifo -o ds "${ARGS[@]}"
said "shardpack: warning: fifo/a/pipe.jpg: a FIFO, not a file"

# ---- keys must be UTF-8: bad input, by policy ----

mkdir -p keys/a && cp src/a/cat_000.jpg keys/a && cp src/a/cat_001.jpg keys/a/$'caf\xe9.jpg'
run 1 "$PACK" images keys -o ds "${ARGS[@]}"
said "shardpack: warning: keys/a/caf\\351.jpg: the path becomes the record's key, so it must be UTF-8 of at most 1024 bytes; it has 10"
run 0 "$PACK" images keys -o keys.ds "${ARGS[@]}" --on-error skip --report keys.json
[ "$(json keys.json 'd["bad_inputs"][0]["reason"]')" = "bad key" ] || die "$(json keys.json 'd["bad_inputs"]')"

# ---- numbers as class names ----

mkdir -p numbers && cp -r src/a numbers/2 && cp -r src/b numbers/10
run 0 "$PACK" images numbers -o numbers.ds "${ARGS[@]}" --report numbers.json
said "shardpack: warning: class names are numbers but sort as text, as in torchvision: '10' (class 0) comes before '2'; --classes gives another order"
[ "$(json numbers.json 'len(d["warnings"])')" = 1 ] || die "the warning is not in the report"

# ---- unreadable input, whatever the policy ----

mkdir -p locked/a && cp src/a/*.jpg locked/a
chmod 000 locked/a/cat_002.jpg
for policy in fail skip; do
	run 3 powerless "$PACK" images locked -o locked.ds "${ARGS[@]}" --on-error $policy --report $policy.json
	said "shardpack: warning: locked/a/cat_002.jpg: Permission denied"
	said "shardpack: 1 inputs could not be read; shards with one of them were not published"
	said "shardpack: 5 inputs = 0 written + 0 skipped + 0 quarantined + 5 failed"
	[ "$(json $policy.json 'd["failed_because"]')" = "{'bad': 0, 'unreadable': 1, 'not_published': 4}" ] || die "$policy"
	[ "$(json $policy.json 'd["bad_inputs"][0]["reason"]')" = unreadable ] || die "$policy"
	[ -z "$(find locked.ds -name '*.shard')" ] || die "published without an input"
	# It is no verdict on the bytes, so the same command continues once the file can be read.
	chmod 644 locked/a/cat_002.jpg
	run 0 powerless "$PACK" images locked -o locked.ds "${ARGS[@]}" --on-error $policy
	chmod 000 locked/a/cat_002.jpg
	rm -r locked.ds
done
chmod 000 locked/a
run 3 powerless "$PACK" images locked -o locked.ds "${ARGS[@]}"
said_only "shardpack: locked/a: cannot read this folder: Permission denied"
[ ! -e locked.ds ] || die "made for nothing"
mkdir -m 555 closed
run 3 powerless "$PACK" images src -o closed/ds "${ARGS[@]}"
said "shardpack: closed/ds: cannot make this folder: Permission denied"

# ---- the output ----

touch file
run 3 "$PACK" images src -o file/ds "${ARGS[@]}"
said_only "shardpack: file/ds: Not a directory"
run 3 "$PACK" images src -o no/../ds "${ARGS[@]}"
said_only "shardpack: no/../ds: leads through a folder that does not exist"
run 2 "$PACK" images src -o file "${ARGS[@]}"
said_only "shardpack: file: a file, not a folder; nothing was touched"
mkdir foreign && echo mine >foreign/thesis.txt
for replace in "" --replace; do
	run 2 "$PACK" images src -o foreign "${ARGS[@]}" $replace
	said_only "shardpack: foreign: holds 'thesis.txt', which is no part of a dataset; nothing was touched"
	[ "$(contents foreign)" = thesis.txt ] || die "touched: $(contents foreign)"
done
run 2 "$PACK" images src -o src/ds "${ARGS[@]}"
said_only "shardpack: --out: lies in the source ($PWD/src); give a place outside of it"
run 2 "$PACK" images src/a -o src "${ARGS[@]}"
said_only "shardpack: the source: lies in --out ($PWD/src); give a place outside of it"
run 2 "$PACK" images src -o keys.ds "${ARGS[@]}" --report keys.ds/report.json
said_only "shardpack: --report: lies in --out ($PWD/keys.ds); give a place outside of it"
run 2 "$PACK" images src -o ds "${ARGS[@]}" --on-error quarantine --quarantine src/bad
said_only "shardpack: --quarantine: lies in the source ($PWD/src); give a place outside of it"

mkdir started
run 0 "$PACK" images src -o started/ds "${ARGS[@]}" -q
cp -r started/ds started/copy
run 2 "$PACK" images src -o started/ds --resize 16 --crop 8
said_only "shardpack: started/ds: holds a dataset of another plan, with 10 records; nothing was touched (--replace puts the new dataset in its place)"
same started/ds started/copy

# ---- the command ----

run 2 "$PACK" images src -o ds --resize 16 --crop 17
grep -q "^shardpack: --crop 17 is larger than --resize 16" err || die "$(cat err)"
run 2 "$PACK" images src -o ds --crop 65501
run 2 "$PACK" images src -o ds --crop 65500
run 2 "$PACK" images src -o ds "${ARGS[@]}" --shard-records 5 --shard-bytes 1M
run 2 "$PACK" images src -o ds "${ARGS[@]}" --shard-bytes 20T
run 2 "$PACK" images src -o ds "${ARGS[@]}" --order source --seed 3
run 2 "$PACK" images src
run 2 "$PACK" build ds --part 2/2
run 2 "$PACK" build nowhere
run 2 "$PACK" build started/ds
said_only "shardpack: started/ds: sealed already, so it has no plan any more"
run 2 "$PACK" seal foreign
said_only "shardpack: foreign: there is no plan in it; \`shardpack plan images SRC -o DIR\` makes one"
run 0 "$PACK" images --help
run 0 "$PACK" --version
printed "shardpack $("$PACK" --version | sed -n '1s/.* //p')"
[ ! -e ds ] || die "something made ds: $(contents ds)"
echo "refusals: one line each, the right code, nothing touched"
