/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bound_shards.c - records copied, hashed, written, made durable, read back
 *
 * Each thread has a loop of its own.  A turn fills one block of each of its two shards, and then
 * looks at what io_uring has done: a shard that is written is made durable, and a durable one is
 * read back, while the blocks of the next shards are filled.
 */
#include "bench/common/bound_shards.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <xxh_x86dispatch.h>
#else
#include <xxhash.h>
#endif

#include "bench/common/say.h"
#include "bench/common/service.h"
#include "bench/common/sha256.h"
#include "bench/common/uring.h"

#define BLOCK_MOST ((size_t)1 << 20)
#define PAGE	   ((size_t)4096)
#define WRITES	   8u /* blocks in flight, or being filled */
#define READS	   8u
#define IDLE	   UINT64_MAX

enum what { WRITE, SYNC, READ }; /* user_data is one of these, and behind it the number of a block or shard */

struct shard {
	int fd;
	uint64_t first, count;		 /* records */
	uint64_t writing, reading, read; /* blocks in flight; of those to be read, the next; done */
	bool filled, durable;
	uint64_t *leaf;
};

struct job {
	const struct bound_shards *b;
	const uint8_t *map;
	size_t block_bytes;
	struct shard *shard;
	atomic_uint_fast64_t next;
};

struct block {
	uint8_t *bytes;
	uint64_t shard, idx; /* shard: IDLE if it is free */
};

struct worker {
	struct job *job;
	struct uring ring;
	struct block block[WRITES + READS];
	unsigned in_flight;
	uint64_t oldest, newest; /* shards of this thread, which are neighbours in `mine` */
	uint64_t *mine;
};

static uint64_t block_count(const struct job *j, const struct shard *s)
{
	return (s->count * j->b->stride + j->block_bytes - 1) / j->block_bytes;
}

/* Bytes of records in a block. */
static size_t block_used(const struct job *j, const struct shard *s, uint64_t idx)
{
	uint64_t rest = s->count * j->b->stride - idx * j->block_bytes;

	return rest < j->block_bytes ? (size_t)rest : j->block_bytes;
}

static size_t whole_pages(size_t bytes)
{
	return (bytes + PAGE - 1) / PAGE * PAGE;
}

static struct block *find_block(struct worker *w, unsigned from, unsigned count)
{
	for (unsigned i = from; i < from + count; i++)
		if (w->block[i].shard == IDLE)
			return &w->block[i];
	return NULL;
}

static void request(struct worker *w, enum what what, struct block *k, uint64_t shard)
{
	struct job *j = w->job;
	struct io_uring_sqe sqe = {.fd = j->shard[shard].fd};

	if (what == SYNC) {
		sqe.opcode = IORING_OP_FSYNC;
		sqe.user_data = shard * 4 + SYNC;
	} else {
		sqe.opcode = what == WRITE ? IORING_OP_WRITE : IORING_OP_READ;
		sqe.addr = (uintptr_t)k->bytes;
		sqe.len = (uint32_t)whole_pages(block_used(j, &j->shard[shard], k->idx));
		sqe.off = k->idx * j->block_bytes;
		sqe.user_data = (uint64_t)(k - w->block) * 4 + what;
	}
	uring_queue(&w->ring, &sqe);
	w->in_flight++;
}

/* The hashes of its units: told, or compared. */
static void hash_units(const struct job *j, const struct shard *s, const struct block *k, bool compare)
{
	size_t unit = j->b->stride * j->b->unit_records, used = block_used(j, s, k->idx);
	uint64_t *leaf = s->leaf + k->idx * (j->block_bytes / unit);

	for (size_t at = 0; at < used; at += unit, leaf++) {
		uint64_t hash = XXH3_64bits(k->bytes + at, used - at < unit ? used - at : unit);

		if (compare && *leaf != hash)
			bench_die("a block was read back with other bytes");
		*leaf = hash;
	}
}

static void fill(const struct job *j, const struct shard *s, const struct block *k)
{
	const struct bound_shards *b = j->b;
	size_t used = block_used(j, s, k->idx);
	uint64_t record = s->first + k->idx * (j->block_bytes / b->stride);

	for (size_t at = 0; at < used; at += b->stride, record++) {
		memcpy(k->bytes + at, j->map + b->order[record] * b->step_bytes, b->record_bytes);
		memset(k->bytes + at + b->record_bytes, 0, b->stride - b->record_bytes);
	}
	memset(k->bytes + used, 0, whole_pages(used) - used);
	hash_units(j, s, k, false);
}

static void take_done(struct worker *w, const struct io_uring_cqe *c)
{
	struct job *j = w->job;
	enum what what = c->user_data % 4;
	struct block *k = what == SYNC ? NULL : &w->block[c->user_data / 4];
	struct shard *s = &j->shard[k ? k->shard : c->user_data / 4];

	w->in_flight--;
	if (c->res != (k ? (int)whole_pages(block_used(j, s, k->idx)) : 0))
		bench_die("io_uring: a request failed: %d", c->res);
	if (what == SYNC) {
		s->durable = true;
		return;
	}
	if (what == READ) {
		hash_units(j, s, k, true);
		s->read++;
	} else if (!--s->writing && s->filled) {
		request(w, SYNC, NULL, k->shard);
	}
	k->shard = IDLE;
}

/* Ask for as much as can be read back. */
static void read_more(struct worker *w)
{
	struct job *j = w->job;
	struct block *k = NULL;

	for (uint64_t i = w->oldest; i < w->newest; i++) {
		struct shard *s = &j->shard[w->mine[i]];

		if (i == w->oldest && s->read == block_count(j, s))
			w->oldest++;
		for (; s->durable && s->reading < block_count(j, s) && (k = find_block(w, WRITES, READS));
		     s->reading++) {
			k->shard = w->mine[i];
			k->idx = s->reading;
			request(w, READ, k, k->shard);
		}
	}
}

static void look(struct worker *w, bool wait)
{
	struct io_uring_cqe c;

	uring_enter(&w->ring, wait && w->in_flight);
	while (uring_next(&w->ring, &c))
		take_done(w, &c);
	read_more(w);
}

static struct block *free_block(struct worker *w, uint64_t shard, uint64_t idx)
{
	struct block *k;

	while ((k = find_block(w, 0, WRITES)) == NULL)
		look(w, true);
	k->shard = shard;
	k->idx = idx;
	return k;
}

/* A block of each of these shards, as long as they have one. */
static void make_blocks(struct worker *w, const uint64_t *shard, uint32_t (*h)[8], unsigned count, uint64_t idx)
{
	struct job *j = w->job;
	const uint8_t *data[SHA256_STREAMS_MAX];
	struct block *k[SHA256_STREAMS_MAX];

	for (unsigned i = 0; i < count; i++) {
		k[i] = free_block(w, shard[i], idx);
		fill(j, &j->shard[shard[i]], k[i]);
		data[i] = k[i]->bytes;
	}
	if (j->b->hashes_files)
		bench_sha256(h, data, count, whole_pages(block_used(j, &j->shard[shard[0]], idx)));
	for (unsigned i = 0; i < count; i++) {
		struct shard *s = &j->shard[shard[i]];

		s->writing++;
		s->filled = idx + 1 == block_count(j, s);
		request(w, WRITE, k[i], shard[i]);
	}
	look(w, false);
}

/* One shard, or two of the same size, block by block. */
static void make_shards(struct worker *w, const uint64_t *shard, unsigned count)
{
	struct job *j = w->job;
	uint64_t blocks = block_count(j, &j->shard[shard[0]]), bytes = 0;
	uint32_t h[SHA256_STREAMS_MAX][8];
	uint8_t digest[32];

	for (unsigned i = 0; i < count; i++) {
		bench_sha256_init(h[i]);
		w->mine[w->newest++] = shard[i];
	}
	for (uint64_t idx = 0; idx < blocks; idx++) {
		make_blocks(w, shard, h, count, idx);
		bytes += whole_pages(block_used(j, &j->shard[shard[0]], idx));
	}
	for (unsigned i = 0; j->b->hashes_files && i < count; i++)
		bench_sha256_final(h[i], bytes, digest);
}

static void work(void *context)
{
	struct job *j = context;
	struct worker w = {.job = j, .mine = calloc(j->b->shard_count, sizeof(*w.mine))};
	uint8_t *memory = bench_memory((WRITES + READS) * BLOCK_MOST);

	if (!w.mine || !uring_open(&w.ring, 64))
		bench_die("io_uring is not permitted, or there is no memory");
	for (unsigned i = 0; i < WRITES + READS; i++)
		w.block[i] = (struct block){memory + i * BLOCK_MOST, IDLE, 0};
	for (uint64_t at; (at = atomic_fetch_add(&j->next, 2)) < j->b->shard_count;) {
		const uint64_t two[] = {at, at + 1};
		bool pair = at + 1 < j->b->shard_count && j->shard[at].count == j->shard[at + 1].count;

		make_shards(&w, two, pair ? 2 : 1);
		if (!pair && at + 1 < j->b->shard_count)
			make_shards(&w, two + 1, 1);
	}
	while (w.oldest < w.newest)
		look(&w, true);
	uring_close(&w.ring);
	free(memory);
	free(w.mine);
}

/* ---- all of it ---- */

bool bound_shards_can(void)
{
	return uring_can() && bench_sha256_can();
}

static void open_shard(const struct job *j, uint64_t idx)
{
	const struct bound_shards *b = j->b;
	uint64_t each = (b->record_count + b->shard_count - 1) / b->shard_count;
	struct shard *s = &j->shard[idx];
	char path[4200];

	s->first = each * idx;
	s->count = b->record_count - s->first < each ? b->record_count - s->first : each;
	s->leaf = calloc(s->count / b->unit_records + 1, sizeof(*s->leaf));
	snprintf(path, sizeof(path), "%s/%05llu", b->dir, (unsigned long long)idx);
	s->fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_DIRECT | O_CLOEXEC, 0644);
	if (!s->leaf || s->fd < 0)
		bench_die("%s: cannot be made: %s", path, strerror(errno));
	if (fallocate(s->fd, 0, 0, (off_t)whole_pages(s->count * b->stride)))
		bench_die("%s: no room: %s", path, strerror(errno));
}

/* Blocks hold whole units and whole pages. */
static size_t settle_block(const struct bound_shards *b)
{
	size_t unit = b->stride * b->unit_records, least = unit;

	while (least % PAGE)
		least += unit;
	if (least > BLOCK_MOST)
		bench_die("units of %zu bytes do not suit this bound", unit);
	return BLOCK_MOST / least * least;
}

double bound_shards(const struct bound_shards *b, unsigned thread_count)
{
	struct job j = {.b = b, .block_bytes = settle_block(b), .shard = calloc(b->shard_count, sizeof(*j.shard))};
	double begin = bench_seconds(), seconds;
	int fd = open(b->source, O_RDONLY | O_CLOEXEC);
	struct stat st;

	if (!j.shard || fd < 0 || fstat(fd, &st))
		bench_die("%s: cannot be opened", b->source);
	j.map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);
	if (j.map == MAP_FAILED)
		bench_die("%s: cannot be mapped", b->source);
	for (uint64_t i = 0; i < b->shard_count; i++)
		open_shard(&j, i);
	bench_threads(thread_count, work, &j);
	for (uint64_t i = 0; i < b->shard_count; i++) {
		close(j.shard[i].fd);
		free(j.shard[i].leaf);
	}
	munmap((void *)(uintptr_t)j.map, (size_t)st.st_size);
	close(fd);
	seconds = bench_seconds() - begin;
	free(j.shard);
	return seconds;
}
