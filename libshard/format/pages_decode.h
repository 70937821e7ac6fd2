/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pages_decode.h - from the header and the footer page of a file to struct pages
 */
#ifndef SHARD_DISK_PAGES_DECODE_H
#define SHARD_DISK_PAGES_DECODE_H

#include "libshard/format/pages.h"

/* I1: may a shard have this size? */
int pages_check_size(uint64_t file_bytes, struct shard_error *err);

/*
 * I2 to I42 but for I11.  `header_hash` and `footer_hash` are H128 of all but the last 16 bytes of
 * each page, as the caller computed them: this layer knows no hash function.
 */
int pages_decode(struct pages *out, const struct disk_header *header, const uint8_t header_hash[16],
		 const struct disk_footer *footer, const uint8_t footer_hash[16], uint64_t file_bytes,
		 struct shard_error *err);

/* I11, for verify. */
int pages_check_compat(const struct pages *p, struct shard_error *err);

#endif
