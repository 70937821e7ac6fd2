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
#include "tools/common/text.h"

struct bad_input;
struct limits;
struct plan;
struct shelf;
struct stat;
struct source_files;
struct token_stream;
struct warm;

/*
 * source_root.c - where the inputs are: one folder, and paths below it
 *
 * A plan names inputs relative to this folder, so that it means the same on any machine.  The
 * folder is the one that --root names.  Without --root it is SRC, if that is a folder, else the
 * folder that holds everything that was named.  A file .json may lie elsewhere, as that of COCO
 * does: then it is the lowest folder above both.
 */

struct source_item {
	char *path;	      /* relative to the root, in `paths` below; "" is the root itself */
	bool is_dir, missing; /* missing: a list names it, and there is no such file */
};

struct source_root {	/* start it zeroed, with fd -1, and a shelf for paths if there is one */
	char *name;	/* for messages: as it was typed, where that is possible */
	char *absolute; /* for `shardpack build` */
	char *below;	/* where --root lies below the root; "", unless items lie elsewhere */
	int fd;
	struct source_item *item; /* in the order given; a pattern's in byte order */
	uint64_t item_count, item_capacity;
	struct text paths; /* NUL-terminated, one behind the other; its shelf has the items, too */
};

/*
 * Take what was named: files, folders, patterns that match some, and "-" for a list of these on
 * standard input, one a line.  `root` is NULL or what --root says.  Returns the exit code.
 */
int source_root_open(struct source_root *p, const char *const *named, size_t named_count, const char *root);

/*
 * Look at a file, folder or link target below the root.  *there is false only if nothing has that
 * name.  A link that leads nowhere is bad input, which `bad` says.  It is EXIT_IO if `bad` is NULL,
 * and so is every other error.  Callers must not ignore such a name: it may be a folder of images.
 */
int source_root_stat(const struct source_root *p, const char *path, struct stat *st, bool *there,
		     struct bad_input *bad);

/* The same of an entry of a folder that was listed: if it is gone now, that is like such a link. */
int source_root_stat_entry(const struct source_root *p, const char *path, struct stat *st, struct bad_input *bad);

/* Only the folder, for callers that have a plan already. */
int source_root_open_folder(struct source_root *p, const char *root);

void source_root_close(struct source_root *p);

/*
 * source_files.c - files that hold many inputs, read by offset
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

/*
 * `root` must outlive it; unnamed files are made in the folder `spool_dir`, or the nearest one
 * above it that exists.  Of the limits LIMIT_UNPACK counts: what a compressed file may unpack to,
 * all its members together.  The default, also of NULL, is 1 GiB, or 100 times the size of the file
 * if that is more.
 */
struct source_files *source_files_open(const struct source_root *root, const char *spool_dir,
				       const struct limits *limits);
void source_files_close(struct source_files *s);

/*
 * Add a file below the root to the plan, or what is made of one that is there.  Must be called in
 * the order of the plan's numbers.  Says why it fails and returns the exit code: EXIT_BAD if bytes
 * are of no use, EXIT_IO if they could not be read.  One that fails has no number.  `bytes` is what
 * will be unpacked, 0 if that is not known; it is compared with the limit and with the room on disk
 * before anything is written.
 */
int source_files_add(struct source_files *s, struct plan *p, const char *path, uint32_t *file);
int source_files_unpack(struct source_files *s, struct plan *p, uint32_t of, const char *how, uint64_t bytes,
			uint32_t *file);

/*
 * An unnamed file of this many zeros, to be mapped and written; `of` is for messages.  *fd is to be
 * closed; -1 if there is none.
 */
int source_files_scratch(const struct source_files *s, const char *of, uint64_t bytes, int *fd);

/*
 * Open all files of a plan that was read.  A file whose size has changed is EXIT_MISMATCH; `repack`
 * says how to pack everything again.
 */
int source_files_attach(struct source_files *s, const struct plan *p, const char *repack);

/* When a file of the source was written, as it was when it was opened. */
uint64_t source_file_written_ns(const struct source_files *s, uint32_t file);

uint64_t source_file_bytes(const struct source_files *s, uint32_t file);

/*
 * Exactly these bytes.  Any thread.  False, and a sentence, if they cannot be read; the plan says
 * that they lie within the file.
 */
bool source_file_read(const struct source_files *s, uint32_t file, uint64_t offset, void *out, size_t bytes,
		      char *message, size_t message_bytes);

/*
 * The same for few bytes that are in memory: it saves a call of the system.  False if that is not
 * possible here, or the file has no such bytes any more; source_file_read() says why.
 */
bool source_file_copy(const struct source_files *s, uint32_t file, uint64_t offset, void *out, size_t bytes);

/* Have the processor fetch the begin of bytes that source_file_copy() will be asked for. */
void source_file_prefetch(const struct source_files *s, uint32_t file, uint64_t offset, uint64_t bytes);

/* Are these bytes in memory already?  Also true if the system cannot tell. */
bool source_file_is_near(const struct source_files *s, uint32_t file, uint64_t offset);

/* Have these bytes, as far as the file has them, brought to memory, and do not wait for that. */
void source_file_expect(const struct source_files *s, uint32_t file, uint64_t offset, uint64_t bytes);

/* As source_file_read(), for scans: prints the sentence, and returns the exit code. */
int source_file_get(const struct source_files *s, uint32_t file, uint64_t offset, void *out, size_t bytes);

/* "root/path" of a file, for messages; to be freed. */
char *source_file_name(const struct source_files *s, uint32_t file);

/*
 * Has every file the size and time that it had when it was opened?  Prints which one has not, and
 * returns the exit code.  `repack` says how to pack everything again.
 */
int source_files_check_unchanged(const struct source_files *s, const char *repack);

/*
 * source_files.c: bytes copied out of a mapped file, which may become shorter meanwhile
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
 * source_files.c: the files of a plan read ahead from front to back
 *
 * Records in shuffled order come from everywhere in a file, which disks hate.  If all files fit in
 * half of the memory that is available, one thread asks the system for them from front to back;
 * else records are asked for as they come, see fixed_records.c.  It only saves time: a failure here
 * never fails the pack.
 */

/* NULL if it would not help, or cannot be started. */
struct warm *warm_start(const struct plan *plan, const struct source_files *source_files);
void warm_stop(struct warm *w);

/*
 * unpack.c: how much a file may unpack to
 */

/* How much may be written, and what to say and return if that is not enough. */
struct unpack_most {
	uint64_t bytes;
	int rc;
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
 * those of source_files.c above.  Every checksum on the way is compared.  `name` is for messages.
 * Returns the exit code: EXIT_BAD if the input is damaged, that of `most` if it has more.  *written
 * is what was written, without holes.  An `out_fd` of -1 looks only, but not of a ZIP.
 */
int unpack_run(const char *how, int in_fd, uint64_t in_bytes, int out_fd, const char *name,
	       const struct unpack_most *most, uint64_t *written);

/* "libarchive 3.7.4 liblzma/5.8.4 bz2lib/1.0.8", or NULL without it */
const char *unpack_archive_version(void);

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
int unpack_next(struct unpack_work *w, uint64_t end, size_t *bytes); /* a piece from in_at on, to w->in */
int unpack_write(struct unpack_work *w, const uint8_t *data, size_t bytes);
int unpack_damaged(const struct unpack_work *w, const char *what);

/* All of a file by libarchive; `how` is bzip2 or xz. */
int unpack_archive(struct unpack_work *w, const char *how);

/*
 * source_times.c - when each file of the source was written, and whether it still says so
 *
 * The plan has the name and the size of each file, and no times, so that copies of a source give
 * the same dataset.  Their modification times lie beside it, in .shardpack/sources.  A sealed
 * dataset has that file as dataset.sources.  A file is another one if its time differs by one
 * nanosecond, and an older time is as different as a newer one.  Little-endian:
 *
 *   24 bytes    "shardpack-sources 3\n" and zeros
 *   32          the digest of the plan
 *   8           how many files an input has; 0 if no input has a file of its own
 *   8 per file  nanoseconds since 1970; SOURCE_NO_TIME where there is no file
 *
 * First come the inputs of the plan, each with its own file and those of its fields, then the files
 * that hold many inputs.
 *
 * Bytes that change under the same size and time are not seen here.  The hash of what was read is
 * that of the shard, in its receipt: a shard that is made a second time must have it again.
 */

#define SOURCE_NO_TIME	  UINT64_MAX
#define SOURCE_TIME_CHARS 48

struct source_times { /* start it zeroed */
	void *data;   /* all of the file's bytes */
	size_t bytes;
	bool is_map;
	struct shelf *shelf; /* on which `data` is, if it is not a map; NULL: in memory */
	uint64_t *own_ns;    /* of files of one input: [own_count] */
	uint64_t *file_ns;   /* of files that hold many: [file_count] */
	uint64_t own_count, per_input, file_count;
};

/* For messages. */
struct source_words {
	const char *root;   /* the folder of the sources */
	const char *what;   /* what was made of them: the plan, or a dataset */
	const char *repack; /* how to pack everything again */
};

/* All functions that return int say why they fail, and return the exit code. */

/* Look at every file of a plan that was just made; the times go to its shelf. */
int source_times_collect(struct source_times *t, const struct plan *p, const struct source_root *root,
			 const struct source_files *s);

/*
 * What was written down of this plan.  *found is false if there is no such file, or none of this
 * release.
 */
int source_times_open(struct source_times *t, const struct plan *p, const char *path, bool *found);

/* Say that it is of no use. */
int source_times_refuse_damage(const char *path);

void source_times_close(struct source_times *t);

/* When was the file of an input written: its own (part 0), or that of its field part - 1? */
uint64_t source_time_of_input(const struct source_times *t, uint64_t input_idx, uint32_t part);

const char *source_time_text(uint64_t ns, char out[SOURCE_TIME_CHARS]);

/*
 * Is each file as old as it was then?  EXIT_MISMATCH names the first one that is not.  Both have the
 * same number of bytes.
 */
int source_times_compare(const struct source_times *then, const struct source_times *now, const struct plan *p,
			 const struct source_words *words);

/*
 * The same of files that hold many inputs, as they were opened.  The converter compares the time of
 * any other file when it reads it.
 */
int source_times_compare_files(const struct source_times *then, const struct source_files *s, const struct plan *p,
			       const struct source_words *words);

/*
 * Call this when the records of some ordinals are made: was a file of theirs written after it was
 * read?  Files of one input only.  One that was removed has done its work.
 */
int source_times_check_written(const struct source_times *then, const struct plan *p, int root_fd,
			       const struct source_words *words, uint64_t first, uint64_t count);

/*
 * free_space.c - how much may still be written to a file system
 */

/*
 * Bytes that this user may still write to the file system of `dir`, or of the folder above it if
 * there is none yet.
 */
int free_space(const char *dir, uint64_t *free_bytes);

/* May `bytes` be written to the file system of this file?  True if nothing says how many. */
bool free_space_fits(int fd, uint64_t bytes);

/*
 * EXIT_DONE if what the file `name` unpacks to fits beside the unnamed file `fd` of the folder
 * `spool_dir`; else one line and EXIT_IO.
 */
int free_space_check_spool(int fd, const char *name, uint64_t needed_bytes, const char *spool_dir);

/* ---- documents.c ---- */

/* A document of `count` tokens, from token `begin` of the stream on.  Returns the exit code. */
typedef int documents_take(void *context, uint64_t begin, uint64_t count);

/*
 * Give each document of the stream to `take`, in order.  They are those of its index, of which
 * every number is checked: together they are all of the stream.  Without an index a document ends
 * behind each token `end_of_text`, which belongs to it, and at the end of the stream.  `progress`
 * counts tokens; NULL is none.  Says why it fails and returns the exit code.
 */
int documents_each(const struct source_files *s, const struct token_stream *t, uint64_t end_of_text,
		   documents_take *take, void *context, struct progress *progress);

/*
 * EXIT_DONE if every token of the stream is 0 to `most`; else one line that names the first that is
 * not, and its place.
 */
int documents_check_values(const struct source_files *s, const struct token_stream *t, uint64_t most,
			   struct progress *progress);

/*
 * documents.c - the windows of a plan of packed documents, computed from the documents' lengths
 *
 * Memory follows the length of a window, not the number of documents.  Where each piece lies, 8
 * bytes of it, is in an unnamed file that is mapped.
 */

/*
 * Of a new plan, whose streams are known: fill in all the rest of plan->pack.  Says why it fails
 * and returns the exit code.
 */
int token_windows_make(const struct source_files *s, struct plan *plan, uint32_t room, struct progress *progress);

/*
 * Of a plan that was read: the same, and EXIT_MISMATCH if the documents are not those of the plan.
 * Nothing is done for other plans.  `repack` says how to pack everything again.
 */
int token_windows_again(const struct source_files *s, struct plan *plan, const char *repack);

#endif
