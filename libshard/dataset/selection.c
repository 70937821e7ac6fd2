/* SPDX-License-Identifier: Apache-2.0 */
/*
 * selection.c - see selection.h
 */
#include "libshard/dataset/selection.h"

#include <inttypes.h>
#include <string.h>

#include "libshard/base/bytes.h"
#include "libshard/base/error.h"
#include "libshard/base/mem.h"
#include "libshard/dataset/dataset.h"
#include "shard_select.h"

#define SAMPLES 65536u

static uint64_t block_count(uint64_t of_count)
{
	return ceil_div(of_count, 64 * SELECTION_BLOCK_WORDS);
}

/* Words of a bit for each record, the last block filled up. */
static uint64_t word_count(uint64_t of_count)
{
	return block_count(of_count) * SELECTION_BLOCK_WORDS;
}

static uint64_t count_bits(const uint64_t *bits, uint64_t words)
{
	uint64_t n = 0;

	for (uint64_t i = 0; i < words; i++)
		n += (uint64_t)__builtin_popcountll(bits[i]);
	return n;
}

/* ---- making one ---- */

int selection_open_bits(const struct shard_dataset *ds, uint64_t **bits, struct shard_error *err)
{
	*bits = mem_array((size_t)word_count(ds->m.record_count), sizeof(**bits));
	if (*bits)
		return SHARD_OK;
	return error_set(err, SHARD_E_MEMORY, "no memory for a bit for each of %" PRIu64 " records",
			 ds->m.record_count);
}

static bool needs_wide(const struct shard_selection *s)
{
	return s->of_count - 1 > UINT32_MAX;
}

static uint64_t bytes_of_list(const struct shard_selection *s)
{
	return mul_capped(s->count, needs_wide(s) ? 8 : 4);
}

static uint64_t bytes_of_bits(const struct shard_selection *s)
{
	return 8 * (word_count(s->of_count) + block_count(s->of_count) + 1 + s->count / SELECTION_HINT + 2);
}

uint64_t selection_bytes(const struct shard_selection *s)
{
	return sizeof(*s) + (s->bits ? bytes_of_bits(s) : bytes_of_list(s));
}

/* A list of the bits that are set.  Returns false if there is no memory. */
static bool list_bits(struct shard_selection *s, const uint64_t *bits)
{
	uint64_t words = word_count(s->of_count), n = 0;

	if (needs_wide(s))
		s->list64 = mem_array((size_t)s->count, sizeof(*s->list64));
	else
		s->list32 = mem_array((size_t)s->count, sizeof(*s->list32));
	if (!s->list32 && !s->list64)
		return false;
	for (uint64_t i = 0; i < words; i++)
		for (uint64_t word = bits[i]; word; word &= word - 1, n++) {
			uint64_t record = i * 64 + (uint64_t)__builtin_ctzll(word);

			if (s->list32)
				s->list32[n] = (uint32_t)record;
			else
				s->list64[n] = record;
		}
	return true;
}

/* Count the bits before each block.  Returns false if there is no memory. */
static bool index_bits(struct shard_selection *s)
{
	uint64_t blocks = block_count(s->of_count), n = 0, hints = 0;

	s->before = mem_array((size_t)blocks + 1, sizeof(*s->before));
	s->hint = mem_array((size_t)(s->count / SELECTION_HINT) + 2, sizeof(*s->hint));
	if (!s->before || !s->hint)
		return false;
	for (uint64_t b = 0; b < blocks; b++) {
		s->before[b] = n;
		n += count_bits(s->bits + b * SELECTION_BLOCK_WORDS, SELECTION_BLOCK_WORDS);
		for (; hints * SELECTION_HINT < n; hints++)
			s->hint[hints] = b;
	}
	s->before[blocks] = n;
	s->hint[hints] = blocks - 1; /* the end of the last search */
	return true;
}

int selection_form(struct shard_selection **out, const struct shard_dataset *ds, uint64_t *bits, const char *what,
		   struct shard_error *err)
{
	struct shard_selection *s = mem_zalloc(sizeof(*s));
	bool fits;
	int rc;

	if (!s) {
		mem_free(bits);
		return error_set(err, SHARD_E_MEMORY, "no memory for a selection");
	}
	s->of_count = ds->m.record_count;
	s->count = count_bits(bits, word_count(s->of_count));
	dataset_id(ds, s->dataset_id);
	if (!s->count) {
		mem_free(bits);
		mem_free(s);
		return error_set(err, SHARD_E_ARGUMENT, "%s: selects none of the %" PRIu64 " records", what,
				 ds->m.record_count);
	}
	if (bytes_of_bits(s) <= bytes_of_list(s)) {
		s->bits = bits;
		fits = index_bits(s);
	} else {
		fits = list_bits(s, bits);
		mem_free(bits);
	}
	if (!fits) {
		rc = error_set(err, SHARD_E_MEMORY, "no memory for a selection of %" PRIu64 " records", s->count);
		shard_selection_close(s);
		return rc;
	}
	*out = s;
	return SHARD_OK;
}

void shard_selection_close(struct shard_selection *s)
{
	if (!s)
		return;
	mem_free(s->list32);
	mem_free(s->list64);
	mem_free(s->bits);
	mem_free(s->before);
	mem_free(s->hint);
	mem_free(s);
}

/* ---- asking ---- */

int selection_check(const struct shard_selection *s, const struct shard_dataset *ds, const char *what,
		    struct shard_error *err)
{
	char id[65];

	dataset_id(ds, id);
	if (!strcmp(s->dataset_id, id))
		return SHARD_OK;
	return error_set(err, SHARD_E_MISMATCH, "%s is of dataset %.16s..., and this is dataset %.16s...", what,
			 s->dataset_id, id);
}

/* The place of the n-th bit that is set, from 0, in a word that has so many. */
static uint64_t bit_at(uint64_t word, uint64_t n)
{
	while (n--)
		word &= word - 1;
	return (uint64_t)__builtin_ctzll(word);
}

static uint64_t at_bits(const struct shard_selection *s, uint64_t i)
{
	uint64_t block = s->hint[i / SELECTION_HINT], end = s->hint[i / SELECTION_HINT + 1] + 1, word, n;

	while (end - block > 1) {
		uint64_t middle = block + (end - block) / 2;

		if (s->before[middle] <= i)
			block = middle;
		else
			end = middle;
	}
	i -= s->before[block];
	for (word = block * SELECTION_BLOCK_WORDS;; word++) {
		n = (uint64_t)__builtin_popcountll(s->bits[word]);
		if (i < n)
			return word * 64 + bit_at(s->bits[word], i);
		i -= n;
	}
}

uint64_t selection_at(const struct shard_selection *s, uint64_t i)
{
	if (s->list32)
		return s->list32[i];
	return s->list64 ? s->list64[i] : at_bits(s, i);
}

void selection_many(const struct shard_selection *s, uint64_t *idx, size_t count)
{
	for (size_t i = 0; s->list32 && i < count; i++)
		idx[i] = s->list32[idx[i]];
	for (size_t i = 0; s->list64 && i < count; i++)
		idx[i] = s->list64[idx[i]];
	for (size_t i = 0; s->bits && i < count; i++)
		idx[i] = at_bits(s, idx[i]);
}

static uint64_t next_bit(const struct shard_selection *s, uint64_t record)
{
	uint64_t words = word_count(s->of_count), word = record / 64, rest;

	if (record >= s->of_count)
		return UINT64_MAX;
	for (rest = s->bits[word] >> (record & 63) << (record & 63); !rest; rest = s->bits[word])
		if (++word == words)
			return UINT64_MAX;
	return word * 64 + (uint64_t)__builtin_ctzll(rest);
}

uint64_t selection_following(const struct shard_selection *s, uint64_t i, uint64_t next)
{
	return s->bits ? next_bit(s, next) : selection_at(s, i);
}

uint64_t selection_below(const struct shard_selection *s, uint64_t record)
{
	uint64_t first = 0, end = s->count;

	while (first < end) {
		uint64_t middle = first + (end - first) / 2;

		if (selection_at(s, middle) < record)
			first = middle + 1;
		else
			end = middle;
	}
	return first;
}

uint64_t selection_next(const struct shard_selection *s, uint64_t record)
{
	uint64_t at;

	if (s->bits) {
		at = next_bit(s, record);
		return at == UINT64_MAX ? next_bit(s, 0) : at;
	}
	at = selection_below(s, record);
	return selection_at(s, at < s->count ? at : 0);
}

uint64_t selection_units(const struct shard_selection *s, uint64_t unit_records)
{
	uint64_t pairs = s->count - 1, samples = min_u64(pairs, SAMPLES), begins = 0;

	for (uint64_t k = 0; k < samples; k++) {
		uint64_t i = samples == pairs ? k : (uint64_t)((unsigned __int128)k * pairs / samples);

		begins += selection_at(s, i) / unit_records != selection_at(s, i + 1) / unit_records;
	}
	return 1 + (samples ? (uint64_t)((unsigned __int128)begins * pairs / samples) : 0);
}
