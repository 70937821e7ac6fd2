/* SPDX-License-Identifier: Apache-2.0 */
/*
 * receipt_files.h - where receipts are kept: in one file for each process
 *
 *   OUT/.shardpack/receipts-00000      of the process that came first
 *   OUT/.shardpack/receipts-00001      of the next one that built a shard
 *
 * No two processes add to one file, because on some network file systems they overwrite each other.
 * What is torn by a kill is not sound, and what follows it is.
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

/* All receipts of a dataset, as they were at one moment.  Start it zeroed. */
struct receipt_texts {
	struct text all;
	struct receipt_place {
		uint64_t shard_idx;
		size_t at; /* of its line "shard" */
	} * place;	   /* by shard, and those of a shard as they were read */
	uint64_t count, room;
	uint64_t file_count;
};

/* Returns the exit code.  No folder is fine. */
int receipt_texts_read(struct receipt_texts *t, const char *state_dir);
void receipt_texts_free(struct receipt_texts *t);

/*
 * The receipt of a shard in there; false if there is none that is sound.  Of several it is one of
 * other bytes than `is`, which must not go unnoticed, or else the one that says most.  *spoilt,
 * which may be NULL, says why one that is there does not count; it is NULL if there is none.
 */
bool receipt_find(const struct receipt_texts *t, uint64_t shard_idx, const struct receipt *is, struct receipt *r,
		  const char **spoilt);

/* Those that a process finds, and the file to which it adds. */
struct receipt_files {
	char state_dir[FILES_PATH_BYTES];
	struct receipt_texts before; /* const between two calls of receipt_files_read() */
	pthread_mutex_t lock;
	int fd;		 /* lock: -1: none */
	uint64_t number; /* lock: in its name */
};

void receipt_files_open(struct receipt_files *f);
void receipt_files_close(struct receipt_files *f);

/* Read all that are there, into f->before, and add there from now on.  Returns the exit code. */
int receipt_files_read(struct receipt_files *f, const char *state_dir);

/* Keep no file open: on NFS and sshfs a folder stays while one in it is.  More may be added. */
void receipt_files_let_go(struct receipt_files *f);

/*
 * Add the receipt of a shard, durably; any thread may.  Returns SHARD_OK or a status.  It is fine
 * if the folder is gone: then another process of the same plan has sealed the dataset.
 */
int receipt_files_add(struct receipt_files *f, uint64_t shard_idx, const struct receipt *r, struct shard_error *err);

#endif
