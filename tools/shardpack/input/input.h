/* SPDX-License-Identifier: Apache-2.0 */
/*
 * input.h - where the bytes of an input are, unpacked if need be, and whether they changed
 */
#ifndef SHARD_SHARDPACK_INPUT_INPUT_H
#define SHARD_SHARDPACK_INPUT_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/common/progress.h"

struct megatron_index;
struct plan;
struct progress;
struct stored;
struct token_stream;
struct warm;

/*
 * stored.c: bytes copied out of a mapped file, which may become shorter meanwhile
 */

/*
 * Map the first `bytes` of a file, to be read here and there.  NULL if that cannot be: read it in
 * another way.
 */
const uint8_t *mapped_open(int fd, uint64_t bytes);
void mapped_close(const uint8_t *map, uint64_t bytes); /* NULL is nothing */

/* Any thread.  False if the file does not give them: reading it says why. */
bool mapped_copy(void *out, const uint8_t *from, size_t bytes);

/*
 * stored.c: the files of a plan read ahead from front to back
 *
 * Records in shuffled order come from everywhere in a file, which disks hate.  If all files fit in
 * half of the memory that is available, one thread asks the system for them from front to back;
 * else records are asked for as they come, see fixed_records.c.  It only saves time: a failure here
 * never fails the pack.
 */

/* NULL if it would not help, or cannot be started. */
struct warm *warm_start(const struct plan *plan, const struct stored *stored);
void warm_stop(struct warm *w);

/*
 * unpack.c: how much a file may unpack to
 */

/* How much may be written, and what to say and return if that is not enough. */
struct unpack_most {
	uint64_t bytes;
	int code;
	const char *remedy;
};

/* ---- unpack.c ---- */

/* No input may be larger.  A member of a ZIP that says it is becomes a hole: it cannot be read. */
#define UNPACK_MEMBER_BYTES_MAX (UINT64_C(1) << 30)

/*
 * The least that `how` will write, by what the file says of itself: its head, its end or its
 * directory.  0 if that says nothing.
 */
uint64_t unpack_least_bytes(const char *how, int in_fd, uint64_t in_bytes);

/*
 * Write to `out_fd`, an empty file, what `how` makes of the `in_bytes` of `in_fd`; the words are
 * those of stored.h.  Every checksum on the way is compared.  `name` is for messages.  Returns the
 * exit code: EXIT_BAD if the input is damaged, that of `most` if it has more.  *written is what was
 * written, without holes.  An `out_fd` of -1 looks only, but not of a ZIP.
 */
int unpack_run(const char *how, int in_fd, uint64_t in_bytes, int out_fd, const char *name,
	       const struct unpack_most *most, uint64_t *written);

/*
 * unpack.c: what it shares with unpack_archive.c
 */

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

/* All of a file by libarchive; `how` is bzip2 or xz. */
int unpack_archive(struct unpack_work *w, const char *how);

/* ---- documents.c ---- */

/* A document of `count` tokens, from token `begin` of the stream on.  Returns the exit code. */
typedef int documents_take(void *context, uint64_t begin, uint64_t count);

/*
 * Give each document of the stream to `take`, in order.  They are those of its index, of which
 * every number is checked: together they are all of the stream.  Without an index a document ends
 * behind each token `end_of_text`, which belongs to it, and at the end of the stream.  `progress`
 * counts tokens; NULL is none.  Says why it fails and returns the exit code.
 */
int documents_each(const struct stored *s, const struct token_stream *t, uint64_t end_of_text, documents_take *take,
		   void *context, struct progress *progress);

/*
 * EXIT_DONE if every token of the stream is 0 to `most`; else one line that names the first that is
 * not, and its place.
 */
int documents_check_values(const struct stored *s, const struct token_stream *t, uint64_t most,
			   struct progress *progress);

#endif
