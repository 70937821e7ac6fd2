#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/python/clients/types.sh - what type checkers think of the installed package, and of a
# program that uses it
# TIMEOUT: 900
. "${0%/*}/lib.sh"
MYPY_CACHE_DIR=$TMPDIR/cache
export MYPY_CACHE_DIR
printf '[mypy]\n[mypy-datasets.*,h5py.*,jax.*,pandas.*,polars.*,pyarrow.*]\nignore_missing_imports = True\n[mypy-shardfmt]\nfollow_imports = silent\n' >mypy.ini
python -m mypy --strict -p libshard._core -m libshard._cluster -m libshard.ray -m libshard.dask -m libshard.submitit
# Names of NumPy's are looked up by another method, and before 3.12 a buffer has none.
printf '%s\n' 'libshard\._core\.Array\.__(getattr|buffer)__' >allowed
python -m mypy.stubtest --ignore-disjoint-bases --allowlist allowed libshard._core
cat >right.py <<-'END'
	import libshard._core

	ds = libshard.open("set")
	loader = libshard.Loader(ds, 8, shuffle="global")
	for batch in loader:
	    pointer: int = batch["image"].data_ptr
	    rows: libshard.Array = batch.index
	shape: tuple[int, ...] = ds.schema["image"].shape
	some: dict[str, libshard.Array] = ds[[1, 2]]
	rows_of: int = ds[17]["image"].shape[0] + ds.by_key("cat/17.jpg")["label"]
	crop = libshard.Transform(crop="random", size=8)
	tuned = libshard.Loader(ds, 8, tail="pad", path="map", transform=[crop, lambda batch: batch.to("cpu")])
	mixed = libshard.mix([ds, ds], stop="shortest")
	END

# Blocks of all documents as files.  They stand one behind the other, so that a name stands for several things;
# functions in them have no hints, and a class is that of a package without types.
mkdir pages
(
	cd "$ROOT"
	. tests/tree/lib.sh
	tree_files | grep '\.md$' | xargs python3 tests/python/clients/page_types.py "$TMPDIR/pages"
) >count

# Pyright comes as basedpyright, which brings its node along: the package pyright loads itself from npm.
pyright() {
	PATH=$VENV/bin:$PATH basedpyright "$@"
}
# All that programs get from libshard has a type.  Grain is not installed here, so what its classes add has none.
pyright --verifytypes libshard --ignoreexternal >said || :
grep -q '^Symbols exported by "libshard": [0-9][0-9]' said
sed -n '/^Symbols used in public interface/,/^Symbols exported/s/^libshard\./&/p' said >untyped
grep -q '^libshard\.grain' untyped
! grep -v '^libshard\.\(grain\..*\|\(dask\|ray\|submitit\)\.\(program\|build\)\)$' untyped || exit 1

# The rules are pyright's "standard" ones, less some that say nothing of libshard: a package has names that
# it does not list, as PyTorch does; a loop may have no turn; a page shows a value; and a stub is no module.
cat >pyrightconfig.json <<-'END'
	{"typeCheckingMode": "standard", "stubPath": "pages/stubs", "extraPaths": ["@"], "reportPrivateImportUsage": "none",
	 "reportPossiblyUnboundVariable": "none", "reportUnusedExpression": "none", "reportMissingModuleSource": "none"}
	END
sed -i "s,@,$ROOT/format," pyrightconfig.json
sed 's/pointer: int/pointer: str/; s/shuffle="global"/shuffle="globl"/; s/some: dict\[str, libshard.Array\]/some: int/
	s/crop="random"/crop="randon"/; s/tail="pad"/tail="pat"/; s/path="map"/path="mapp"/; s/"shortest"/"short"/' right.py >wrong.py
for checker in 'python -m mypy --strict' pyright; do
	$checker right.py
	said=$($checker wrong.py || :)
	[ "$(echo "$said" | grep -c 'error:\|- error')" = 7 ] || { echo "seven mistakes, and $checker says: $said" && exit 1; }
done

pages() { # what both checkers say
	said=0
	MYPYPATH=pages/stubs:pages:$ROOT/format python -m mypy --strict --allow-redefinition-new --local-partial-types \
		--implicit-reexport --allow-untyped-defs --allow-untyped-calls --allow-any-generics --allow-subclassing-any \
		pages/*.py || said=1
	pyright pages/*.py || said=$((said + 2))
	return "$said"
}
pages
sed -i 's/max_steps=100/max_step=100/' pages/docs_PYTHON.py
sed -i 's/shuffle=False/shuffle="of"/' pages/docs_tutorials_photographs.py
set +e
pages >said
[ $? = 3 ] || { echo "two mistakes were not seen" && exit 1; }
set -e
[ "$(grep -c 'max_step\b' said)" -ge 2 ] && [ "$(grep -c 'docs_tutorials_photographs.py:.*error' said)" -ge 2 ]
echo "the package, its stubs, seven mistakes of a user, and $(cat count) blocks of the documents, by mypy and pyright"
