/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shard_ranges.c - which shards are there, range by range, found with few looks at a large folder
 */
#include "tools/shardpack/build/shard_ranges.h"

#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "tools/common/exit_code.h"
#include "tools/common/files.h"
#include "tools/common/message.h"

#define RANGE_SHARDS_MAX 64
#define RANGES_ENOUGH	 4096 /* up to so many each one has a single shard */
#define LOOKS_FREELY	 256  /* at single names, before all are listed */
#define LOOKS_SHARE	 4    /* and for so many ranges one: a look costs as much as some names */

uint64_t shard_ranges_shards(uint64_t shard_count)
{
	uint64_t shards = (shard_count + RANGES_ENOUGH - 1) / RANGES_ENOUGH;

	return shards < 1 ? 1 : shards < RANGE_SHARDS_MAX ? shards : RANGE_SHARDS_MAX;
}

bool shard_ranges_find(uint64_t shard_count, struct shard_range *r)
{
	uint64_t shards = shard_ranges_shards(shard_count);

	r->first = r->idx * shards;
	if (r->first >= shard_count)
		return false;
	r->count = shard_count - r->first < shards ? shard_count - r->first : shards;
	return true;
}

int shard_ranges_open(struct shard_ranges *r, const char *out_dir, const char *state_dir, uint64_t shard_count)
{
	int code;

	r->out_dir = out_dir;
	r->state_dir = state_dir;
	r->shards = shard_ranges_shards(shard_count);
	r->count = (shard_count + r->shards - 1) / r->shards;
	r->next = malloc((r->count + 1) * sizeof(*r->next));
	r->files = calloc(r->count + 1, sizeof(*r->files));
	if (!r->next || !r->files)
		return fail(EXIT_IO, "out of memory for %" PRIu64 " ranges of shards", r->count);
	for (uint64_t range = 0; range < r->count; range++)
		r->next[range] = range * r->shards;
	r->is_new = true;
	code = claim_list(state_dir, r->count, r->files);
	return code == EXIT_DONE ? shard_list_look(&r->list, out_dir, shard_count) : code;
}

void shard_ranges_close(struct shard_ranges *r)
{
	shard_list_free(&r->list);
	free(r->files);
	free(r->next);
	*r = (struct shard_ranges){0};
}

uint64_t shard_ranges_end(const struct shard_ranges *r, uint64_t range)
{
	uint64_t end = (range + 1) * r->shards;

	return end < r->list.shard_count ? end : r->list.shard_count;
}

bool shard_ranges_is_complete(struct shard_ranges *r, uint64_t range)
{
	uint64_t end = shard_ranges_end(r, range);

	while (r->next[range] < end && r->list.there[r->next[range]])
		r->next[range]++;
	return r->next[range] == end;
}

void shard_ranges_see(struct shard_ranges *r, uint64_t shard_idx)
{
	r->list.there_count += !r->list.there[shard_idx];
	r->list.there[shard_idx] = true;
}

static bool is_there(const struct shard_ranges *r, uint64_t shard_idx)
{
	char path[FILES_PATH_BYTES];
	struct stat st;

	return files_numbered(path, r->out_dir, "", shard_idx, ".shard") == EXIT_DONE && lstat(path, &st) == 0;
}

bool shard_ranges_is_there(const struct shard_ranges *r, uint64_t range)
{
	uint64_t k = range * r->shards, end = shard_ranges_end(r, range);

	while (k < end && is_there(r, k))
		k++;
	return k == end;
}

bool shard_ranges_has(struct shard_ranges *r, uint64_t shard_idx)
{
	if (!r->list.there[shard_idx] && is_there(r, shard_idx))
		shard_ranges_see(r, shard_idx);
	return r->list.there[shard_idx];
}

bool shard_ranges_has_come(struct shard_ranges *r, uint64_t range)
{
	uint64_t last = shard_ranges_end(r, range) - 1;

	return !r->list.there[last] && shard_ranges_has(r, last);
}

bool shard_ranges_is_marked(const struct shard_ranges *r)
{
	return r->shards > 1;
}

static void see_range(struct shard_ranges *r, uint64_t range)
{
	for (uint64_t k = r->next[range]; k < shard_ranges_end(r, range); k++)
		shard_ranges_see(r, k);
}

/*
 * What new marks say, if the last shard is seen, too: a network file system that hides it would
 * hide others, and whoever seals on this machine would miss them.
 */
static int see_built(struct shard_ranges *r)
{
	struct claim_files *now = calloc(r->count + 1, sizeof(*now));
	int code = now ? claim_list(r->state_dir, r->count, now)
		       : fail(EXIT_IO, "out of memory for %" PRIu64 " ranges of shards", r->count);

	for (uint64_t range = 0; code == EXIT_DONE && range < r->count; range++)
		if (now[range].built && !r->files[range].built && !shard_ranges_is_complete(r, range) &&
		    shard_ranges_has(r, shard_ranges_end(r, range) - 1))
			see_range(r, range);
	free(now);
	return code;
}

bool shard_ranges_look_at(struct shard_ranges *r, uint64_t range)
{
	char path[FILES_PATH_BYTES];
	struct stat st;

	if (shard_ranges_is_complete(r, range) || !shard_ranges_has(r, shard_ranges_end(r, range) - 1))
		return shard_ranges_is_complete(r, range);
	if (shard_ranges_is_marked(r) && !r->files[range].built &&
	    claim_built_path(path, r->state_dir, range) == EXIT_DONE && lstat(path, &st) == 0)
		see_range(r, range);
	while (!shard_ranges_is_complete(r, range) && shard_ranges_has(r, r->next[range]))
		;
	return shard_ranges_is_complete(r, range);
}

int shard_ranges_list(struct shard_ranges *r)
{
	return shard_list_look(&r->list, r->out_dir, r->list.shard_count);
}

int shard_ranges_look(struct shard_ranges *r)
{
	uint64_t incomplete = 0;

	for (uint64_t range = 0; range < r->count; range++)
		incomplete += !shard_ranges_is_complete(r, range);
	if (r->is_new || incomplete <= LOOKS_FREELY + r->count / LOOKS_SHARE) {
		r->is_new = false;
		return EXIT_DONE;
	}
	return shard_ranges_is_marked(r) ? see_built(r) : shard_ranges_list(r);
}
