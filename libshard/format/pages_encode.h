/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pages_encode.h - from struct pages to the header and the footer page of a file
 */
#ifndef SHARD_DISK_PAGES_ENCODE_H
#define SHARD_DISK_PAGES_ENCODE_H

#include "libshard/format/pages.h"

/*
 * The hash fields are left zero: the caller computes them, and puts the header's into the struct
 * before the footer.
 */
void pages_encode_header(struct disk_header *out, const struct pages *p);
void pages_encode_footer(struct disk_footer *out, const struct pages *p);

#endif
