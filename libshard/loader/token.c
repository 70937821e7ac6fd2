/* SPDX-License-Identifier: Apache-2.0 */
/*
 * token.c - a place in an order as one line of text
 *
 * shuffle-v1 two_levels N 1000000 r 128 w 40 L 64 u 1 seed 7 epoch 3 position 65536   dataset
 * 66e2... subset all pixels pillow-13 check 0123456789abcdef
 *
 * The token of a mixture begins with mix-v1, and has `mixture` and its digest in place of dataset
 * and subset.  N is the length of its epochs.
 *
 * The words are those of format/ORDER.md.  `pixels` is there only if images are resized: it says
 * whose pixels that gives.  `subset` is followed by `all`, or by the digest of a selection: then N
 * is the number of its records.  `check` is the XXH3-64 of the text before it, so a token that lost
 * a digit is refused.  There is only one way to write a place.
 */
#include "libshard/loader/loader.h"

#include <inttypes.h>
#include <stdio.h>

#include "libshard/base/words.h"
#include "libshard/format/format.h"

static const char *const kind_names[] = {
	[ORDER_SEQUENTIAL] = "sequential", [ORDER_ONE_LEVEL] = "one_level", [ORDER_TWO_LEVELS] = "two_levels"};

/* Of the order, and of what is loaded. */
static const char *const names[] = {"shuffle-v1", "mix-v1"};
static const char *const things[] = {"dataset", "mixture"};

void token_write(const struct token *t, char text[SHARD_TOKEN_BYTES])
{
	const struct order_params *p = &t->params;
	int used = snprintf(text, SHARD_TOKEN_BYTES,
			    "%s %s N %" PRIu64 " r %" PRIu64 " w %" PRIu32 " L %" PRIu32 " u %" PRIu64 " seed %" PRIu64
			    " epoch %" PRIu64 " position %" PRIu64 " %s %s",
			    names[t->is_mix], kind_names[p->kind], p->record_count, p->run_records, p->window_runs,
			    p->lane_count, p->phase_unit_records, p->seed, p->epoch, t->position, things[t->is_mix],
			    t->dataset_id);

	if (!t->is_mix)
		used += snprintf(text + used, SHARD_TOKEN_BYTES - (size_t)used, " subset %s",
				 *t->selection ? t->selection : "all");
	if (t->pixels)
		used += snprintf(text + used, SHARD_TOKEN_BYTES - (size_t)used, " pixels %s",
				 shard_name(SHARD_NAME_PIXELS, t->pixels));
	/* 14 words, 10 numbers of at most 20 digits, and two hashes: 490 bytes at most. */
	snprintf(text + used, SHARD_TOKEN_BYTES - (size_t)used, " check %016" PRIx64, checksum64(text, (size_t)used));
}

/* A word and the number behind it. */
static bool read_number(struct words *c, const char *word, uint64_t most, uint64_t *out)
{
	return words_is(c, ' ', word) && words_u64(c, ' ', most, out);
}

static bool read_hash(struct words *c, char hash[65])
{
	struct word w;

	if (!words_take(c, ' ', &w) || w.bytes != 64)
		return false;
	memcpy(hash, w.text, 64);
	return true;
}

bool token_read(const char *text, struct token *t)
{
	char again[SHARD_TOKEN_BYTES];
	struct order_params *p = &t->params;
	struct words c = words_of(text, strnlen(text, SHARD_TOKEN_BYTES));
	uint64_t windows, lanes;
	struct word w;

	memset(t, 0, sizeof(*t));
	if (c.end == text + SHARD_TOKEN_BYTES)
		return false;
	t->is_mix = words_is(&c, ' ', names[1]);
	if (!t->is_mix && !words_is(&c, ' ', names[0]))
		return false;
	while (!words_is(&c, ' ', kind_names[p->kind]))
		if (p->kind++ == ORDER_TWO_LEVELS)
			return false;
	if (!read_number(&c, "N", UINT64_MAX, &p->record_count) || !read_number(&c, "r", UINT64_MAX, &p->run_records) ||
	    !read_number(&c, "w", UINT32_MAX, &windows) || !read_number(&c, "L", UINT32_MAX, &lanes) ||
	    !read_number(&c, "u", UINT64_MAX, &p->phase_unit_records) ||
	    !read_number(&c, "seed", UINT64_MAX, &p->seed) || !read_number(&c, "epoch", UINT64_MAX, &p->epoch) ||
	    !read_number(&c, "position", UINT64_MAX, &t->position) || !words_is(&c, ' ', things[t->is_mix]) ||
	    !read_hash(&c, t->dataset_id))
		return false;
	p->window_runs = (uint32_t)windows;
	p->lane_count = (uint32_t)lanes;
	/* These words may be missing.  Anything else in their place is written differently. */
	if (words_is(&c, ' ', "subset") && !words_is(&c, ' ', "all"))
		read_hash(&c, t->selection);
	if (words_is(&c, ' ', "pixels") && words_take(&c, ' ', &w))
		name_find(SHARD_NAME_PIXELS, w.text, w.bytes, &t->pixels);
	token_write(t, again); /* so are words behind, and a wrong checksum */
	return !strcmp(text, again);
}
