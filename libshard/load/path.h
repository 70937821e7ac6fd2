/* SPDX-License-Identifier: Apache-2.0 */
/*
 * path.h - by which way the records of a shard come, and reads past its map
 */
#ifndef LIBSHARD_LOAD_PATH_H
#define LIBSHARD_LOAD_PATH_H

#include "libshard/load/loader.h"

enum path_kind {
	PATH_HOT = 0,  /* mapped, and in memory */
	PATH_WARM = 1, /* mapped; whole runs are asked for before the first of their records is used */
	PATH_DIRECT = 2,
	PATH_PREAD = 3,
};

bool path_open(struct shard_loader *l); /* false: no memory */
void path_close(struct shard_loader *l);

/* Datasets of at most so many bytes are read through the page cache, to lie in memory from then on. */
uint64_t path_fits_bytes(void);

#define PATH_KINDS 4u

/* What l->path[shard] is, for each kind, if that was decided and still holds in this epoch. */
void path_stamps(const struct shard_loader *l, uint64_t epoch, uint32_t stamp[PATH_KINDS]);

/* Decide: once per shard and epoch, or for as long as it stays in memory. */
enum path_kind path_decide(struct shard_loader *l, uint64_t shard, const struct shard_reader *r, uint64_t epoch);

/* A step with so many rows of shards in memory waited for pages: was it right to believe that they are there? */
void path_demote(struct shard_loader *l, uint64_t faults, uint32_t hot_rows);

/* The file system takes no direct reads of this shard after all. */
void path_refuse_direct(struct shard_loader *l, uint64_t shard, uint64_t epoch);

/* PATH_WARM: have the run around a record fetched, once per epoch. */
void path_fetch_run(struct shard_loader *l, uint64_t shard, struct shard_reader *r, uint32_t group, uint64_t inside, uint64_t epoch);

/* ---- cold.c: one thread's reads past the map ---- */

/* A record on its way to a row of a slot. */
struct row {
	struct shard_loader *l;
	struct shard_reader *r;
	uint64_t shard, inside, row;
	uint32_t group;
	uint8_t *flags;	     /* of the row; NULL: damage is an error */
	uint8_t *slot, *dst; /* dst: where its bytes belong, of a large group; NULL: they are spread over the slot's arrays */
};

/* Start the row, after waiting for others where too many are under way.  SHARD_OK, or how one of them failed. */
int cold_put(struct member *m, const struct row *row, bool direct, uint64_t epoch, uint64_t *checked, struct shard_error *err);

/* Wait for all of them.  Has to be called also after a failure, before the slot is anybody else's. */
int cold_finish(struct member *m, uint64_t epoch, uint64_t *checked, struct shard_error *err);

bool cold_has_uring(const struct member *m);
void cold_close(struct member *m, bool inherited); /* inherited: by a child, whose stage does not exist */

/* rows.c: the bytes lie at src, which may be dst: copy them there, hashed if need be. */
int rows_land(const struct row *row, const uint8_t *src, uint64_t *checked, struct shard_error *err);

#endif
