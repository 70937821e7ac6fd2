/* SPDX-License-Identifier: Apache-2.0 */
/*
 * accepted_records.c - the records of a shard that were made of damaged inputs
 *
 * The field `damage` says which they are.  The records of a shard are the inputs of its part of the
 * plan, in order, without those that the shard lists as left out.
 */
#include "tools/shardpack/make/make.h"

#include <inttypes.h>
#include <stdlib.h>

#include "shard_inspect.h"
#include "tools/common/exit_code.h"
#include "tools/common/message.h"
#include "tools/shardpack/make/job.h"
#include "tools/shardpack/plan/plan.h"

#define RECORDS_AT_ONCE 4096

struct search {
	struct shard_reader *reader;
	const struct shard_field *field;
	uint64_t ordinal;	       /* of the next record, but for misses */
	uint64_t miss_idx, miss_count; /* those before are behind us */
	int (*each)(void *context, uint64_t ordinal, uint32_t reason);
	void *context;
};

/* Step over inputs that are no records. */
static int skip_misses(struct search *s)
{
	struct shard_miss miss;
	struct shard_error err;

	for (; s->miss_idx < s->miss_count; s->miss_idx++, s->ordinal++) {
		if (shard_reader_miss(s->reader, s->miss_idx, &miss, &err) != SHARD_OK)
			return fail_of_library(&err);
		if (miss.ordinal != s->ordinal)
			break;
	}
	return EXIT_DONE;
}

static int take_record(struct search *s, uint8_t damage)
{
	int code = skip_misses(s);

	if (code == EXIT_DONE && damage)
		code = s->each(s->context, s->ordinal, damage);
	s->ordinal++;
	return code;
}

int accepted_find(const struct job *job, uint64_t shard_idx, struct shard_reader *reader,
		  int (*each)(void *context, uint64_t ordinal, uint32_t reason), void *context)
{
	const struct shard_field *field = recipe_damage(&job->plan->recipe, &job->schema);
	struct search s = {.reader = reader, .field = field, .each = each, .context = context};
	uint64_t planned, n;
	struct shard_info info;
	struct shard_error err;
	uint8_t *bytes;
	int code = EXIT_DONE;

	if (!field)
		return EXIT_DONE;
	bytes = malloc(RECORDS_AT_ONCE * (size_t)field->stride);
	if (!bytes)
		return fail(EXIT_IO, "out of memory for %d records of %" PRIu64 " bytes", RECORDS_AT_ONCE,
			    field->stride);
	shard_reader_info(reader, &info);
	plan_shard(job->plan, shard_idx, &s.ordinal, &planned);
	s.miss_count = info.miss_count;
	for (uint64_t record = 0; code == EXIT_DONE && record < info.record_count; record += n) {
		n = info.record_count - record < RECORDS_AT_ONCE ? info.record_count - record : RECORDS_AT_ONCE;
		if (shard_reader_read(reader, field->group, record, n, bytes, &err) != SHARD_OK)
			code = fail_of_library(&err);
		for (uint64_t i = 0; code == EXIT_DONE && i < n; i++)
			code = take_record(&s, bytes[i * field->stride + field->offset]);
	}
	free(bytes);
	return code;
}
