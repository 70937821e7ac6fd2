/* SPDX-License-Identifier: Apache-2.0 */
/*
 * receipt_files.h - where receipts are kept: a file for many shards, to which one process adds
 *
 *   OUT/.shardpack/receipts-00003.0      shards 192 to 255, by the process that came first
 *   OUT/.shardpack/receipts-00003.1      by the next one that built some of them
 *
 * A dataset may have a million shards, and as many files would take sealing a minute to read and to
 * remove.  Each process has files of its own, as on some network file systems two that add to one
 * file overwrite each other.  What is torn by a kill is not sound, and what follows it is.
 */
#ifndef SHARD_RECEIPT_FILES_H
#define SHARD_RECEIPT_FILES_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "shard.h"
#include "tools/common/files.h"
#include "tools/common/text.h"

struct receipt;

#define RECEIPT_FILE_SHARDS 64
#define RECEIPT_FILES_OPEN  4 /* the shards that are built at one time are neighbours */

struct receipt_files { /* any thread may add, and nobody else has to know what is in it */
	pthread_mutex_t lock;
	char state_dir[FILES_PATH_BYTES]; /* of the files that are open */
	struct receipt_file {
		uint64_t file_idx; /* shard / RECEIPT_FILE_SHARDS */
		unsigned number;   /* behind the point */
		int fd;		   /* -1: none */
	} file[RECEIPT_FILES_OPEN];
	unsigned next; /* the one that gives way */
};

void receipt_files_open(struct receipt_files *f);
void receipt_files_close(struct receipt_files *f);

/* Keep no file open: on NFS and sshfs a folder stays while one in it is.  More may be added. */
void receipt_files_let_go(struct receipt_files *f);

/*
 * Add the receipt of a shard, durably.  Returns SHARD_OK or a status.  It is fine if the folder is
 * gone: then another process of the same plan has sealed the dataset.
 */
int receipt_files_add(struct receipt_files *f, const char *state_dir, uint64_t shard_idx, const struct receipt *r,
		      struct shard_error *err);

/* All that the files of these shards hold. */
struct receipt_texts { /* start it zeroed */
	struct text all;
	struct receipt_place {
		uint64_t shard_idx;
		size_t at; /* of its line "shard" */
	} * place;
	size_t count;
};

/* Returns the exit code; `quiet`: without a word. */
int receipt_texts_read(struct receipt_texts *t, const char *state_dir, uint64_t file_idx, bool quiet);
void receipt_texts_free(struct receipt_texts *t);

/*
 * The receipt of a shard in there; false if there is none that is sound.  Of several it is one of
 * other bytes than `is`, which must not go unnoticed, or else the one that says most.  *spoilt,
 * which may be NULL, says why one that is there does not count; it is NULL if there is none.
 */
bool receipt_find(const struct receipt_texts *t, uint64_t shard_idx, const struct receipt *is, struct receipt *r,
		  const char **spoilt);

/*
 * Both at once, with a detail of what does not count.  Returns the exit code; *found is false if
 * there is none, or none that is sound.
 */
int receipt_read(const char *state_dir, uint64_t shard_idx, const struct receipt *is, struct receipt *r, bool *found);

#endif
