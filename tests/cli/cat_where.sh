#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# cat_where.sh - shardcat select --where compares numbers of every dtype as NumPy does, and strings
. "${ROOT:-$(dirname "$0")/../..}/tests/cli/lib.sh"

"$PYTHON" - <<'EOF'
import itertools, math, os, subprocess
import numpy as np

CAT, PACK = os.environ["CAT"], os.environ["PACK"]
signs = {"=": np.equal, "!=": np.not_equal, "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}
names = {"u8": "u1", "i8": "i1", "u16": "u2", "i16": "i2", "u32": "u4", "i32": "i4", "u64": "u8", "i64": "i8",
         "f16": "f2", "f32": "f4", "f64": "f8", "bf16": "u2"}
n = 9000  # more than are read at a time
rng = np.random.default_rng(3)
a = np.zeros(n, [(k, "<" + t) for k, t in names.items()])
values = {k: a[k].astype("f4") if k == "bf16" else a[k] for k in names}
for k in names:
    if k in ("f16", "f32", "f64", "bf16"):
        x = rng.choice([0.1, -0.1, 0.5, 1e-7, 0, np.inf, -np.inf, np.nan, 3], n)
        if k == "bf16":
            bits = x.astype("f4").view("u4")
            a[k] = np.where(np.isnan(x), 0x7fc0, (bits + 0x7fff + (bits >> 16 & 1)) >> 16)
            values[k] = (a[k].astype("u4") << 16).view("f4")
            continue
        a[k] = x
    else:
        i = np.iinfo(names[k])
        a[k] = np.array([i.min, 0, 1, 17, i.max - 1, i.max], i.dtype)[rng.integers(0, 6, n)]
    values[k] = a[k]
a.tofile("numbers.bin")
subprocess.run([PACK, "raw", "numbers.bin", "--schema", ",".join(f"{k}:{k}" for k in names), "-o", "ds", "--order",
                "source", "--shard-records", "5000", "-q"], check=True)

def select(*where):
    run = subprocess.run([CAT, "select", "ds", "--list"] + [w for c in where for w in ("--where", c)],
                         capture_output=True, text=True)
    return run.returncode, np.array(run.stdout.split(), "i8"), run.stderr

def check(want, *where):
    rc, got, err = select(*where)
    want = np.flatnonzero(want)
    if len(want):
        assert rc == 0 and got.tolist() == want.tolist(), (where, rc, err, got, want)
    else:
        assert rc == 2 and ("no record fits" in err or "selects none" in err), (where, rc, err)

count = 0
for k in names:
    if k in ("f16", "f32", "f64", "bf16"):
        limits = ["0.1", "0.5", "1e-7", "inf", "-inf", "0", "-1e300"]
    else:
        i = np.iinfo(names[k])
        limits = [str(v) for v in (i.min, 17, i.max, i.max - 1)] + ["-5"] * (i.min == 0)
    for text, sign in itertools.product(limits, signs):
        if text == "-5":
            want = signs[sign](1, -5) * np.ones(n, bool)
        elif text == "-1e300":  # which does not become an infinity, as it would in NumPy
            want = signs[sign](values[k].astype("f8"), -1e300)
        elif k == "bf16":
            bits = np.array([text], "f8").astype("f4").view("u4")
            limit = (((bits + 0x7fff + (bits >> 16 & 1)) >> 16) << 16).view("f4")[0]
            want = signs[sign](values[k], limit if math.isfinite(float(text)) else np.float32(text))
        else:
            want = signs[sign](values[k], values[k].dtype.type(float(text) if "f" in k else int(text)))
        check(want, k + sign + text)
        count += 1
check((a["u16"] >= 17) & (a["f64"] < 0.5) & (a["i8"] != 0), "u16>=17", "f64<0.5", "i8!=0")
check(np.isin(a["u8"], [0, 17]), "u8=17,0")
assert count > 300, count
EOF

# Strings by equality, to their end: one may begin as another does, and contain any sign.
make_images src 3 1
{
	echo path,label,caption
	find src -type f | sort | awk '{print $0 ",0,\"" (NR == 1 ? "a cat" : NR == 2 ? "a cat, a=b<c" : "") "\""}'
} >t.csv
run 0 "$PACK" images t.csv -o named --resize 8 --crop 8 --order source --field caption:kind=text,max=16 -q

# selected WANT CONDITION
selected() {
	run 0 "$CAT" select named --list --where "$2"
	[ "$(tr '\n' ' ' <out)" = "$1 " ] || die "$2: $(cat out)"
}
selected 0 'caption=a cat'
selected 1 'caption=a cat, a=b<c'
selected 2 'caption='
selected '1 2' 'caption!=a cat'
selected '0 1' 'caption!='

# refused DS WORDS CONDITION
refused() {
	run 2 "$CAT" select "$1" --list --where "$3"
	grep -q -F -e "$2" err || die "--where $3: $(cat err)"
}
refused named 'no record fits --where caption=a ca' 'caption=a ca'
refused named 'caption is a string; only = and != compare strings' 'caption<a'
refused named 'image has several numbers in each record' 'image>3'
refused named "there is no class of that name" 'label!=unicorn'
refused named "'c0' must be a whole number" 'label<c0'
refused named 'must be FIELD=VALUE,..., or a field, one of != < <= > >=, and a value' 'label'
refused named "named has no field 'cat'" 'cat>3'
refused named "named has no field 'caption '" 'caption = a cat'
mkdir -p two/a two/b,c
for folder in two/*; do
	find src -type f -exec cp {} "$folder" \;
done
run 0 "$PACK" images two -o two.ds --resize 8 --crop 8 -q
refused two.ds "--where label=b,c: a comma divides values; give the index of that class, 1" 'label=b,c'
refused two.ds "--where label=b: there is no class of that name" 'label=b'
refused ds "'0.5' must be a whole number" 'u8>0.5'
for text in 0.5,1 '' nan 0x10 0x1p3 +5 ' 5' '5 ' 1_000 1e 1e+ . - --5 'nan(1)' 1e5e5; do
	refused ds "'$text' must be a decimal number" "f32=$text"
done
for text in 0x10 +5 ' 5' 5e0 1_0 - ''; do
	refused ds "'$text' must be a whole number" "u8>$text"
done
