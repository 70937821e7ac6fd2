#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/cli/pack_masks.sh - masks of colours, of 16 bits and of ids: what a map makes of them, what
# is refused, and that the map is a part of the dataset
# shellcheck disable=SC1091
. "$ROOT/tests/cli/lib.sh"
need_pillow
export PYTHONPATH=$ROOT/tests/cli:$ROOT/tests/twin

VALUES='values:kind=mask,from=values/{}.png,dtype=u16,map=values.map,fill=65535'
COLOURS='colours:kind=mask,from=colours/{}.png,map=colours.map,fill=255'
IDS='ids:kind=mask,from=ids/{}.png,dtype=u32,fill=4294967295'
SOURCE=(img --root . --order source -q)

# ---- every kind of file, through every fit: as Python looks each pixel up ----

for fit in long:20:20 short:24:16 stretch:20:15 pad:24:24; do
	IFS=: read -r how resize crop <<<"$fit"
	rm -rf img values colours ids ds
	"$PYTHON" "$ROOT/tests/cli/make_masks.py" "$resize" "$crop" "$how"
	run 0 "$PACK" images "${SOURCE[@]}" -o ds --resize "$resize" --crop "$crop" --fit "$how" -j 3 \
		--field "$VALUES" --field "$COLOURS" --field "$IDS"
	"$PYTHON" -c 'import records, numpy, sys
got, want = records.read("ds"), numpy.load("want.npz")
assert len(want.files) == 3
for name in want.files:
    assert len(set(want[name].ravel().tolist())) > 4
    records.same(got[name], want[name], sys.argv[1] + ", " + name)' "$how"
done

# ---- the map is a part of the plan: by what it says, wherever it lies ----

SIZE=(--resize 24 --crop 24 --fit pad --shard-records 5)
run 0 "$PACK" plan images "${SOURCE[@]}" -o planned "${SIZE[@]}" --field "$VALUES" --field "$COLOURS" --field "$IDS"
grep -q ',fill=65535,dtype=u16,map=0-255/7-0/11-1/26-300/else-65535$' planned/.shardpack/plan ||
	die "the plan does not have the map: $(grep -a ^field planned/.shardpack/plan)"
cp -r planned plan
mv values.map elsewhere.map
run 0 "$PACK" build planned -q
run 0 "$PACK" seal planned -q
ELSEWHERE=("--field=${VALUES/values.map/elsewhere.map}" "--field=$COLOURS" "--field=$IDS")
run 0 "$PACK" images "${SOURCE[@]}" -o single "${SIZE[@]}" "${ELSEWHERE[@]}" -j 1
same planned single
sed -i 's/26 300/26 301/' elsewhere.map
run 2 "$PACK" images "${SOURCE[@]}" -o single "${SIZE[@]}" "${ELSEWHERE[@]}"
grep -q "single: holds a dataset of another plan" err || die "a changed map goes unnoticed: $(cat err)"

# ---- what is refused ----

"$PYTHON" - <<'PY'
import numpy as np
from make_masks import png, save

def mask(name, pixels, **how):
    save("m/%s.png" % name, png(pixels, **how))

save("one/a/x.png", png(np.zeros((8, 9, 3), np.uint8)))
gray = np.full((8, 9, 1), 7, np.uint8)
mask("gray", gray)
gray[5, 3] = 8
mask("gray8", gray)
mask("gray8i", gray, interlaced=True)
wide = np.full((8, 9, 1), 7, np.uint16)
wide[2, 1] = 1000
mask("wide", wide)
rgb = np.full((8, 9, 3), 7, np.uint8)
rgb[4, 6] = 1, 2, 3
mask("rgb", rgb)
mask("rgb16", rgb.astype(np.uint16))
rgba = np.concatenate([rgb, np.full((8, 9, 1), 255, np.uint8)], 2)
rgba[7, 8, 3] = 254
mask("rgba", rgba)
mask("la", np.concatenate([gray, rgba[..., 3:]], 2))
mask("palette", gray, palette=np.arange(27, dtype=np.uint8).reshape(9, 3))
mask("short", gray, palette=np.arange(24, dtype=np.uint8).reshape(8, 3))
PY
printf '7 1\n' >seven && printf '* 9\n7 1\n' >others && printf '7 7 7 1\n21 22 23 2\n' >of.colours
why() { # why MASK OPTIONS SENTENCE: the one image has this mask, and that is why it is bad
	printf 'path,label,m\none/a/x.png,0,m/%s.png\n' "$1" >t.csv
	run 1 "$PACK" images t.csv -o no -q --resize 8 --field "m:kind=mask$2" --report no.json
	[ "$(json no.json 'd["bad_inputs"][0]["message"]')" = "field m, m/$1.png: PNG $3" ] ||
		die "$1$2: $(json no.json 'd["bad_inputs"]')"
	rm -rf no no.json
}
not_listed="which is not in the map; add a line for it, or '* CLASS' for all others"
why gray8 ,map=seven "has the value 8 at column 3 of row 5, $not_listed"
why gray8i ,map=seven "has the value 8 at column 3 of row 5, $not_listed"
why wide ,map=seven "has the value 1000 at column 1 of row 2, $not_listed"
why rgb ,map=of.colours "has the colour 1 2 3 at column 6 of row 4, $not_listed"
why gray8 ,map=of.colours "has the colour 8 8 8 at column 3 of row 5, $not_listed"
why palette ,map=of.colours "has the colour 24 25 26 at column 3 of row 5, $not_listed"
why short ,map=of.colours "data is damaged: palette index 8, but the palette ends at 7"
why rgba ,map=of.colours "has the colour 1 2 3 at column 6 of row 4, $not_listed"
opaque="only opaque pixels, 255, have a class; save it without alpha"
why rgba ,dtype=u32 "has the alpha 254 at column 8 of row 7: $opaque"
why la ,dtype=u16 "has the alpha 254 at column 8 of row 7: $opaque"
why rgb16 ,dtype=u32 "has 3 channels of 16 bits: save the mask with 8 bits"
why rgb ,map=others "has 3 channels, and the map has values: give lines 'R G B CLASS'"
why wide ,map=of.colours "is gray with 16 bits, and the map has colours: give lines 'VALUE CLASS'"
why palette ,dtype=u16 \
	"has a palette: for its indices leave dtype out, for the ids of its colours save it as RGB"
why rgb ,dtype=u16 "has the colour 7 7 7 at column 0 of row 0, number 460551: u16 holds 0 to 65535; give dtype=u32"
why wide "" "has the value 1000 at column 1 of row 2: a mask of u8 holds 0 to 255; dtype=u16 takes it"
why rgb "" "has 3 channels: a mask has one, save it as gray or with a palette; or give map=FILE, or dtype=u32 for ids \
R + 256 G + 65536 B"
printf '7 1\n8 2\n' >seven.8
for good in gray8,map=others wide,map=others wide,dtype=u16 wide,dtype=u32 palette short palette,map=seven.8 gray \
	rgb,dtype=u32; do
	printf 'path,label,m\none/a/x.png,0,m/%s.png\n' "${good%%,*}" >t.csv
	run 0 "$PACK" images t.csv -o yes -q --resize 8 --replace --field "m:kind=mask${good#"${good%%,*}"}"
done

# ---- maps and options that cannot be ----

printf 'path,label,m\none/a/x.png,0,m/gray.png\n' >t.csv
ARGS=(-q --resize 8)
VERB=(images t.csv)
bad_map() { # bad_map TEXT SENTENCE
	printf "$1" >bad.map
	refused 1 "--field m: map=bad.map: $2" --field m:kind=mask,map=bad.map
}
bad_map '7 1\n7 2' "line 2: this value is there twice"
bad_map '7 7 7 1\n7 7 7 1' "line 2: this colour is there twice"
bad_map '* 1\n7 7 7 1\n* 2' "line 3: a line '* CLASS' is there twice"
kinds="a map has colours 'R G B CLASS' or values 'VALUE CLASS', not both"
bad_map '7 1\n7 7 7 1' "line 2: the lines before have values; $kinds"
bad_map '7 7 7 1\n7 1' "line 2: the lines before have colours; $kinds"
form="must be 'R G B CLASS', 'VALUE CLASS' or '* CLASS': four or two words, not"
bad_map '7' "line 1: $form 1"
bad_map '# x\n7 1 road' "line 2: $form 3"
bad_map '1 2 3 4 5' "line 1: $form more than 4"
bad_map '7 -1' "line 1: '-1' must be a whole number, 0 to 4294967295"
bad_map '70000 1' "line 1: '70000' must be a whole number, 0 to 65535"
bad_map '256 0 0 1' "line 1: '256' must be a whole number, 0 to 255"
bad_map "$(seq 0 4096 | sed 's/$/ 1/')" "line 4097: more than the limit of 4096 lines"
seq 0 4095 | sed 's/$/ 1/' >full.map
refused 1 "--field e: map=full.map: with this one, all maps have 20480 lines; the limit is 16384" \
	--field={a,b,c,d,e}:kind=mask,from=m,map=full.map
refused 3 "--field m: map=gone: No such file or directory" --field m:kind=mask,map=gone
misused() { # misused OPTIONS SENTENCE
	run 2 "$PACK" images t.csv -o no "${ARGS[@]}" --field "m:kind=mask,$1"
	said_only "shardpack: --field ${3-m}: $2
try 'shardpack images --help=fields'"
}
printf '7 256\n* 70000' >large && : >empty && printf '* 1' >rest
misused map=large "map=large: class 70000 is above 255; give dtype=u32"
misused map=empty "map=empty: no line has a colour or a value"
misused map=rest "map=rest: no line has a colour or a value"
misused dtype=i64 "dtype=i64: must be u8, u16 or u32 for a mask" m:kind=mask,dtype=i64
misused dtype=u16,fill=65536 "fill=65536: must be a whole number, 0 to 65535" m:kind=mask,dtype=u16,fill=65536

# ---- a plan that somebody changed: a map has one form ----


for edit in s,=0-255/7-0,=7-0/0-255, s,7-0/11,7-00/11, s,7-0/11,7.0/11, s,7-0/11,7-0//11, s,=0-255,=0-70000, \
	s,else-65535,else-65535/, s,else-,e*se-, s,map=0.*,map=, s,dtype=u16,dtype=u8, s,dtype=u16,dtype=i16, \
	s,dtype=u32,dtype=u32:map=else-1,; do
	n=$((n + 1))
	replan "${edit/:/\\,}" plan "t$n"
	run 1 "$PACK" build "t$n"
	grep -q "^shardpack: t$n/.shardpack/plan: line [0-9]*: .*; this is not a plan that shardpack wrote$" err ||
		die "$edit: $(cat err)"
done
# The edit that changes nothing shows that the others failed for what they changed.
replan s/x/x/ plan same
run 0 "$PACK" build same -q && run 0 "$PACK" seal same -q
same planned same
echo "$n maps and plans that cannot be"
