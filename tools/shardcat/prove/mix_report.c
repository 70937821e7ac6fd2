/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mix_report.c - what a mixture makes of its sources: how often each comes, and how evenly
 */
#include "tools/shardcat/prove/prove.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tools/common/exit_code.h"
#include "tools/common/human.h"
#include "tools/common/message.h"
#include "tools/common/signals.h"
#include "tools/shardcat/dataset/cat_dataset.h"

/* Of one source, over all batches. */
struct share {
	uint64_t records; /* that came */
	double squares;	  /* of its count in a batch */
};

struct mix_study {
	struct shard_loader_options o;
	struct mix_file file;
	struct shard_loader *loader;
	struct shard_order_info order;
	struct shard_mix_info info;
	struct share *share; /* [count] */
	uint16_t *component; /* [batch_records] */
	uint64_t *idx, *now; /* of a batch: records; [count] how many of each source */
	uint64_t batch_count;
};

static int open_study(struct mix_study *s)
{
	struct shard_error err;
	int rc = shard_loader_open(&s->loader, NULL, &s->o, &err);

	if (rc)
		return fail_of_library(&err);
	shard_loader_order_info(s->loader, &s->order);
	shard_mix_info(s->file.mix, &s->info);
	s->share = calloc(s->file.count, sizeof(*s->share));
	s->now = calloc(s->file.count, sizeof(*s->now));
	s->component = calloc(s->o.batch_records, sizeof(*s->component));
	s->idx = calloc(s->o.batch_records, sizeof(*s->idx));
	return s->share && s->now && s->component && s->idx
		       ? EXIT_DONE
		       : fail(EXIT_IO, "%s: out of memory for batches of %" PRIu32, s->file.path, s->o.batch_records);
}

/* Whole batches of an epoch; the last one may take records of the next. */
static int study_epoch(struct mix_study *s, uint64_t epoch)
{
	uint64_t batch = s->o.batch_records;
	struct shard_error err;

	for (uint64_t first = 0; first + batch <= s->info.epoch_records; first += batch) {
		int rc = shard_loader_mix_order(s->loader, epoch, first, batch, s->component, s->idx, &err);

		if (rc)
			return fail_of_library(&err);
		for (uint64_t i = 0; i < batch; i++)
			s->now[s->component[i]]++;
		for (uint32_t d = 0; d < s->file.count; d++) {
			s->share[d].records += s->now[d];
			s->share[d].squares += (double)s->now[d] * (double)s->now[d];
			s->now[d] = 0;
		}
		s->batch_count++;
		if (interrupted())
			return fail(EXIT_INTERRUPTED, "%s: interrupted", s->file.path);
	}
	return EXIT_DONE;
}

static void print_source(const struct mix_study *s, uint32_t d)
{
	uint64_t records = shard_mix_records(s->file.mix, d), weight = s->file.source[d].weight;
	double p = (double)weight / s->info.weight_sum, batch = s->o.batch_records, batches = (double)s->batch_count;
	double mean = (double)s->share[d].records / batches;
	double variance = s->share[d].squares / batches - mean * mean;
	char count[HUMAN_CHARS];

	printf("  %6" PRIu64 " %12s %10.3g %11.4g %9.3g %10.3g  %s%s\n", weight, human_count(count, records),
	       p * (double)s->info.epoch_records / (double)records, mean, sqrt(variance > 0 ? variance : 0),
	       sqrt(batch * p * (1 - p)), s->file.of[d]->path, s->file.source[d].selection ? ", selected" : "");
}

static void print_study(const struct mix_study *s, uint64_t epochs)
{
	uint64_t lanes = (uint64_t)s->order.lane_count * s->order.run_records;
	char text[ORDER_TEXT_CHARS], count[HUMAN_CHARS];
	uint32_t small = 0;

	printf("order     %s\n", order_text(text, &s->order));
	printf("mixture   %" PRIu32 " source%s, weights of %" PRIu32 " in all, epochs of %s records\n", s->file.count,
	       s->file.count == 1 ? "" : "s", s->info.weight_sum, human_count(count, s->info.epoch_records));
	printf("batches   %s of %" PRIu32 ", of %" PRIu64 " epoch%s\n\n", human_count(count, s->batch_count),
	       s->o.batch_records, epochs, epochs == 1 ? "" : "s");
	printf("  %6s %12s %10s %11s %9s %10s  %s\n", "weight", "records", "passes", "in a batch", "+-", "by chance",
	       "source");
	for (uint32_t d = 0; d < s->file.count; d++) {
		print_source(s, d);
		small += s->order.kind == SHARD_SHUFFLE_WINDOWS && shard_mix_records(s->file.mix, d) < lanes;
	}
	printf("\npasses: how often a source comes in an epoch; +-: standard deviation from batch to batch\n");
	if (small)
		printf("%" PRIu32 " source%s fewer than %" PRIu64
		       " records, which is a run for each lane: such records "
		       "are read one by one\n",
		       small, small == 1 ? " has" : "s have", lanes);
}

int mix_report(const char *path, const struct shard_loader_options *options, uint64_t epochs)
{
	struct mix_study s = {.o = *options};
	int rc = mix_file_open(&s.file, path);

	s.o.mix = s.file.mix;
	if (!rc)
		rc = open_study(&s);
	for (uint64_t e = 0; e < epochs && !rc; e++)
		rc = study_epoch(&s, e);
	if (!rc && !s.batch_count)
		rc = fail(EXIT_USAGE, "%s: an epoch of %" PRIu64 " records is too short for a batch of %" PRIu32, path,
			  s.info.epoch_records, s.o.batch_records);
	if (!rc)
		print_study(&s, epochs);
	shard_loader_close(s.loader);
	free(s.share);
	free(s.now);
	free(s.component);
	free(s.idx);
	mix_file_close(&s.file);
	return rc;
}
