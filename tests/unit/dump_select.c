/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dump_select.c - prints the answers to test vectors of format/ORDER.md, parts 11 and 12, which
 * format/shardorder.py answers in the same words
 *
 *   dump_select part N SEED A B             how many records, their SHA-256, the first four
 *   dump_select fold|others N SEED k K      the same
 *   dump_select selected ID N RECORDS       the digest of a selection
 *   dump_select mixture [W ID SUBSET] ...   the digest of a mixture
 *   dump_select run_on E P R B q COUNT      epoch:positions of each step, fewer where they end
 *
 * The datasets have an id and a number of records, and no files.  Not a test by itself:
 * tests/twin/select.sh runs it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libshard/base/bytes.h"
#include "libshard/base/words.h"
#include "libshard/dataset/dataset.h"
#include "libshard/feed/feed.h"
#include "libshard/format/format.h"
#include "libshard/order/order.h"
#include "shard.h"

#define LISTED	   65536u /* records */
#define COMPONENTS 8u

__attribute__((noreturn)) static void stop(const char *why)
{
	fprintf(stderr, "dump_select: %s; see the first lines of tests/unit/dump_select.c\n", why);
	exit(2);
}

static uint64_t number(const char *text)
{
	char *end;
	uint64_t v = strtoull(text, &end, 10);

	if (end == text || *end)
		stop("not a number");
	return v;
}

static struct shard_dataset dataset_of(const char *id, uint64_t records)
{
	struct shard_dataset ds = {.m.record_count = records};

	if (strlen(id) != 64 || !hex_to_bytes(ds.text.end.sha256, id, sizeof(ds.text.end.sha256)))
		stop("not the id of a dataset");
	return ds;
}

static void print_records(const struct shard_selection *s)
{
	uint8_t digest[SHA256_BYTES], le[8];
	struct sha256 sha;
	char hex[65];

	sha256_init(&sha);
	for (uint64_t i = 0; i < s->count; i++) {
		store64(le, selection_at(s, i));
		sha256_update(&sha, le, sizeof(le));
	}
	sha256_final(&sha, digest);
	hex_from_bytes(hex, digest, sizeof(digest));
	printf("%" PRIu64 " %s", s->count, hex);
	for (uint64_t i = 0; i < s->count && i < 4; i++)
		printf(" %" PRIu64, selection_at(s, i));
	puts("");
}

static int by_chance(char **word)
{
	static const char id[] = "0000000000000000000000000000000000000000000000000000000000000000";
	struct shard_dataset ds = dataset_of(id, number(word[2]));
	struct shard_selection *s;
	struct shard_error err;
	int rc;

	if (!strcmp(word[1], "part"))
		rc = shard_select_fraction(&s, &ds, NULL, strtod(word[4], NULL), strtod(word[5], NULL), number(word[3]),
					   &err);
	else
		rc = shard_select_fold(&s, &ds, NULL, (uint32_t)number(word[4]), (uint32_t)number(word[5]),
				       strcmp(word[1], "fold") ? SHARD_FOLD_REST : SHARD_FOLD_PART, number(word[3]),
				       &err);
	if (rc)
		stop(err.message);
	print_records(s);
	shard_selection_close(s);
	return 0;
}

static int selected(char **word)
{
	static uint64_t idx[LISTED];
	struct shard_dataset ds = dataset_of(word[2], number(word[3]));
	struct shard_selection *s;
	struct shard_error err;
	uint64_t count = 0;

	for (const char *at = strtok(word[4], ","); at && count < LISTED; at = strtok(NULL, ","))
		idx[count++] = number(at);
	if (shard_select_open(&s, &ds, idx, count, &err))
		stop(err.message);
	puts(s->digest);
	shard_selection_close(s);
	return 0;
}

static int mixture(char **word, uint32_t count)
{
	struct shard_mix_source source[COMPONENTS] = {{.weight = 0}};
	struct shard_selection subset[COMPONENTS];
	struct shard_dataset ds[COMPONENTS];
	struct shard_error err;
	struct shard_mix *m;

	if (!count || count > COMPONENTS)
		stop("too few or too many components");
	for (uint32_t d = 0; d < count; d++) {
		const char *const *of = (const char *const *)word + 2 + 3 * (size_t)d;

		ds[d] = dataset_of(of[1], 10);
		source[d].weight = (uint32_t)number(of[0]);
		source[d].ds = &ds[d];
		if (!strcmp(of[2], "all"))
			continue;
		subset[d] = (struct shard_selection){.of_count = 10, .count = 10};
		snprintf(subset[d].dataset_id, sizeof(subset[d].dataset_id), "%s", of[1]);
		snprintf(subset[d].digest, sizeof(subset[d].digest), "%s", of[2]);
		source[d].selection = &subset[d];
	}
	if (shard_mix_open(&m, source, count, NULL, &err))
		stop(err.message);
	puts(m->digest);
	shard_mix_close(m);
	return 0;
}

static int run_on(char **word)
{
	uint64_t length = number(word[2]), first = number(word[3]);
	struct steps s = {.rank = {.record_count = length,
				   .world = (uint32_t)number(word[4]),
				   .batch_records = (uint32_t)number(word[5]),
				   .rank = (uint32_t)number(word[6]),
				   .last = ORDER_RUN_ON},
			  .mix = (void *)&s}; /* any: these functions ask only whether there is one */
	struct step_place at = {.epoch = first / length, .first_position = first % length};

	if (order_rank_check(&s.rank))
		stop("parameter outside its range");
	for (uint64_t left = number(word[7]); left; left--, at.step++) {
		struct order_rank rank;
		bool padded;

		at = steps_next(&s, at);
		if (!mix_has_epoch(at.epoch, length))
			break;
		rank = steps_rank(&s, &at);
		printf("%s%" PRIu64, left == number(word[7]) ? "" : " ", at.epoch);
		for (uint32_t row = 0; row < order_rank_rows(&rank, at.step); row++)
			printf("%c%" PRIu64, row ? ',' : ':', order_rank_position(&rank, at.step, row, &padded));
	}
	puts("");
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 6 && (!strcmp(argv[1], "part") || !strcmp(argv[1], "fold") || !strcmp(argv[1], "others")))
		return by_chance(argv);
	if (argc == 5 && !strcmp(argv[1], "selected"))
		return selected(argv);
	if (argc % 3 == 2 && !strcmp(argv[1], "mixture"))
		return mixture(argv, (uint32_t)argc / 3);
	if (argc == 8 && !strcmp(argv[1], "run_on"))
		return run_on(argv);
	stop("unknown words");
}
