/* SPDX-License-Identifier: Apache-2.0 */
/*
 * direct.h - a file opened for reads past the page cache, and the alignment that such reads need
 */
#ifndef SHARD_IO_DIRECT_H
#define SHARD_IO_DIRECT_H

#include <stdbool.h>
#include <stdint.h>

struct direct_file {
	int fd;		       /* -1: not open */
	bool direct;	       /* past the page cache; else an ordinary file, and aligns are 1 */
	uint32_t offset_align; /* of offsets and lengths */
	uint32_t memory_align;
};

/*
 * Open `path`, which must be the file with that inode and length.  With `want_direct` past the page
 * cache, if the file system has that.  Fails as open does, and with ESTALE if it is another file.
 */
int direct_open(const char *path, uint64_t inode, uint64_t bytes, bool want_direct, struct direct_file *out);
void direct_close(struct direct_file *f);

/*
 * Is the folder or file on a file system of another machine, where a map answers a lost connection
 * with SIGBUS?
 */
bool file_is_remote(const char *path);

/* How many maps a process may have: vm.max_map_count. */
uint64_t memory_maps_most(void);

#endif
