/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shard_mix.h - train on several datasets at once, in exact proportions
 *
 * A mixture has components: datasets, or selections of them, each with a weight.  A loader that is
 * given one delivers records of all components.  The first comment of shard.h holds for this
 * header, too.
 *
 *	struct shard_mix_source sources[] = {{.ds = web, .weight = 3}, {.ds = books, .weight = 1}};
 *	shard_mix_open(&mix, sources, 2, NULL, &err);
 *	options.mix = mix;
 *	shard_loader_open(&loader, NULL, &options, &err);
 *
 * format/ORDER.md, part 12, says which record stands where.  In short:
 *
 *   Weights    A block is 64 x (sum of all weights) positions, and has exactly its share of each
 *              component.  [3, 1] and [6, 2] are two orders: longer blocks are nearer to
 *              chance.
 *   Passes     Each component comes in passes: all of its records, then all of them again in
 *              another order.  A pass goes on where an epoch ends.  So each record comes once in a
 *              pass, not in an epoch.
 *   Epochs     An epoch of a mixture is only where SHARD_END is said.  A step that crosses its end
 *              takes the first positions of the next epoch; nothing is dropped or padded.  Behind
 *              the last epoch that ends at position 2^62 or before, next is ARGUMENT.
 *   Resume     The place is one number.  World, batch size and length of epochs may be others.
 *
 * In batches, `component` says whose record a row is, and `record` its number in that dataset.
 * Rank q has the positions epoch x epoch_records + position that are q mod world.  The first source
 * chooses runs and the kind of order.
 *
 * Components have the fields that a loader asks for, of the same types and shapes.  If values vary
 * in length, the greatest shape of a component may be smaller: batches have the largest one, which
 * shard_loader_field() tells, and zeros behind what a record has.
 *
 * A component of fewer records than 64 runs has one window, from which all ranks read single
 * records.  Each open window of a component takes memory: 64 lanes of 40 runs of 256 KiB, unless
 * options say otherwise, in the page cache or as decoded chunks.
 */
#ifndef SHARD_MIX_H
#define SHARD_MIX_H

#include "shard.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SHARD_MIX_WEIGHTS_MAX 4096 /* the sum of all weights is at most this */

struct shard_mix_source {
	struct shard_dataset *ds;
	const struct shard_selection *selection; /* of ds; NULL: all records */
	uint32_t weight;			 /* 1 or more; or 0 in all sources: shard_mix_round() by size */
	uint32_t reserved;			 /* 0 */
};

enum shard_mix_stop {
	/* About a pass of the component that takes longest: exactly, if it is whole blocks. */
	SHARD_MIX_LONGEST = 0,
	SHARD_MIX_SHORTEST = 1, /* of the one that takes shortest */
};

struct shard_mix_options {
	size_t size;
	uint64_t epoch_records; /* at most 2^62; 0: as `stop` says */
	uint32_t stop;		/* enum shard_mix_stop */
	uint32_t reserved;	/* 0 */
};

/*
 * The datasets and selections must outlive the mixture, and the mixture its loaders.  It is
 * constant: share it freely between threads.  The datasets must have the fields that a loader asks
 * for, stored in the same way, and the same classes if that is a label; else opening a loader is
 * MISMATCH.
 */
SHARD_API int shard_mix_open(struct shard_mix **out, const struct shard_mix_source *sources, uint32_t source_count,
			     const struct shard_mix_options *opt, struct shard_error *err);
SHARD_API void shard_mix_close(struct shard_mix *m);

/*
 * Whole weights in proportion to `share`, with the sum 4096: rounded down, at least 1, and what is
 * left goes to the largest remainders.  ARGUMENT if a share is not a number above 0, or is below
 * half of such a part: its records would come more than twice as often as was asked for.
 */
SHARD_API int shard_mix_round(const double *share, uint32_t count, uint32_t *weight, struct shard_error *err);

struct shard_mix_info {
	uint64_t epoch_records; /* positions of an epoch */
	uint32_t component_count, weight_sum;
	char digest[65]; /* SHA-256 in hex of datasets, selections and weights; a token contains it */
};
SHARD_API void shard_mix_info(const struct shard_mix *m, struct shard_mix_info *out);
/* The weight that a component has, and how many records; 0 past the last component. */
SHARD_API uint32_t shard_mix_weight(const struct shard_mix *m, uint32_t component);
SHARD_API uint64_t shard_mix_records(const struct shard_mix *m, uint32_t component);

/*
 * As shard_loader_order(), of a loader of a mixture: component[i] has the record idx[i] of its
 * dataset.  The rows are those of positions epoch x epoch_records and up that belong to this rank;
 * another rank may have one more or less.  The batches of an epoch begin some positions later, if
 * the last step of the epoch before has taken these.
 */
SHARD_API int shard_loader_mix_order(const struct shard_loader *l, uint64_t epoch, uint64_t first, uint64_t count,
				     uint16_t *component, uint64_t *idx, struct shard_error *err);

#ifdef __cplusplus
}
#endif
#endif
