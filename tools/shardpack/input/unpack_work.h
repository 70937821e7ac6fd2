/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unpack_work.h - what the ways to unpack a file share
 */
#ifndef SHARD_INPUT_UNPACK_WORK_H
#define SHARD_INPUT_UNPACK_WORK_H

#include <stddef.h>
#include <stdint.h>

#include "tools/common/progress.h"
#include "tools/shardpack/input/unpack_most.h"

#define UNPACK_PIECE_BYTES (1u << 20)
#define UNPACK_DIMS_MAX	   8

struct unpack_work {
	const char *name;
	int in_fd, out_fd; /* out_fd is -1 to look only */
	uint64_t in_bytes, in_at, out_bytes;
	uint64_t written_bytes;		/* out_bytes without the holes */
	const struct unpack_most *most; /* of these */
	/* as the archive says: a few bytes can unpack to a full disk */
	uint64_t member_at, member_bytes, member_left;
	uint8_t *in, *out; /* UNPACK_PIECE_BYTES each */
	struct progress progress;
};

/* These say why not, and return the exit code. */
int unpack_read(const struct unpack_work *w, void *out, size_t bytes, uint64_t offset);
int unpack_write(struct unpack_work *w, const uint8_t *data, size_t bytes);
int unpack_damaged(const struct unpack_work *w, const char *what);

/* "fortran,128,4,1000,3,32,32": the numbers of stored.h. */
int unpack_fortran(struct unpack_work *w, const uint64_t *arg, unsigned arg_count);

/* All of a file by libarchive; `how` is bzip2 or xz.  A build without it says so. */
int unpack_archive(struct unpack_work *w, const char *how);

#endif
