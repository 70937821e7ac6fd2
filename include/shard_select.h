/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shard_select.h - train on some records of a dataset: by number, by value, by chance
 *
 * A selection names records of one dataset, each once.  A loader that is given one delivers these
 * records and no others; all else is as with the whole dataset: order, ranks, tokens, damage, GPUs.
 * The first comment of shard.h holds for this header, too.
 *
 *	shard_select_where(&cats, ds, NULL, "label", &cat, 1, &err);
 *	shard_select_fold(&train, ds, cats, 0, 5, SHARD_FOLD_REST, seed, &err);
 *	options.selection = train;
 *
 * Records lie in it in the order of the dataset.  format/ORDER.md says which record stands where:
 * it is the order of as many records, and its numbers are places in the selection.  Runs of
 * neighbours are runs of the selection, so the fewer records are selected, the further they lie
 * apart, and the more is read and hashed beside them: shard_selection_amplification() says how
 * much.
 *
 * In memory it takes 1 1/8 bits for each record of the dataset, or 4 bytes for each selected record
 * (8 in datasets of more than 2^32), whichever is less.  Making one takes a bit for each record of
 * the dataset besides.  A selection is constant: share it freely between threads.  It may outlive
 * the dataset, and must outlive loaders that use it.
 */
#ifndef SHARD_SELECT_H
#define SHARD_SELECT_H

#include "shard.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * In each call that makes one: `of` is a selection to choose from, or NULL for the whole dataset;
 * it may be closed afterwards.  ARGUMENT if no record is left, since nobody trains on nothing.
 */

/* The records idx[0] to idx[count - 1], in any order.  ARGUMENT if one comes twice. */
SHARD_API int shard_select_open(struct shard_selection **out, struct shard_dataset *ds, const uint64_t *idx,
				uint64_t count, struct shard_error *err);
SHARD_API void shard_selection_close(struct shard_selection *s);

/*
 * The records whose `field`, an integer scalar such as `label`, has one of these values.  Reads
 * this field of all records, with the checks of the dataset.
 */
SHARD_API int shard_select_where(struct shard_selection **out, struct shard_dataset *ds,
				 const struct shard_selection *of, const char *field, const int64_t *values,
				 uint64_t value_count, struct shard_error *err);

/*
 * By any other rule: the records i whose mask[i] is not 0.  There is a byte for each record of the
 * dataset, whatever `of` is.  shard_dataset_column() below reads what a rule needs.
 */
SHARD_API int shard_select_mask(struct shard_selection **out, struct shard_dataset *ds,
				const struct shard_selection *of, const uint8_t *mask, uint64_t count,
				struct shard_error *err);

/*
 * Records [begin x n, end x n), rounded to the nearest, of n records in an order that `seed` fixes.
 * 0 to 0.9 and 0.9 to 1 are a training set and a validation set that have no record in common.
 */
SHARD_API int shard_select_fraction(struct shard_selection **out, struct shard_dataset *ds,
				    const struct shard_selection *of, double begin, double end, uint64_t seed,
				    struct shard_error *err);

/*
 * Part `fold` of `fold_count` parts that are equal to within one record, of the same order; or all
 * the other parts.
 */
enum shard_fold { SHARD_FOLD_PART = 0, SHARD_FOLD_REST = 1 };
SHARD_API int shard_select_fold(struct shard_selection **out, struct shard_dataset *ds,
				const struct shard_selection *of, uint32_t fold, uint32_t fold_count, uint32_t which,
				uint64_t seed, struct shard_error *err);

/* ---- files ---- */

/* Write a small file that names the dataset, and ends in a SHA-256.  EXISTS if there is one. */
SHARD_API int shard_selection_write(const struct shard_selection *s, const char *path, struct shard_error *err);
/* CORRUPT if it is damaged or another file, MISMATCH if it selects records of another dataset. */
SHARD_API int shard_selection_read(struct shard_selection **out, struct shard_dataset *ds, const char *path,
				   struct shard_error *err);

/* ---- what it is ---- */

struct shard_selection_info {
	uint64_t record_count; /* selected */
	uint64_t of_count;     /* records of the dataset */
	uint64_t memory_bytes;
	char digest[65];     /* SHA-256 in hex of dataset and records; tokens have it */
	char dataset_id[65]; /* in hex */
};
SHARD_API void shard_selection_info(const struct shard_selection *s, struct shard_selection_info *out);

/* Places [first, first + count) of the selection: idx[i] is the record at place first + i. */
SHARD_API int shard_selection_records(const struct shard_selection *s, uint64_t first, uint64_t count, uint64_t *idx,
				      struct shard_error *err);

/*
 * What a loader reads and hashes of raw and compressed units, over what it delivers: an estimate by
 * a sample.  1 for whole datasets, and for records that are units of their own.
 */
SHARD_API double shard_selection_amplification(const struct shard_selection *s, const struct shard_dataset *ds);

/* ---- columns ---- */

/*
 * Copy a field of the records [first, first + count) to `out`, one behind the other.  Reads the
 * field's group only: of labels some bytes a record, whatever else a record holds.
 */
SHARD_API int shard_dataset_column(struct shard_dataset *ds, const struct shard_field *field, uint64_t first,
				   uint64_t count, void *out, struct shard_error *err);

/* ---- datasets of many shards ---- */

/*
 * Each view, each key of shard_dataset_key() and each reader of shard_dataset_reader() keeps its
 * shard mapped as long as the dataset is open, and a process may have no more than
 * vm.max_map_count maps.  These two keep none.
 *
 * Copy a key to `out`, which has room for SHARD_KEY_BYTES_MAX; *bytes becomes its length, 0 if the
 * shard has no keys.  There is no NUL behind it.
 */
SHARD_API int shard_dataset_read_key(struct shard_dataset *ds, uint64_t idx, char *out, size_t *bytes,
				     struct shard_error *err);

struct shard_reader; /* shard_pack.h */

/* Open a shard, and compare it with the manifest.  Close the reader before the dataset. */
SHARD_API int shard_dataset_open_reader(const struct shard_dataset *ds, uint64_t shard_idx, struct shard_reader **out,
					struct shard_error *err);

#ifdef __cplusplus
}
#endif
#endif
