/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fingerprint.h - what tells two versions of a file apart without reading all of a large one
 *
 * Of a small file every byte counts.  Of a larger one it is pages from all over the file, always
 * the first and the last: a change between them is not seen.  How much is read depends only on the
 * number of files, so that all machines read the same.
 */
#ifndef SHARD_INPUT_FINGERPRINT_H
#define SHARD_INPUT_FINGERPRINT_H

#include <stdbool.h>
#include <stdint.h>

#define FINGERPRINT_BYTES      16
#define FINGERPRINT_PAGE_BYTES UINT64_C(4096)

struct fingerprint_rule {
	uint64_t whole_bytes; /* the largest file of which every byte counts */
	uint64_t page_count;  /* of a larger one */
};

/* The rule for that many files.  In all, about 1 GiB or 65,536 pages are read, within limits. */
struct fingerprint_rule fingerprint_rule(uint64_t file_count);

/* Where page `i` begins. */
uint64_t fingerprint_page(const struct fingerprint_rule *rule, uint64_t file_bytes, uint64_t i);

/* False, with errno, if the file cannot be read; errno is 0 if it is shorter than `bytes`. */
bool fingerprint_take(int fd, uint64_t bytes, const struct fingerprint_rule *rule, uint8_t out[FINGERPRINT_BYTES]);

#endif
