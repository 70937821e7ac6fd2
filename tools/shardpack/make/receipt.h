/* SPDX-License-Identifier: Apache-2.0 */
/*
 * receipt.h - what is known of a published shard, so that it need not be read again
 *
 *   receipt 5
 *   shard 5 bytes 8200192 time 1764000000123456789 records 54 misses 1 read-back yes
 *     root 3d1c... sha256 9a41...              on the same line
 *   fit 54 2 0 120 3 1                         the numbers of fit_count.h; of images alone
 *   dropped 2 301 0 0 1 317 0 0 0 0            likewise; of each a count and the first ordinal
 *   field 0 54 2 17 1 6                        those of a field, by its number in the recipe
 *   not-finite 2:5:0 3:0:1                     field, values that are NaN, and that are infinite
 *   miss 301 5 1 the%20file%20ends%20early     ordinal, reason, how, message
 *   accepted 317 4 pixels%20are%20made%20up    ordinal, reason, message; a record all the same
 *   first 318 2 GIF%20has%202%20frames:...     likewise; the rest of the file is not packed
 *   end 6b0f...                                SHA-256 of all before
 *
 * read-back says whether the shard was read from the disk and verified: before it got its name, or
 * later.
 *
 * A receipt saves reading the shard while that has the same size, modification time and footer.  A
 * lost or damaged one is made again from the shard.  A sound one of other bytes says that the shard
 * was built twice, of sources that were not the same.
 */
#ifndef SHARD_RECEIPT_H
#define SHARD_RECEIPT_H

#include <stdbool.h>
#include <stdint.h>

#include "shard.h"
#include "shard_pack.h"
#include "tools/common/text.h"
#include "tools/shardpack/make/account.h"
#include "tools/shardpack/make/fit_count.h"

struct plan;
struct result;

#define RECEIPT_FIRST_LINE "receipt 5\n"

struct receipt { /* start it zeroed */
	uint64_t file_bytes, mtime_ns, record_count, miss_count;
	uint8_t root[16], sha256[32];
	bool read_back;
	struct fit_count fit;	      /* a receipt that was made again from its shard does not know it */
	struct not_finite not_finite; /* likewise */
	struct text lines;	      /* of misses, and of what was told of records */
};

/* Add a line to `lines`. */
void receipt_add_miss(struct text *lines, const struct shard_miss *miss, const char *message);
/* `how` is PROBLEM_ACCEPTED or PROBLEM_FIRST. */
void receipt_add_record(struct text *lines, uint64_t ordinal, uint32_t reason, enum problem_how how,
			const char *message);

/*
 * What is to be told of a record, which is nothing of most: damage that was accepted, or frames
 * that are left out.  It goes to the user, into the lines and into the account.  Returns the exit
 * code.
 */
int receipt_tell(struct text *lines, struct account *a, const char *source, const struct result *r);

/* How many inputs were accepted; and how many were skipped. */
uint64_t receipt_accepted_count(const struct receipt *r);
uint64_t receipt_skipped_count(const struct receipt *r);

/* The first input that vanished after it was planned, and not for `other`; false if none did. */
bool receipt_vanished(const struct receipt *r, const struct receipt *other, uint64_t *ordinal);

/*
 * Do both say the same of every input that vanished for neither of them: that it is a record, which
 * damage of it was accepted, or for which reason it was left out?
 */
bool receipt_agrees(const struct receipt *a, const struct receipt *b);

/* Its text, and a receipt from that; false if it is damaged, or of another shard or version. */
void receipt_write(const struct receipt *r, uint64_t shard_idx, struct text *out);
bool receipt_parse(struct receipt *r, uint64_t shard_idx, struct text *text);

/*
 * When the published shard was last written, in nanoseconds since 1970.  Returns false, with errno
 * set, on failure.
 */
bool receipt_shard_time(const char *out_dir, uint64_t shard_idx, uint64_t *mtime_ns);

/* Is it of the same shard: the same bytes, whenever they were written? */
bool receipt_is_same(const struct receipt *a, const struct receipt *b);

/* Are they equal in every word? */
bool receipt_is_equal(const struct receipt *a, const struct receipt *b);

/* Say that it is of another shard, and return the exit code.  `anew` is that of a job. */
int receipt_refuse(const char *out_dir, uint64_t shard_idx, const char *anew);

/* Enter the shard, its misses and what was told of records.  Returns the exit code. */
int receipt_account(const struct receipt *r, const struct plan *plan, struct account *a);

void receipt_free(struct receipt *r);

#endif
