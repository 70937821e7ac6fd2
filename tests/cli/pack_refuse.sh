#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/cli/pack_refuse.sh - what is wrong with a command, a source or an output: one line, an exit
# code, nothing touched
# shellcheck disable=SC1091
. "$ROOT/tests/cli/lib.sh"

small_source
ARGS=(--resize 16 --crop 16)

# ---- the source ----

run 3 "$PACK" images nowhere -o ds "${ARGS[@]}"
said_only "shardpack: nowhere: No such file or directory"
mkdir -p flat && cp src/a/*.jpg flat
run 1 "$PACK" images flat -o ds "${ARGS[@]}"
said_only "shardpack: flat: no class folders in it (5 files found). Make one folder per class, \
or give the labels with --labels FILE or --label-regex RE, \
or pack without labels with --no-label"
mkdir -p src/empty && touch src/empty/notes.txt
run 1 "$PACK" images src -o ds "${ARGS[@]}"
said "shardpack: warning: src/empty: a class without images (1 other files); remove the folder or add images"
rm -r src/empty

mkdir -p loop/a/deep && cp src/a/cat_000.jpg loop/a && ln -s ../../a loop/a/deep/again
run 1 "$PACK" images loop -o ds "${ARGS[@]}"
said_only "shardpack: loop/a/deep/again: this link leads back to loop/a; following it would never end"
mkdir -p dangling/a && ln -s nowhere dangling/a/x.jpg
run 1 "$PACK" images dangling -o ds "${ARGS[@]}"
said "shardpack: warning: dangling/a/x.jpg: a link to a file that does not exist"

mkdir -p latin && cp -r src/a latin/$'caf\xe9'
run 1 "$PACK" images latin -o ds "${ARGS[@]}"
said_only "shardpack: latin: class name 'caf\\351' must be UTF-8 of 1 to 1024 bytes; it has 4"

mkdir -p fifo/a && cp src/a/cat_000.jpg fifo/a && mkfifo fifo/a/pipe.jpg
run 1 timeout 250 "$PACK" images fifo -o ds "${ARGS[@]}"
said "shardpack: warning: fifo/a/pipe.jpg: a FIFO, not a file"

# ---- keys must be UTF-8: bad input, by policy ----

mkdir -p keys/a && cp src/a/cat_000.jpg keys/a && cp src/a/cat_001.jpg keys/a/$'caf\xe9.jpg'
run 1 "$PACK" images keys -o ds "${ARGS[@]}"
said "shardpack: warning: keys/a/caf\\351.jpg: the path becomes the record's key, \
so it must be UTF-8 of at most 1024 bytes; it has 10"
run 0 "$PACK" images keys -o keys.ds "${ARGS[@]}" --on-error skip --report keys.json
[ "$(json keys.json 'd["bad_inputs"][0]["reason"]')" = "bad key" ] || die "$(json keys.json 'd["bad_inputs"]')"

# ---- images outside the class folders ----

mkdir -p strays && cp -r src/a strays && cp src/a/cat_000.jpg strays/b.jpg && cp src/a/cat_001.jpg strays/a.png
echo text >strays/notes
for dry in --dry-run ""; do
	run 0 "$PACK" images strays -o strays.ds "${ARGS[@]}" $dry
	said "shardpack: warning: 2 images lie directly in strays, outside any class folder: \
ignored (the first is 'a.png')"
done
said "shardpack: 3 other files in the source: ignored (no ending 1, .jpg 1, .png 1)"

# ---- numbers as class names ----

mkdir -p numbers && cp -r src/a numbers/2 && cp -r src/b numbers/10
run 0 "$PACK" images numbers -o numbers.ds "${ARGS[@]}" --report numbers.json
said "shardpack: warning: class folders are numbers and sort as text, as in torchvision: class 0 is '10', before '2'; \
set the numbers with --classes FILE"
[ "$(json numbers.json 'len(d["warnings"])')" = 1 ] || die "the warning is not in the report"
mkdir -p from1 from0 && cp -r src/a from1/1 && cp -r src/b from1/2 && cp -r src/a from0/0 && cp -r src/b from0/1
run 0 "$PACK" images from1 -o from1.ds "${ARGS[@]}"
said "shardpack: warning: class folders are numbers but are counted from 0, as in torchvision: class 0 is '1'; \
set the numbers with --classes FILE"
run 0 "$PACK" images from0 -o from0.ds "${ARGS[@]}"
! grep warning err || die "folders 0 and 1 are classes 0 and 1"

# ---- unreadable input, whatever the policy ----

mkdir -p locked/a && cp src/a/*.jpg locked/a
chmod 000 locked/a/cat_002.jpg
for policy in fail skip; do
	run 3 powerless "$PACK" images locked -o locked.ds "${ARGS[@]}" --on-error $policy --report $policy.json
	said "shardpack: warning: locked/a/cat_002.jpg: Permission denied"
	said "shardpack: 1 input could not be read; shards that need one of them were not published"
	said "shardpack: 5 inputs = 0 written + 0 skipped + 0 quarantined + 1 failed + 4 not done"
	[ "$(json $policy.json 'd["failed_because"]')" = "{'bad': 0, 'unreadable': 1, 'not_published': 4}" ] ||
		die "$policy"
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
said_only "shardpack: file: is a file, not a folder; nothing was touched"
mkdir foreign && echo mine >foreign/thesis.txt
for replace in "" --replace; do
	run 2 "$PACK" images src -o foreign "${ARGS[@]}" $replace
	said_only "shardpack: foreign: holds 'thesis.txt', which is not part of a dataset; nothing was touched"
	run 2 "$PACK" images src -o foreign "${ARGS[@]}" $replace --dry-run
	said_only "shardpack: foreign: holds 'thesis.txt', which is not part of a dataset; nothing was touched"
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
other="shardpack: started/ds: holds a dataset of another plan, with 10 records; nothing was touched \
(--replace puts the new dataset in its place)"
run 2 "$PACK" images src -o started/ds --resize 16 --crop 8
said_only "$other"
run 2 "$PACK" images src -o started/ds --resize 16 --crop 8 --dry-run
said_only "$other"
# What has no --replace says what it can do.
run 2 "$PACK" plan images src -o started/ds --resize 16 --crop 8
said_only "${other/--replace*/remove started/ds and begin again with \`shardpack plan\`)}"
run 0 "$PACK" images src -o started/ds --crop 8 --dry-run --replace
printed "output another dataset; would be replaced"
printed "resize none"
run 0 "$PACK" images src -o started/ds "${ARGS[@]}" --dry-run
printed "output already there; nothing to do"
same started/ds started/copy
run 0 "$PACK" plan images src -o planned "${ARGS[@]}" -q
run 0 "$PACK" images src -o planned "${ARGS[@]}" --dry-run
printed "output unfinished; would continue"
run 3 "$CAT" info planned
said "this dataset is unfinished: run the same shardpack command again, or shardpack build and then seal planned"

# ---- the report's place, before any work ----

run 3 "$PACK" images src -o ds "${ARGS[@]}" --report nowhere/r.json
said_only "shardpack: --report $PWD/nowhere/r.json: cannot write into $PWD/nowhere: No such file or directory"
run 3 powerless "$PACK" images src -o ds "${ARGS[@]}" --report closed/r.json
said_only "shardpack: --report $PWD/closed/r.json: cannot write into $PWD/closed: Permission denied"
for verb in "images src -o ds" "build planned" "seal planned"; do
	# shellcheck disable=SC2086
	run 2 "$PACK" $verb --report started -q
	said_only "shardpack: --report $PWD/started: is a folder; --report must name a file"
done

# ---- the command ----

run 2 "$PACK" images src -o ds --resize 16 --crop 17
grep -q "^shardpack: --crop 17 is larger than --resize 16" err || die "$(cat err)"
run 2 "$PACK" images src -o ds --align 512
said "shardpack: --align 512: must be 4096"
run 2 "$PACK" images src -o ds --crop 65501
run 2 "$PACK" images src -o ds --crop 65500
run 2 "$PACK" images src -o ds "${ARGS[@]}" --shard-records 5 --shard-bytes 1M
run 2 "$PACK" images src -o ds "${ARGS[@]}" --shard-bytes 20T
run 2 "$PACK" images src -o ds "${ARGS[@]}" --order source --seed 3
run 2 "$PACK" images src
run 2 "$PACK" build ds --part 2/2
run 2 "$PACK" build nowhere
mkdir unsealed && echo spoilt >unsealed/dataset.manifest
run 1 "$PACK" build unsealed
run 2 "$PACK" seal foreign
said_only "shardpack: foreign: has no plan; make one with \`shardpack plan SOURCE SRC -o DIR\`"

# ---- places that would eat each other, and names that only look odd ----

run 2 "$PACK" images src -o ds "${ARGS[@]}" --report src/a/cat_000.jpg
said_only "shardpack: --report: lies in the source ($PWD/src); give a place outside of it"
run 2 "$PACK" images src/a/.. -o ds "${ARGS[@]}" --on-error quarantine --quarantine .
run 0 "$PACK" images src -o dots..v2 "${ARGS[@]}" -q
mkfifo pipe && (timeout 250 cat pipe >report.json &)
run 0 timeout 250 "$PACK" images src -o dots..v3 "${ARGS[@]}" -q --report pipe
[ -p pipe ] || die "--report replaced a FIFO"
status=0
timeout 2 "$PACK" images src -o dots..v4 "${ARGS[@]}" -q --report pipe || status=$? # nobody reads it
[ "$status" = 124 ] || die "a FIFO that nobody reads: exit status $status"
rm -rf dots..v2 dots..v3 dots..v4 pipe

# ---- URLs: nothing is fetched, and no folder is called s3: ----

run 0 "$PACK" images src -o here "${ARGS[@]}" -q
url=s3://bucket/ds
# url OPTION COMMAND...: it is refused for the value of that option or argument
url() {
	run 2 "${@:2}"
	said "$(basename "$2"): $1 $url: is a URL; only files and folders of this machine are read and written.  \
Download or upload it with another program; for a local path of that name type ./$url"
}
url -o "$PACK" images src -o $url "${ARGS[@]}"
url --out "$PACK" plan images src --out=$url "${ARGS[@]}"
for option in --report --quarantine --spool --classes --root; do
	url $option "$PACK" images src -o ds "${ARGS[@]}" $option $url
done
url SRC "$PACK" images $url -o ds "${ARGS[@]}"
url SRC "$PACK" images src/a $url -o ds "${ARGS[@]}"
url FILE "$PACK" raw $url -o ds --schema 'x:u8[4]'
url FILE "$PACK" array $url -o ds
url FILE "$PACK" tokens $url -o ds --seq-len 4
url DIR "$PACK" build $url
url --source "$PACK" build here --source $url
url DIR "$PACK" seal $url
url DIR "$PACK" status $url
url DIR "$PACK" merge here $url -o ds
url -o "$PACK" merge here here -o $url
url DIR "$PACK" append here $url
url -o "$PACK" split here --shards 0-0 -o $url
url 'DIR|SHARD' "$CAT" info $url
url --out "$CAT" get here 0 --field image --npy --out $url
url --out "$CAT" show here --out $url
url -o "$CAT" select here --part 0.5 -o $url
url --mix "$CAT" prove-order --mix $url
[ ! -e s3: ] || die "a folder called s3: was made"
run 0 "$PACK" images src -o ./$url "${ARGS[@]}" -q
run 0 "$CAT" info ./$url
rm -r s3: here

run 0 "$PACK" images --help
run 0 "$PACK" plan --help
grep -q "^Usage: shardpack plan images " out || die "plan --help: $(cat out)"
run 0 "$PACK" --version
printed "shardpack $("$PACK" --version | sed -n '1s/.* //p')"
[ ! -e ds ] || die "something made ds: $(contents ds)"
echo "refusals: one line each, the right code, nothing touched"
