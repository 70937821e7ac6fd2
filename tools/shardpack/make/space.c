/* SPDX-License-Identifier: Apache-2.0 */
/*
 * space.c - what a dataset will need on disk, before its first byte
 *
 * The file's layout is that of format/SHARD.md 2.3 to 2.9; tests/cli/pack_space.sh compares
 * the sums with real files.
 */

#include <inttypes.h>

#include "tools/common/human.h"
#include "tools/common/message.h"
#include "tools/shardpack/input/input.h"
#include "tools/shardpack/make/make.h"

#define PAGE_BYTES	    4096
#define LARGE_SECTIONS_FROM (UINT64_C(64) << 20) /* from there on sections start at 64 KiB */
#define LARGE_SECTION_ALIGN 65536

static uint64_t align_up(uint64_t value, uint64_t align)
{
	return (value + align - 1) / align * align;
}

/* Bytes of all keys of a shard. */
static uint64_t key_bytes(const struct plan *plan, uint64_t first, uint64_t count)
{
	char path[PLAN_PATH_BYTES_MAX];
	struct plan_input input;
	uint64_t sum = 0;

	if (!plan_names_inputs(plan))
		return 0;
	for (uint64_t i = 0; i < count; i++) {
		plan_input(plan, plan_input_at(plan, first + i), &input);
		sum += plan_input_path(plan, &input, path);
	}
	return sum;
}

/* Statistics: a block for each image, and one for the classes. */
static uint64_t statistics_bytes(const struct shard_schema *s, uint64_t class_count)
{
	uint64_t bytes = class_count && shard_schema_label(s) ? 16 + 8 * class_count : 0;

	for (uint32_t f = 0; f < s->field_count; f++)
		if (shard_field_channels(&s->field[f]))
			bytes += 16 + 24 * (uint64_t)shard_field_channels(&s->field[f]);
	return bytes;
}

uint64_t space_of_shard(const struct job *job, uint64_t shard_idx, uint64_t provenance_bytes)
{
	const struct shard_schema *s = &job->schema;
	uint64_t first, count, stride_sum = 0, align, at;
	uint64_t section[3 * SHARD_GROUPS_MAX + 4], n = 0;

	plan_shard(job->plan, shard_idx, &first, &count);
	for (uint64_t g = 0; g < s->group_count; g++) {
		stride_sum += s->group[g].stride;
		section[n++] = count * s->group[g].stride; /* DATA */
	}
	for (uint64_t g = 0; g < s->group_count; g++) /* HASH */
		section[n++] = 8 * ((count + s->group[g].unit_records - 1) / s->group[g].unit_records);
	for (uint64_t g = 0; g < s->group_count; g++) /* CIDX */
		if (s->group[g].codec != SHARD_RAW)
			section[n++] = 32 * ((count + s->group[g].chunk_records - 1) / s->group[g].chunk_records);
	if (plan_names_inputs(job->plan)) {
		section[n++] = 8 * (count + 1);			   /* KOFF */
		section[n++] = key_bytes(job->plan, first, count); /* KBLB */
	}
	if (statistics_bytes(s, job->plan->class_count)) /* STAT */
		section[n++] = statistics_bytes(s, job->plan->class_count);
	section[n++] = provenance_bytes; /* PROV */

	align = count * stride_sum >= LARGE_SECTIONS_FROM ? LARGE_SECTION_ALIGN : PAGE_BYTES;
	at = PAGE_BYTES;
	for (uint64_t i = 0; i < n; i++)
		at = align_up(at, align) + section[i];
	return align_up(at, PAGE_BYTES) + PAGE_BYTES;
}

uint64_t space_needed(const struct job *job, const bool *todo)
{
	struct text provenance = {0};
	uint64_t sum = 0, largest = 0, part = job->part.count ? job->part.count : 1;

	recipe_provenance(&job->plan->recipe, job->plan->digest, &provenance);
	for (uint64_t k = job->part.idx; k < job->plan->shard_count; k += part) {
		uint64_t first, count, small;

		if (todo && !todo[k])
			continue;
		plan_shard(job->plan, k, &first, &count);
		sum += space_of_shard(job, k, provenance.bytes) + PAGE_BYTES; /* and its receipt */
		/* The writer keeps labels, hashes and keys aside until the images are written. */
		small = count * 16 + key_bytes(job->plan, first, count);
		for (uint64_t g = 1; g < job->schema.group_count; g++)
			small += count * job->schema.group[g].stride;
		largest = small > largest ? small : largest;
	}
	text_free(&provenance);
	return sum ? sum + 2 * largest + PAGE_BYTES : 0;
}

int space_check(const struct job *job, uint64_t needed_bytes)
{
	char need[HUMAN_CHARS], have[HUMAN_CHARS];
	uint64_t free_bytes = 0;
	int rc = needed_bytes ? free_space(job->out_dir, &free_bytes) : EXIT_DONE;

	if (rc || needed_bytes <= free_bytes)
		return rc;
	human_bytes(need, needed_bytes);
	human_bytes(have, free_bytes);
	if (job->plan->recipe.codec == SHARD_RAW)
		return fail(EXIT_IO,
			    "%s: the dataset needs %s (%" PRIu64
			    " bytes) and the disk has %s free; nothing was written",
			    job->out_dir, need, needed_bytes, have);
	warn("%s: without compression the dataset would need %s and the disk has %s free; it may not fit", job->out_dir,
	     need, have);
	return EXIT_DONE;
}
