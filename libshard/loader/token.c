/* SPDX-License-Identifier: Apache-2.0 */
/*
 * token.c - see token.h
 */
#include "libshard/loader/token.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "libshard/codec/checksum.h"
#include "libshard/disk/names.h"
#include "shard_pack.h"

static const char *const kind_names[] = {
	[ORDER_SEQUENTIAL] = "sequential", [ORDER_ONE_LEVEL] = "one_level", [ORDER_TWO_LEVELS] = "two_levels"};

/* Of the order, and of what is loaded. */
static const char *const names[] = {"shuffle-v1 ", "mix-v1 "};
static const char *const things[] = {" dataset ", " mixture "};

void token_write(const struct token *t, char text[SHARD_TOKEN_BYTES])
{
	const struct order_params *p = &t->params;
	int used = snprintf(text, SHARD_TOKEN_BYTES,
			    "%s%s N %" PRIu64 " r %" PRIu64 " w %" PRIu32 " L %" PRIu32 " u %" PRIu64 " seed %" PRIu64
			    " epoch %" PRIu64 " position %" PRIu64 "%s%s",
			    names[t->is_mix], kind_names[p->kind], p->record_count, p->run_records, p->window_runs,
			    p->lane_count, p->phase_unit_records, p->seed, p->epoch, t->position, things[t->is_mix],
			    t->dataset_id);

	if (!t->is_mix)
		used += snprintf(text + used, SHARD_TOKEN_BYTES - (size_t)used, " subset %s",
				 *t->selection ? t->selection : "all");
	if (t->pixels)
		used += snprintf(text + used, SHARD_TOKEN_BYTES - (size_t)used, " pixels %s",
				 shard_pixels_name(t->pixels));
	/* 14 words, 10 numbers of at most 20 digits, and two hashes: 490 bytes at most. */
	snprintf(text + used, SHARD_TOKEN_BYTES - (size_t)used, " check %016" PRIx64, checksum64(text, (size_t)used));
}

/* Take the number behind " word ".  If it is too large it wraps, which token_read() notices. */
static bool take(const char **at, const char *word, uint64_t *out)
{
	size_t bytes = strlen(word);
	uint64_t value = 0;

	if (strncmp(*at, word, bytes) || (*at)[bytes] < '0' || (*at)[bytes] > '9')
		return false;
	for (*at += bytes; **at >= '0' && **at <= '9'; (*at)++)
		value = value * 10 + (uint64_t)(**at - '0');
	*out = value;
	return true;
}

static bool take_kind(const char **at, enum order_kind *kind)
{
	for (enum order_kind k = ORDER_SEQUENTIAL; k <= ORDER_TWO_LEVELS; k++) {
		size_t bytes = strlen(kind_names[k]);

		if (strncmp(*at, kind_names[k], bytes) || (*at)[bytes] != ' ')
			continue;
		*kind = k;
		*at += bytes;
		return true;
	}
	return false;
}

/* The digest of a selection, if there is one.  token_read() notices any other text in its place. */
static const char *take_selection(const char *at, char selection[65])
{
	static const char before[] = " subset ";

	if (strncmp(at, before, sizeof(before) - 1))
		return at;
	at += sizeof(before) - 1;
	if (!strncmp(at, "all", 3))
		return at + 3;
	if (strnlen(at, 64) < 64)
		return at;
	memcpy(selection, at, 64);
	return at + 64;
}

/* The word may be missing.  token_read() notices any other text in its place. */
static void take_pixels(const char *at, uint32_t *pixels)
{
	static const char before[] = " pixels ";

	if (strncmp(at, before, sizeof(before) - 1))
		return;
	at += sizeof(before) - 1;
	name_find(shard_pixels_name, at, strcspn(at, " "), pixels);
}

bool token_read(const char *text, struct token *t)
{
	char again[SHARD_TOKEN_BYTES];
	struct order_params *p = &t->params;
	const char *at = text;
	uint64_t windows, lanes;

	memset(t, 0, sizeof(*t));
	if (strnlen(text, SHARD_TOKEN_BYTES) == SHARD_TOKEN_BYTES)
		return false;
	t->is_mix = !strncmp(at, names[1], strlen(names[1]));
	if (strncmp(at, names[t->is_mix], strlen(names[t->is_mix])))
		return false;
	at += strlen(names[t->is_mix]);
	if (!take_kind(&at, &p->kind) || !take(&at, " N ", &p->record_count) || !take(&at, " r ", &p->run_records) ||
	    !take(&at, " w ", &windows) || !take(&at, " L ", &lanes) || !take(&at, " u ", &p->phase_unit_records) ||
	    !take(&at, " seed ", &p->seed) || !take(&at, " epoch ", &p->epoch) ||
	    !take(&at, " position ", &t->position) || strncmp(at, things[t->is_mix], 9) || strnlen(at + 9, 64) < 64)
		return false;
	p->window_runs = (uint32_t)windows;
	p->lane_count = (uint32_t)lanes;
	memcpy(t->dataset_id, at + 9, 64);
	take_pixels(take_selection(at + 9 + 64, t->selection), &t->pixels);
	/*
	 * Leading zeros, numbers that are too large, words behind: all of that is written
	 * differently.
	 */
	token_write(t, again);
	return !strcmp(text, again);
}
