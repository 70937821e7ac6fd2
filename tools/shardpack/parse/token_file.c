/* SPDX-License-Identifier: Apache-2.0 */
/*
 * token_file.c - files of tokens: their heads, and what numbers without a head look like
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libshard/base/bytes.h"
#include "shard.h"
#include "tools/shardpack/parse/parse.h"

/* ---- heads ---- */

/*
 * A file without a head could begin with the magic of one by chance: as u16 that would be two
 * certain tokens, then 1 and 0, which no text of a real vocabulary begins with.  So magic and
 * version together decide.
 */

#define MAGIC_GPT2  20240520u
#define MAGIC_EVAL  20240522u /* multiple choice: not a stream */
#define MAGIC_LLAMA 20240801u

bool token_file_parse(const uint8_t *bytes, size_t size, struct token_file *out, char *why, size_t why_bytes)
{
	uint32_t magic = size >= 8 ? load32(bytes) : 0, version = size >= 8 ? load32(bytes + 4) : 0;
	uint32_t known = magic == MAGIC_GPT2 ? 1 : 7;

	memset(out, 0, sizeof(*out));
	if (magic == MAGIC_EVAL) {
		snprintf(why, why_bytes, "a file of evaluation questions (magic %u), not a stream of tokens", magic);
		return false;
	}
	if (magic != MAGIC_GPT2 && magic != MAGIC_LLAMA)
		return true;
	if (version != known) {
		snprintf(why, why_bytes, "magic %u with version %u; %u is known", magic, version, known);
		return false;
	}
	if (size < TOKEN_FILE_HEAD_BYTES) {
		snprintf(why, why_bytes, "ends at offset %zu, within its head of %d bytes", size,
			 TOKEN_FILE_HEAD_BYTES);
		return false;
	}
	out->dtype = magic == MAGIC_GPT2 ? SHARD_U16 : SHARD_U32;
	out->data_offset = TOKEN_FILE_HEAD_BYTES;
	out->token_count = load32(bytes + 8);
	if (!out->token_count) {
		snprintf(why, why_bytes, "its head says that it has no tokens");
		return false;
	}
	return true;
}

const struct token_file_other *token_file_other(const uint8_t *bytes, size_t size)
{
#define UNPACKED "so that it is unpacked"
#define AS_NPY	 "save its numbers as .npy"
	static const struct token_file_other rows[] = {
		{"\x1f\x8b\x08", 3, "a gzip file", "name it .gz, " UNPACKED},
		{"\x28\xb5\x2f\xfd", 4, "a zstd file", "name it .zst, " UNPACKED},
		{"BZh", 3, "a bzip2 file", "name it .bz2, " UNPACKED},
		{"\xfd\x37zXZ", 5, "an xz file", "name it .xz, " UNPACKED},
		{"PK\3\4", 4, "a ZIP, as .npz and .pt are", AS_NPY},
		{"\x80\2\x8a\n", 4, "a file of torch.save()", AS_NPY},
		{"\x80\4\x95", 3, "a pickle", AS_NPY},
		{"\x80\5\x95", 3, "a pickle", AS_NPY},
		{"\x89HDF", 4, "an HDF5 file", AS_NPY},
		{"PAR1", 4, "a Parquet table", AS_NPY},
		{"ARROW1", 6, "an Arrow table", AS_NPY},
		{"SQLite format 3", 15, "an SQLite database", AS_NPY},
		{"TNTIDX\0\0", 8, "an index of old Megatron-LM", "name the .bin beside it"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (size >= rows[i].bytes && !memcmp(bytes, rows[i].magic, rows[i].bytes))
			return &rows[i];
	return NULL;
}

/* ---- numbers without a head ---- */

#define SMALL	    16	  /* upper halves of the first 2^20 words of a vocabulary are below it */
#define ALIKE_LEAST 64	  /* numbers that a statement about all of them needs */
#define NOISE_LEAST 32768 /* ... and one that they are as frequent */

void token_census_add(struct token_census *c, const uint8_t *bytes, size_t size)
{
	for (size_t i = 0; i + 2 <= size; i += 2) {
		c->seen[i / 2 % TOKEN_WIDTH_PLACES][bytes[i] | bytes[i + 1] << 8]++;
		c->count[i / 2 % TOKEN_WIDTH_PLACES]++;
	}
}

static unsigned swapped(unsigned v)
{
	return (v & 255) << 8 | v >> 8;
}

/* Numbers in places `first`, `first` + `step`, and so on. */
struct places {
	uint64_t count, small, most; /* most: how often the most frequent one is there */
	uint64_t upper;		     /* fit for upper halves: small, or those of -1 and -100, which pad labels */
	uint64_t sign;		     /* nothing but the sign of a longer number */
	uint64_t minus;		     /* 65535 */
	unsigned number;	     /* the most frequent one */
};

/* With `swap`, numbers as they would be with their bytes swapped. */
static struct places look(const struct token_census *c, unsigned first, unsigned step, bool swap)
{
	struct places p = {0};

	for (unsigned k = first; k < TOKEN_WIDTH_PLACES; k += step)
		p.count += c->count[k];
	for (unsigned i = 0; i <= UINT16_MAX; i++) {
		unsigned v = swap ? swapped(i) : i;
		uint64_t seen = 0;

		for (unsigned k = first; k < TOKEN_WIDTH_PLACES; k += step)
			seen += c->seen[k][i];
		p.small += v < SMALL ? seen : 0;
		p.upper += v < SMALL || v == UINT16_MAX ? seen : 0;
		p.sign += v == 0 || v == UINT16_MAX ? seen : 0;
		p.minus += v == UINT16_MAX ? seen : 0;
		p.number = seen > p.most ? v : p.number;
		p.most = seen > p.most ? seen : p.most;
	}
	return p;
}

/* 95 % */
static bool is_most(uint64_t part, uint64_t whole)
{
	return whole && 100 * part >= 95 * whole;
}

/* ---- more than 16 bits ---- */

/* Four numbers are one of 64 bits: a lower one, one that is small, and two that have its sign. */
static bool is_64(const struct token_census *c, bool swap)
{
	struct places low = look(c, swap ? 3 : 0, TOKEN_WIDTH_PLACES, swap);
	struct places small = look(c, swap ? 2 : 1, TOKEN_WIDTH_PLACES, swap);
	struct places one = look(c, swap ? 1 : 2, TOKEN_WIDTH_PLACES, swap);
	struct places two = look(c, swap ? 0 : 3, TOKEN_WIDTH_PLACES, swap);

	return is_most(one.sign, one.count) && is_most(two.sign, two.count) && is_most(small.upper, small.count) &&
	       !is_most(low.most, low.count);
}

static enum token_width judge_wide(const struct token_census *c, struct token_look *out)
{
	struct places even = look(c, 0, 2, false), odd = look(c, 1, 2, false), high = look(c, 0, 2, true),
		      low = look(c, 1, 2, true);
	const struct places *same = is_most(odd.most, odd.count) ? &odd : &even;

	out->percent = (unsigned)(100 * same->most / same->count);
	out->number = same->number;
	out->negative32 = 1000 * odd.minus >= odd.count;
	if (is_64(c, false))
		return TOKEN_WIDTH_64;
	if (is_64(c, true))
		return TOKEN_WIDTH_64_BE;
	if (!is_most(odd.most, odd.count) && ((is_most(even.most, even.count) && !even.number) ||
					      (is_most(high.upper, high.count) && 2 * low.small < low.count)))
		return TOKEN_WIDTH_32_BE;
	if (is_most(same->most, same->count))
		return TOKEN_WIDTH_REPEAT;
	if (is_most(odd.upper, odd.count) && 2 * even.small < even.count)
		return TOKEN_WIDTH_32;
	return 2 * odd.small < odd.count ? TOKEN_WIDTH_16 : TOKEN_WIDTH_ANY;
}

/* ---- all numbers together ---- */

/* How often each number and each byte is there. */
struct crowd {
	uint64_t seen[UINT16_MAX + 1], count;
	uint64_t even[256], odd[256];
	unsigned top;  /* the most frequent number, which may pad sequences; it does not count from here on: */
	uint64_t rest; /* numbers */
};

static void gather(const struct token_census *c, struct crowd *w)
{
	memset(w, 0, sizeof(*w));
	for (unsigned v = 0; v <= UINT16_MAX; v++) {
		for (unsigned k = 0; k < TOKEN_WIDTH_PLACES; k++)
			w->seen[v] += c->seen[k][v];
		w->count += w->seen[v];
		w->top = w->seen[v] > w->seen[w->top] ? v : w->top;
	}
	w->rest = w->count - w->seen[w->top];
	for (unsigned v = 0; v <= UINT16_MAX; v++) {
		w->even[v & 255] += v == w->top ? 0 : w->seen[v];
		w->odd[v >> 8] += v == w->top ? 0 : w->seen[v];
	}
}

/* Pairs of bytes that are letters and signs: 95 % of ASCII, or as UTF-8 has them. */
static bool is_text(const struct crowd *w)
{
	uint64_t ascii = 0, lead = 0, more = 0, wrong = 0;

	for (unsigned v = 0; v <= UINT16_MAX; v++) {
		unsigned kind[2];

		for (unsigned i = 0; i < 2; i++) {
			unsigned b = i ? v >> 8 : v & 255;

			kind[i] = (b >= ' ' && b < 127) || b == '\t' || b == '\n' || b == '\r' ? 0
				  : b >= 0xc2 && b < 0xf5				       ? 1
				  : b >= 0x80 && b < 0xc0				       ? 2
											       : 3;
			ascii += kind[i] == 0 ? w->seen[v] : 0;
			lead += kind[i] == 1 ? w->seen[v] : 0;
			more += kind[i] == 2 ? w->seen[v] : 0;
		}
		if (kind[0] == 3 || kind[1] == 3 || (kind[0] == 1) != (kind[1] == 2 && kind[0] != 2))
			wrong += w->seen[v];
	}
	return is_most(ascii, 2 * w->count) ||
	       (50 * wrong <= w->count && 10 * more >= 9 * lead && more <= 3 * lead + w->count / 50);
}

/* 16 times the square root, rounded down. */
static uint64_t root16(uint64_t n)
{
	uint64_t low = 0, high = UINT64_C(1) << 32;

	while (high - low > 1) {
		uint64_t middle = low + (high - low) / 2;

		if (middle * middle <= 256 * n)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/*
 * How far bytes in even places are from those in odd ones, in parts of 1,000; 0 is equal.  Counts
 * that are drawn alike differ by 0.8 times the square root of their sum, which does not count.
 */
static unsigned distance(const struct crowd *w)
{
	uint64_t sum = 0, chance = 0;

	for (unsigned i = 0; i < 256; i++) {
		sum += w->even[i] > w->odd[i] ? w->even[i] - w->odd[i] : w->odd[i] - w->even[i];
		chance += root16(w->even[i] + w->odd[i]);
	}
	chance = chance * 4 / 5 / 16;
	return (unsigned)(sum > chance ? 500 * (sum - chance) / w->rest : 0);
}

/* ... and how far all bytes are from being as frequent; by chance 256 of them lack as much. */
static unsigned distance_from_even(const struct crowd *w)
{
	uint64_t sum = 0, chance = 256 * root16(128 * w->rest) * 4 / 5 / 16;

	for (unsigned i = 0; i < 256; i++) {
		uint64_t n = (w->even[i] + w->odd[i]) * 128;

		sum += n > w->rest ? n - w->rest : w->rest - n;
	}
	return (unsigned)(sum > chance ? 500 * (sum - chance) / (256 * w->rest) : 0);
}

/* 99 % of the rest are at most this. */
static unsigned quantile(const struct crowd *w, bool swap)
{
	uint64_t below = 0;

	for (unsigned i = 0; i <= UINT16_MAX; i++) {
		unsigned v = swap ? swapped(i) : i;

		below += v == w->top ? 0 : w->seen[v];
		if (100 * below >= 99 * w->rest)
			return i;
	}
	return UINT16_MAX;
}

/* Are a tenth of the numbers above what they would be with their bytes swapped? */
static bool is_big_endian(const struct crowd *w, struct token_look *out)
{
	uint64_t above = 0;

	out->most = quantile(w, false);
	out->most_swapped = quantile(w, true);
	for (unsigned v = out->most_swapped + 1; v <= UINT16_MAX; v++)
		above += v == w->top ? 0 : w->seen[v];
	return 10 * above >= w->rest;
}

/* How many numbers but 0, in places `first`, `first` + `step`, ..., begin as floats near 1 do? */
struct floats {
	uint64_t count, fit, minus, most;
};

static struct floats look_for_floats(const struct token_census *c, unsigned first, unsigned step, unsigned from,
				     unsigned to)
{
	struct floats f = {0};

	for (unsigned v = 1; v <= UINT16_MAX; v++) {
		uint64_t seen = 0;

		for (unsigned k = first; k < TOKEN_WIDTH_PLACES; k += step)
			seen += c->seen[k][v];
		f.count += seen;
		f.most = seen > f.most ? seen : f.most;
		if ((v >> 8 & 127) < from || (v >> 8 & 127) > to)
			continue;
		f.fit += seen;
		f.minus += v >> 15 ? seen : 0;
	}
	return f;
}

/*
 * Do nearly all have the exponents of floats between 2^-12 and 2^4?  Of 32 and 64 bits only the
 * last number has an exponent.  Of 16 bits there must be both signs: tokens hardly lie like that.
 */
static bool is_float(const struct token_census *c, unsigned bits)
{
	unsigned step = bits / 16, from = bits == 64 ? 0x3f : bits == 32 ? 0x39 : 0x28, to = bits == 64 ? 0x40 : 0x44;
	struct floats last = look_for_floats(c, step - 1, step, from, to),
		      first = look_for_floats(c, 0, step, from, to);

	if (!is_most(last.fit, last.count) || 2 * last.most >= last.count)
		return false;
	return bits > 16 ? 2 * first.fit < first.count
			 : 10 * last.minus >= last.count && 10 * last.minus <= 9 * last.count;
}

/* Numbers near 2^16 are -1 and -100 alone. */
static bool is_negative(const struct crowd *w, struct token_look *out)
{
	uint64_t other = 0, minus = w->seen[UINT16_MAX], hundred = w->seen[UINT16_MAX - 99];

	for (unsigned v = 65000; v <= UINT16_MAX; v++)
		other += w->seen[v];
	other -= minus + hundred;
	out->number = minus > hundred ? UINT16_MAX : UINT16_MAX - 99;
	out->percent = (unsigned)(100 * (minus + hundred) / w->count);
	return !other && 200 * (minus + hundred) >= w->count;
}

static enum token_width judge_crowd(const struct token_census *c, const struct crowd *w, enum token_width wide,
				    struct token_look *out)
{
	unsigned apart = w->rest < ALIKE_LEAST ? 0 : distance(w), from_even;

	out->alike = apart < 150;
	if (is_text(w))
		return TOKEN_WIDTH_TEXT;
	if (wide != TOKEN_WIDTH_ANY && wide != TOKEN_WIDTH_16)
		return wide;
	if (w->rest < ALIKE_LEAST)
		return wide;
	for (out->bits = 64; out->bits >= 16; out->bits /= 2)
		if (is_float(c, out->bits))
			return TOKEN_WIDTH_FLOATS;
	from_even = distance_from_even(w);
	if (from_even >= 80 && 4 * apart <= from_even)
		return TOKEN_WIDTH_8;
	if (is_big_endian(w, out))
		return TOKEN_WIDTH_16_BE;
	if (w->rest >= NOISE_LEAST && apart <= 100 && from_even <= 60)
		return TOKEN_WIDTH_NOISE;
	return is_negative(w, out) ? TOKEN_WIDTH_NEGATIVE : wide;
}

bool token_census_judge(const struct token_census *c, struct token_look *out)
{
	struct crowd *w;
	enum token_width wide;

	memset(out, 0, sizeof(*out));
	if (c->count[1] + c->count[3] < TOKEN_WIDTH_LEAST)
		return true;
	w = malloc(sizeof(*w));
	if (!w)
		return false;
	gather(c, w);
	wide = judge_wide(c, out);
	out->width = judge_crowd(c, w, wide, out);
	free(w);
	return true;
}

/* ---- the head of X.idx, which Megatron-LM writes beside the tokens in X.bin ---- */

#define MAGIC	    "MMIDIDX\0"
#define MAGIC_BYTES 9 /* with the NUL that ends it */
#define COUNT_MAX   (UINT64_C(1) << 48)

bool megatron_index_is(const uint8_t *bytes, size_t size)
{
	return size >= MAGIC_BYTES && !memcmp(bytes, MAGIC, MAGIC_BYTES);
}

bool megatron_index_parse(const uint8_t *bytes, size_t size, uint64_t file_bytes, struct megatron_index *out, char *why,
			  size_t why_bytes)
{
	/* codes 6 and 7 are floats, of which width depends on who wrote them; they are not tokens */
	static const uint8_t dtypes[] = {
		[1] = SHARD_U8, [2] = SHARD_I8, [3] = SHARD_I16, [4] = SHARD_I32, [5] = SHARD_I64, [8] = SHARD_U16};
	uint64_t bounds, end;

	memset(out, 0, sizeof(*out));
	if (!megatron_index_is(bytes, size)) {
		snprintf(why, why_bytes, "not an index of Megatron-LM");
		return false;
	}
	if (size < MEGATRON_INDEX_HEAD_BYTES) {
		snprintf(why, why_bytes, "ends at offset %zu, within its head of %d bytes", size,
			 MEGATRON_INDEX_HEAD_BYTES);
		return false;
	}
	if (load64(bytes + 9) != 1) {
		snprintf(why, why_bytes, "an index of version %" PRIu64 "; 1 is known", load64(bytes + 9));
		return false;
	}
	out->dtype = bytes[17] < sizeof(dtypes) ? dtypes[bytes[17]] : 0;
	out->sequence_count = load64(bytes + 18);
	bounds = load64(bytes + 26);
	if (!out->dtype) {
		snprintf(why, why_bytes, "tokens of type %u (6 and 7 are floats); must be integers: 1 to 5, or 8",
			 bytes[17]);
		return false;
	}
	if (!bounds || bounds > COUNT_MAX || out->sequence_count > COUNT_MAX) {
		snprintf(why, why_bytes, "%" PRIu64 " sequences and %" PRIu64 " bounds of documents cannot be",
			 out->sequence_count, bounds);
		return false;
	}
	out->document_count = bounds - 1;
	out->lengths_at = MEGATRON_INDEX_HEAD_BYTES;
	out->begins_at = out->lengths_at + 4 * out->sequence_count;
	out->documents_at = out->begins_at + 8 * out->sequence_count;
	end = out->documents_at + 8 * bounds; /* none of these wraps, as counts stay below COUNT_MAX */
	if (file_bytes == end)
		return true;
	if (file_bytes == end + out->sequence_count)
		snprintf(why, why_bytes,
			 "an index of sequences with modes, of a multimodal dataset; these are not read");
	else
		snprintf(why, why_bytes,
			 "has %" PRIu64 " bytes, but an index of %" PRIu64 " sequences and %" PRIu64
			 " documents has %" PRIu64 "; it is %s",
			 file_bytes, out->sequence_count, out->document_count, end,
			 file_bytes < end ? "cut short" : "longer than it should be");
	return false;
}
