/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_pack_heads.c - any bytes as the head of a NumPy array, of an IDX file, as an xz, and as the
 * text of --schema
 *
 * What is accepted must be what later code relies on: sizes that do not wrap, types that exist,
 * names that end.
 */
#include "tests/fuzz/fuzz.h"
#include "tools/shardpack/parse/parse.h"
#include "tools/shardpack/sources/sources.h"

static void check_why(const char *why, size_t room)
{
	must(why[0] && memchr(why, 0, room), "a refusal has no reason");
}

/* The product of the axes and the size of an element, or 2^64 - 1. */
static uint64_t product(const uint64_t *shape, uint32_t ndim, uint32_t dtype)
{
	uint64_t bytes = shard_dtype_bytes(dtype);

	for (uint32_t i = 0; i < ndim; i++)
		if (__builtin_mul_overflow(bytes, shape[i], &bytes))
			return UINT64_MAX;
	return bytes;
}

static void use_npy(const uint8_t *data, size_t size)
{
	struct npy a;
	char why[256] = "";

	if (!npy_parse(data, size, &a, why, sizeof(why))) {
		check_why(why, sizeof(why));
		return;
	}
	must(shard_dtype_bytes(a.dtype), "an array has no type");
	must(a.ndim <= NPY_DIMS_MAX, "an array has too many axes");
	must(a.data_offset >= 10 && a.data_offset <= size, "the data of an array begin outside of the file");
	must(a.data_bytes < UINT64_C(1) << 62, "an array is too large");
	for (uint32_t i = 0; i < a.ndim; i++)
		if (!a.shape[i])
			return; /* no elements, in whatever order one multiplies */
	must(product(a.shape, a.ndim, a.dtype) == a.data_bytes, "an array has another size than its shape");
}

static void use_idx(const uint8_t *data, size_t size)
{
	struct npy x;
	char why[256] = "";

	if (!idx_parse(data, size, &x, why, sizeof(why))) {
		check_why(why, sizeof(why));
		return;
	}
	must(shard_dtype_bytes(x.dtype) && x.ndim >= 1 && x.ndim <= IDX_DIMS_MAX, "an IDX file has no type or no axes");
	must(x.data_offset <= size && x.data_bytes < UINT64_C(1) << 62, "the data of an IDX file lie outside of it");
}

static void use_schema(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1), why[256] = "";
	struct raw_schema s;
	uint64_t at = 0;

	must(text, "no memory");
	memcpy(text, data, size);
	text[size] = '\0';
	if (!raw_schema_parse(text, &s, why, sizeof(why))) {
		check_why(why, sizeof(why));
		free(text);
		return;
	}
	must(s.field_count && s.record_bytes && s.record_bytes <= RAW_RECORD_BYTES_MAX, "a record has no bytes");
	for (uint32_t i = 0; i < s.field_count; i++) {
		const struct raw_field *f = &s.field[i];

		must(f->name[0] && memchr(f->name, 0, sizeof(f->name)), "a field has no name");
		must(f->offset == at, "a field does not follow the one before");
		at += product(f->shape, f->ndim, f->dtype);
	}
	must(at == s.record_bytes, "the fields are not the record");
	free(text);
}

static void use_tokens(const uint8_t *data, size_t size)
{
	static struct token_census census;
	struct megatron_index index;
	struct token_look look;
	uint64_t counted = 0;
	char why[256] = "";

	if (megatron_index_parse(data, size, size, &index, why, sizeof(why)))
		must(shard_dtype_bytes(index.dtype) && index.lengths_at <= index.begins_at &&
			     index.begins_at <= index.documents_at &&
			     index.documents_at + 8 * (index.document_count + 1) == size,
		     "an index has tokens of no type, or arrays that are not the rest of it");
	else
		check_why(why, sizeof(why));
	memset(&census, 0, sizeof(census));
	token_census_add(&census, data, size);
	for (unsigned k = 0; k < TOKEN_WIDTH_PLACES; k++)
		counted += census.count[k];
	must(counted == size / 2, "numbers were not counted");
	must(token_census_judge(&census, &look), "no memory");
	must(look.percent <= 100 && look.number <= UINT16_MAX, "a share of more than all");
}

/* In pieces it is what it is at once. */
static void use_xz(const uint8_t *data, size_t size)
{
	struct xz_walk whole, pieces;
	bool good = true, is_one;

	xz_walk_start(&whole);
	xz_walk_start(&pieces);
	is_one = xz_walk(&whole, data, size);
	for (size_t at = 0; good && at < size; at += at % 7 + 1)
		good = xz_walk(&pieces, data + at, size - at < at % 7 + 1 ? size - at : at % 7 + 1);
	must(good == is_one && whole.dictionary_bytes == pieces.dictionary_bytes, "pieces of an xz are another one");
	must(whole.dictionary_bytes <= UINT32_MAX && whole.have <= whole.need && whole.need <= sizeof(whole.head),
	     "a part of an xz has no room");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	use_npy(data, size);
	use_idx(data, size);
	use_schema(data, size);
	use_tokens(data, size);
	use_xz(data, size);
	return 0;
}

/* ---- libFuzzer ---- */

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t size_max, unsigned seed)
{
	static const char *const words[] = {"{",
					    "}",
					    "(",
					    ")",
					    ",",
					    ":",
					    "'",
					    "'descr'",
					    "'fortran_order'",
					    "'shape'",
					    "True",
					    "False",
					    "'<f4'",
					    "'>i2'",
					    "'|u1'",
					    "4294967296",
					    "1152921504606846976",
					    "[",
					    "]",
					    "u8",
					    "-:",
					    "x"};
	struct dice d = dice(seed);
	const char *word = words[dice_roll(&d, sizeof(words) / sizeof(words[0]))];
	size_t at, bytes = strlen(word);

	if (!size || dice_roll(&d, 2) || size + bytes > size_max)
		return LLVMFuzzerMutate(data, size, size_max);
	at = (size_t)(dice_draw(&d) % size);
	memmove(data + at + bytes, data + at, size - at);
	memcpy(data + at, word, bytes);
	return size + bytes;
}
