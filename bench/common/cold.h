/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cold.h - datasets mapped, out of the page cache, and in it
 */
#ifndef SHARD_COMMON_COLD_H
#define SHARD_COMMON_COLD_H

#include "bench/common/data.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Map every file; map[i] is that of file[i].  Populated: with all its pages in place. */
const uint8_t **data_map(const struct data_files *files, bool populated);
void data_unmap(const struct data_files *files, const uint8_t **map);

/* Drop all of it from the page cache; false, with bench_skip(), if 1 % or more of it stayed. */
bool data_evict(const struct data_files *files);

/* The same before a run whose reads are counted; *device_before is data_device_bytes() then. */
bool data_make_cold(const struct data_files *files, uint64_t *device_before);

/*
 * Touch so much of the free memory and give it back.  A virtual machine may report free memory to
 * its host, which then has to find it again, page by page, when it is used again: that took 1 to 2
 * CPU seconds for a GB where it was measured.  Of this much memory it is over before a run begins,
 * as it is on a machine without a host.  What is free is reported again after a second or more.
 */
void data_touch_free_memory(uint64_t bytes);

/*
 * Evict, then read all of it as a first epoch does: in order, buffered.  So the pages are of the
 * size that the system makes when it reads; those of a file just written are smaller, and slow to
 * map.  False if it does not stay in memory.
 */
bool data_warm(const struct data_files *files);
bool data_warm_dir(const char *dir);		       /* the files of this dataset */
double data_residency(const struct data_files *files); /* 0 to 1; for files that we own */

/* Bytes that this process has made the system read from devices so far. */
uint64_t data_device_bytes(void);

#ifdef __cplusplus
}
#endif

#endif
