/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stored.h - files that hold many inputs, read by offset
 *
 * Handles to the files of a plan, by the plan's numbers.  A file that can only be read from its
 * front, as a gzip is, is unpacked once per process into an unnamed file, which is then as good as
 * any other.  How is a word of the plan:
 *
 *   gzip                                all of it, whatever number of members
 *   zstd                                the same of Zstandard frames
 *   bzip2, xz                           the same of these, if there is libarchive
 *   deflate,OFFSET,BYTES,CRC            one member of a ZIP
 *   zip                                 all of its members, in the order of its directory
 *   fortran,OFFSET,ITEM,COUNT,DIMS...   an array whose first index changes fastest, to one whose
 *                                       last does
 */
#ifndef SHARD_SHARDPACK_INPUT_STORED_H
#define SHARD_SHARDPACK_INPUT_STORED_H

#include "tools/shardpack/input/place.h"

struct limits;
struct plan;

struct stored;

/*
 * `place` must outlive it; unnamed files are made in the folder `spool_dir`, or the nearest one
 * above it that exists.  Of the limits LIMIT_UNPACK counts: what a compressed file may unpack to,
 * all its members together.  The default, also of NULL, is 1 GiB, or 100 times the size of the file
 * if that is more.
 */
int stored_open(struct stored **out, const struct source_place *place, const char *spool_dir,
		const struct limits *limits);
void stored_close(struct stored *s);

/*
 * Add a file below the root to the plan, or what is made of one that is there.  Must be called in
 * the order of the plan's numbers.  Says why it fails and returns the exit code: EXIT_BAD if bytes
 * are no good, EXIT_IO if they could not be read.  One that fails has no number.  `bytes` is what
 * will be unpacked, 0 if that is not known; it is compared with the limit and with the room on disk
 * before anything is written.
 */
int stored_add(struct stored *s, struct plan *p, const char *path, uint32_t *file);
int stored_unpack(struct stored *s, struct plan *p, uint32_t of, const char *how, uint64_t bytes, uint32_t *file);

/*
 * An unnamed file of this many zeros, to be mapped and written; `of` is for messages.  *fd is to be
 * closed; -1 if there is none.
 */
int stored_scratch(const struct stored *s, const char *of, uint64_t bytes, int *fd);

/*
 * Open all files of a plan that was read.  A file whose size has changed is EXIT_MISMATCH; `anew`
 * says how to pack all anew.
 */
int stored_attach(struct stored *s, const struct plan *p, const char *anew);

/* When a file of the source was written, as it was when it was opened. */
uint64_t stored_written_ns(const struct stored *s, uint32_t file);

uint64_t stored_bytes(const struct stored *s, uint32_t file);

/*
 * Exactly these bytes.  Any thread.  False, and a sentence, if they cannot be read; the plan says
 * that they lie within the file.
 */
bool stored_read(const struct stored *s, uint32_t file, uint64_t offset, void *out, size_t bytes, char *message,
		 size_t message_bytes);

/*
 * The same for few bytes that are in memory: it saves a call of the system.  False if that is not
 * possible here, or the file has no such bytes any more; stored_read() says why.
 */
bool stored_copy(const struct stored *s, uint32_t file, uint64_t offset, void *out, size_t bytes);

/* Have the processor fetch the begin of bytes that stored_copy() will be asked for. */
void stored_prefetch(const struct stored *s, uint32_t file, uint64_t offset, uint64_t bytes);

/* Are these bytes in memory already?  Also true if the system cannot tell. */
bool stored_is_near(const struct stored *s, uint32_t file, uint64_t offset);

/*
 * Have these bytes, or those of them that the file has, brought to memory; expect does not wait,
 * touch does.
 */
void stored_expect(const struct stored *s, uint32_t file, uint64_t offset, uint64_t bytes);

/* As stored_read(), for scans: prints the sentence, and returns the exit code. */
int stored_get(const struct stored *s, uint32_t file, uint64_t offset, void *out, size_t bytes);

/* "root/path" of a file, for messages; to be freed. */
char *stored_name(const struct stored *s, uint32_t file);

/*
 * Has every file the size and time that it had when it was opened?  Prints which one has not, and
 * returns the exit code.  `anew` says how to pack all anew.
 */
int stored_check_unchanged(const struct stored *s, const char *anew);

#endif
