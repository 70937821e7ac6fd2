/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shard_list.c - which shards of a plan have their final names
 */
#include "tools/shardpack/make/make.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/exit_code.h"
#include "tools/common/files.h"
#include "tools/common/message.h"

#define PACE_SHARDS 100

bool shard_list_number(const char *name, uint64_t *shard_idx)
{
	size_t digits = strspn(name, "0123456789");

	/* "00005", "123456", but not "000005" */
	if (digits < 5 || digits > 19 || (digits > 5 && name[0] == '0') || strcmp(name + digits, ".shard") != 0)
		return false;
	*shard_idx = strtoull(name, NULL, 10);
	return true;
}

static void note_shard(void *context, const char *name)
{
	struct shard_list *l = context;
	uint64_t idx;

	if (!shard_list_number(name, &idx) || idx >= l->shard_count)
		return;
	l->there_count += !l->there[idx];
	l->there[idx] = true;
}

int shard_list_look(struct shard_list *l, const char *out_dir, uint64_t shard_count)
{
	if (!l->there)
		l->there = calloc(shard_count + 1, sizeof(*l->there));
	if (!l->there)
		return fail(EXIT_IO, "out of memory for %" PRIu64 " shards", shard_count);
	l->shard_count = shard_count;
	return files_list(out_dir, note_shard, l, NULL);
}

void shard_list_free(struct shard_list *l)
{
	free(l->there);
	*l = (struct shard_list){0};
}

void shard_list_missing(const struct shard_list *l, size_t bytes_max, struct text *out)
{
	uint64_t first, k = 0;

	while (k < l->shard_count) {
		if (l->there[k]) {
			k++;
			continue;
		}
		if (out->bytes > bytes_max) {
			text_add(out, ",...", 4);
			return;
		}
		for (first = k; k < l->shard_count && !l->there[k]; k++)
			;
		text_format(out, "%s%" PRIu64, out->bytes ? "," : "", first);
		if (k - first > 1)
			text_format(out, "-%" PRIu64, k - 1);
	}
}

static int by_time(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

uint64_t shard_list_pace(const struct shard_list *l, const char *out_dir, int *code)
{
	uint64_t *times = malloc((l->there_count + 1) * sizeof(*times)), n = 0, first, pace = 0;

	*code = times ? EXIT_DONE : fail(EXIT_IO, "out of memory for %" PRIu64 " shards", l->there_count);
	for (uint64_t k = 0; times && k < l->shard_count && n < l->there_count; k++)
		n += l->there[k] && receipt_shard_time(out_dir, k, &times[n]); /* else it was removed just now */
	if (n > 1) {
		qsort(times, n, sizeof(*times), by_time);
		first = n > PACE_SHARDS ? n - PACE_SHARDS : 0;
		pace = (times[n - 1] - times[first]) / (n - 1 - first);
	}
	free(times);
	return pace;
}
