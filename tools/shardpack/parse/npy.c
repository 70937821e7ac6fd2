/* SPDX-License-Identifier: Apache-2.0 */
/*
 * npy.c - the heads of array files: NumPy's and MNIST's
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "shard.h"
#include "tools/shardpack/parse/parse.h"

/* ---- .npy ---- */

/*
 * The head is the text of a Python dict with three keys, in any order.  Only what NumPy itself
 * writes of Python is understood: strings without escapes, True and False, a tuple of integers.
 */

#define DATA_BYTES_MAX (UINT64_C(1) << 60)

struct cursor {
	const uint8_t *begin, *at, *end;
	char *why;
	size_t why_bytes;
};

__attribute__((format(printf, 2, 3))) static bool wrong(struct cursor *c, const char *fmt, ...)
{
	int used = snprintf(c->why, c->why_bytes, "offset %td: ", c->at - c->begin);
	va_list ap;

	va_start(ap, fmt);
	if (used >= 0 && (size_t)used < c->why_bytes)
		vsnprintf(c->why + used, c->why_bytes - (size_t)used, fmt, ap);
	va_end(ap);
	return false;
}

static void skip_blanks(struct cursor *c)
{
	while (c->at < c->end && (*c->at == ' ' || *c->at == '\t' || *c->at == '\n'))
		c->at++;
}

/* A mark such as '{', with blanks before it. */
static bool take(struct cursor *c, char mark)
{
	skip_blanks(c);
	if (c->at == c->end || *c->at != (uint8_t)mark)
		return false;
	c->at++;
	return true;
}

static bool take_string(struct cursor *c, char *out, size_t out_bytes)
{
	const uint8_t *start;
	uint8_t quote;

	skip_blanks(c);
	if (c->at == c->end || (*c->at != '\'' && *c->at != '"'))
		return false;
	quote = *c->at;
	start = ++c->at;
	while (c->at < c->end && *c->at != quote && *c->at != '\\' && *c->at >= ' ' && *c->at < 127)
		c->at++;
	if (c->at == c->end || *c->at != quote || (size_t)(c->at - start) >= out_bytes)
		return false;
	memcpy(out, start, (size_t)(c->at - start));
	out[c->at - start] = '\0';
	c->at++;
	return true;
}

static bool take_word(struct cursor *c, const char *word)
{
	skip_blanks(c);
	if ((size_t)(c->end - c->at) < strlen(word) || memcmp(c->at, word, strlen(word)))
		return false;
	c->at += strlen(word);
	return true;
}

static bool take_number(struct cursor *c, uint64_t *out)
{
	const uint8_t *start;

	skip_blanks(c);
	*out = 0;
	for (start = c->at; c->at < c->end && *c->at >= '0' && *c->at <= '9'; c->at++) {
		if (*out > DATA_BYTES_MAX)
			return false;
		*out = *out * 10 + (uint64_t)(*c->at - '0');
	}
	if (c->at == start)
		return false;
	if (c->at < c->end && *c->at == 'L') /* as Python 2 wrote it */
		c->at++;
	return true;
}

static bool take_descr(struct cursor *c, struct npy *out)
{
	static const struct {
		char type[3];
		uint32_t dtype;
	} types[] = {{"u1", SHARD_U8},	{"i1", SHARD_I8},   {"u2", SHARD_U16}, {"i2", SHARD_I16}, {"u4", SHARD_U32},
		     {"i4", SHARD_I32}, {"u8", SHARD_U64},  {"i8", SHARD_I64}, {"f2", SHARD_F16}, {"f4", SHARD_F32},
		     {"f8", SHARD_F64}, {"b1", SHARD_BOOL}, {"V2", SHARD_BF16}};
	char descr[32];

	skip_blanks(c);
	if (c->at < c->end && *c->at == '[')
		return wrong(c, "an array of structures; save its fields as arrays of their own");
	if (!take_string(c, descr, sizeof(descr)))
		return wrong(c, "the dtype is not a string of a few characters");
	out->swap = descr[0] == '>';
	out->unnamed = !strcmp(descr, "<V2") || !strcmp(descr, "|V2"); /* ml_dtypes has no other order */
	if (descr[0] && strchr("<>|=", descr[0]))
		for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
			if (!strcmp(descr + 1, types[i].type) && (types[i].dtype != SHARD_BF16 || out->unnamed)) {
				out->dtype = types[i].dtype;
				return true;
			}
	if (strchr(descr, 'O'))
		return wrong(c, "dtype '%s': Python objects, which only Python can read; save numbers instead", descr);
	return wrong(c, "dtype '%s' is not supported; convert the array to integers, f2, f4, f8 or bool", descr);
}

static bool take_shape(struct cursor *c, struct npy *out)
{
	if (!take(c, '('))
		return wrong(c, "the shape is not a tuple");
	while (!take(c, ')')) {
		if (out->ndim == NPY_DIMS_MAX)
			return wrong(c, "more than %d axes", NPY_DIMS_MAX);
		if (!take_number(c, &out->shape[out->ndim]))
			return wrong(c, "axis %" PRIu32 " of the shape is not a number below 2^60", out->ndim);
		out->ndim++;
		if (!take(c, ',') && (out->ndim == 1 || c->at == c->end || *c->at != ')'))
			return wrong(c, "a comma is missing in the shape");
	}
	return true;
}

static bool take_order(struct cursor *c, struct npy *out)
{
	out->fortran = take_word(c, "True");
	return out->fortran || take_word(c, "False") || wrong(c, "fortran_order is neither True nor False");
}

static bool take_dict(struct cursor *c, struct npy *out)
{
	static const struct {
		const char *name;
		bool (*read)(struct cursor *c, struct npy *out);
	} keys[] = {{"descr", take_descr}, {"fortran_order", take_order}, {"shape", take_shape}};
	bool seen[3] = {false};
	char key[32];
	size_t i;

	if (!take(c, '{'))
		return wrong(c, "the head is not a dict");
	while (!take(c, '}')) {
		if (!take_string(c, key, sizeof(key)) || !take(c, ':'))
			return wrong(c, "a key of the head is missing");
		for (i = 0; i < 3 && strcmp(key, keys[i].name); i++)
			;
		if (i == 3 || seen[i])
			return wrong(c, "key '%s' is %s", key,
				     i < 3 ? "there twice" : "none of descr, fortran_order, shape");
		seen[i] = true;
		if (!keys[i].read(c, out))
			return false;
		if (!take(c, ',')) {
			if (!take(c, '}'))
				return wrong(c, "the head does not go on as a dict does");
			break;
		}
	}
	skip_blanks(c);
	if (c->at != c->end)
		return wrong(c, "something follows the dict");
	for (size_t k = 0; k < 3; k++)
		if (!seen[k])
			return wrong(c, "the head has no key '%s'", keys[k].name);
	return true;
}

bool npy_parse(const uint8_t *bytes, size_t size, struct npy *out, char *why, size_t why_bytes)
{
	struct cursor c = {bytes, bytes, bytes + size, why, why_bytes};
	uint64_t head_bytes, prefix = 10;

	memset(out, 0, sizeof(*out));
	if (size < 10 || memcmp(bytes, NPY_MAGIC, NPY_MAGIC_BYTES))
		return wrong(&c, "not an array file of NumPy (%zu bytes)", size);
	c.at += NPY_MAGIC_BYTES;
	if (bytes[6] < 1 || bytes[6] > 3)
		return wrong(&c, "version %u of the format; 1 to 3 are known", bytes[6]);
	head_bytes = (uint64_t)bytes[8] | (uint64_t)bytes[9] << 8;
	if (bytes[6] > 1) {
		prefix = 12;
		for (unsigned i = 2; i < 4 && size >= 12; i++)
			head_bytes |= (uint64_t)bytes[8 + i] << (8 * i);
	}
	c.at = bytes + 8;
	if (size < prefix || head_bytes > NPY_HEAD_BYTES_MAX - prefix)
		return wrong(&c, "a head of %" PRIu64 " bytes; the limit is %" PRIu64, head_bytes,
			     NPY_HEAD_BYTES_MAX - prefix);
	if (head_bytes > size - prefix)
		return wrong(&c, "a head of %" PRIu64 " bytes, but the file ends before", head_bytes);
	c.at = bytes + prefix;
	c.end = c.at + head_bytes;
	out->data_offset = prefix + head_bytes;
	if (!take_dict(&c, out))
		return false;
	out->data_bytes = shard_dtype_bytes(out->dtype);
	for (uint32_t i = 0; i < out->ndim; i++) {
		if (out->shape[i] && out->data_bytes > DATA_BYTES_MAX / out->shape[i])
			return wrong(&c, "the shape asks for more than 2^60 bytes");
		out->data_bytes *= out->shape[i];
	}
	return true;
}

/* ---- IDX, in which MNIST is distributed ---- */

bool idx_parse(const uint8_t *bytes, size_t size, struct npy *out, char *why, size_t why_bytes)
{
	static const uint8_t dtypes[] = {[0x08] = SHARD_U8,  [0x09] = SHARD_I8,	 [0x0b] = SHARD_I16,
					 [0x0c] = SHARD_I32, [0x0d] = SHARD_F32, [0x0e] = SHARD_F64};

	memset(out, 0, sizeof(*out));
	if (size < 4 || bytes[0] || bytes[1]) {
		snprintf(why, why_bytes,
			 "not an IDX file: it must begin with two zero bytes, a type and a number of axes");
		return false;
	}
	out->swap = true;
	out->dtype = bytes[2] < sizeof(dtypes) ? dtypes[bytes[2]] : 0;
	out->ndim = bytes[3];
	if (!out->dtype || !out->ndim || out->ndim > IDX_DIMS_MAX) {
		snprintf(why, why_bytes, "type 0x%02x and %u axes; must be type 0x08 to 0x0e and 1 to %d axes",
			 bytes[2], bytes[3], IDX_DIMS_MAX);
		return false;
	}
	out->data_offset = 4 + 4 * (uint64_t)out->ndim;
	if (size < out->data_offset) {
		snprintf(why, why_bytes, "ends at offset %zu, within the head of %" PRIu64 " bytes", size,
			 out->data_offset);
		return false;
	}
	out->data_bytes = shard_dtype_bytes(out->dtype);
	for (uint32_t i = 0; i < out->ndim; i++) {
		const uint8_t *b = bytes + 4 + 4 * (size_t)i;

		out->shape[i] = (uint64_t)b[0] << 24 | (uint64_t)b[1] << 16 | (uint64_t)b[2] << 8 | b[3];
		if (out->shape[i] && out->data_bytes > DATA_BYTES_MAX / out->shape[i]) {
			snprintf(why, why_bytes, "the axes ask for more than 2^60 bytes");
			return false;
		}
		out->data_bytes *= out->shape[i];
	}
	return true;
}
