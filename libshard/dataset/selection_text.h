/* SPDX-License-Identifier: Apache-2.0 */
/*
 * selection_text.h - a selection as bytes: what is hashed, and what a file holds
 *
 *   libshard selection 1
 *   dataset 66e2...
 *   records 1281167
 *   selected 128117
 *   gaps 131072
 *   (so many bytes)
 *   sha256 8d1f...
 *
 * A gap is the number of records that are left out before a selected one, as a LEB128 number: seven
 * bits in a byte, the low ones first, and bit 7 set in each byte but the last.  The last line is
 * the SHA-256 of all bytes before it, and is the selection's digest.
 */
#ifndef SHARD_SELECT_SELECTION_TEXT_H
#define SHARD_SELECT_SELECTION_TEXT_H

#include "libshard/dataset/selection.h"

#define SELECTION_HEAD_BYTES 256u
#define SELECTION_TAIL_BYTES 72u /* "sha256 ", 64 digits, a newline */

/*
 * Make a selection of these bits of selection_open_bits(), which it takes over and may free.
 * ARGUMENT if none is set.  `what` describes the selection, for that message.
 */
int selection_make(struct shard_selection **out, const struct shard_dataset *ds, uint64_t *bits, const char *what,
		   struct shard_error *err);

/*
 * Cut a selection to a dataset as it was before others were appended: `id` had the first `of_count`
 * records only.  Returns how many records of `s` are among these, and the digest of that selection.
 */
uint64_t selection_beginning(const struct shard_selection *s, const char id[65], uint64_t of_count, char digest[65]);

/* The lines before the gaps, which have so many bytes.  Returns how many bytes the lines have. */
int selection_put_head(const struct shard_selection *s, uint64_t gaps, char head[SELECTION_HEAD_BYTES]);

#endif
