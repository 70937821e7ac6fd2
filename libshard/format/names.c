/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names.c - the names that manifests, recipes and people use for numbers
 *
 * A row's place is its number on disk, for ever.
 */
#include "libshard/format/format.h"
#include "shard_inspect.h"
#include "shard_transform.h"

#include <string.h>

static const struct {
	const char *name;
	size_t bytes;
} dtypes[] = {
	[SHARD_U8] = {"u8", 1},	    [SHARD_I8] = {"i8", 1},	[SHARD_U16] = {"u16", 2}, [SHARD_I16] = {"i16", 2},
	[SHARD_U32] = {"u32", 4},   [SHARD_I32] = {"i32", 4},	[SHARD_U64] = {"u64", 8}, [SHARD_I64] = {"i64", 8},
	[SHARD_F16] = {"f16", 2},   [SHARD_BF16] = {"bf16", 2}, [SHARD_F32] = {"f32", 4}, [SHARD_F64] = {"f64", 8},
	[SHARD_BOOL] = {"bool", 1},
};
static const char *const kinds[] = {"tensor", "ragged", "string"};
static const char *const layouts[] = {"none", "hwc", "chw", "yuv420", "tokens"};
static const char *const semantics[] = {"none", "image", "label", "length", "tokens", "mask", "boxes", "text"};
static const char *const codecs[] = {"raw", "lz4"};
static const char *const sections[] = {NULL, "DATA", "HASH", "CIDX", "KOFF", "KBLB", "STAT", "MISS", "PROV"};
static const char *const reasons[] = {
	NULL,	       "empty",	  "not an image", "decoder failed", "damaged",	 "truncated",  "over a limit",
	"unsupported", "bad key", "missing",	  "incomplete",	    "bad value", "bad member", "vanished",
};

static const char *const pixel_names[] = {
	[SHARD_PIXELS_ROWS_FIRST] = "rows-first",
	[SHARD_PIXELS_PILLOW_12] = "pillow-12",
	[SHARD_PIXELS_PILLOW_13] = "pillow-13",
};

#define ROW(table, i) ((i) < sizeof(table) / sizeof((table)[0]) ? (table)[i] : NULL)

const char *shard_name(enum shard_name_of what, uint32_t value)
{
	switch (what) {
	case SHARD_NAME_DTYPE:
		return value < sizeof(dtypes) / sizeof(dtypes[0]) ? dtypes[value].name : NULL;
	case SHARD_NAME_KIND:
		return ROW(kinds, value);
	case SHARD_NAME_LAYOUT:
		return ROW(layouts, value);
	case SHARD_NAME_SEMANTIC:
		return ROW(semantics, value);
	case SHARD_NAME_CODEC:
		return ROW(codecs, value);
	case SHARD_NAME_PIXELS:
		return ROW(pixel_names, value);
	case SHARD_NAME_MISS_REASON:
		return ROW(reasons, value);
	case SHARD_NAME_SECTION:
		return ROW(sections, value);
	}
	return NULL; /* callers can pass any number */
}

const char *section_name(uint32_t type)
{
	const char *name = shard_name(SHARD_NAME_SECTION, type);

	return name ? name : "?";
}

size_t shard_dtype_bytes(uint32_t dtype)
{
	return dtype < sizeof(dtypes) / sizeof(dtypes[0]) ? dtypes[dtype].bytes : 0;
}

int name_find(enum shard_name_of what, const char *text, size_t bytes, uint32_t *out)
{
	for (uint32_t i = 0; i < 32; i++) {
		const char *name = shard_name(what, i);

		if (name && strlen(name) == bytes && !memcmp(name, text, bytes)) {
			*out = i;
			return 1;
		}
	}
	return 0;
}
