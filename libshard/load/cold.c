/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cold.c - one thread's reads past the map: straight to the slot where alignment allows it, else through a stage
 *
 * A direct read must begin and end at multiples of what the file system says.  Records that do so land where they belong;
 * others are read with what surrounds them, and copied once.  Neighbours in the file that are neighbours in the slot, as
 * those of an order in windows on its way to a GPU, are one read: some third of the CPU time that they cost one by one.
 */
#include <errno.h>
#include <inttypes.h>

#include "libshard/base/bytes.h"
#include "libshard/base/error.h"
#include "libshard/base/mem.h"
#include "libshard/io/buffer.h"
#include "libshard/io/direct.h"
#include "libshard/io/engine.h"
#include "libshard/io/file.h"
#include "libshard/load/path.h"

#define DEPTH	    64u /* reads under way; past 32 disks gain little, and a step should not end with a few stragglers */
#define TOGETHER_BYTES ((uint64_t)4 << 20) /* neighbours that are one read; a slot of 16 MiB still has some under way at a time */
#define STAGE_BYTES ((uint64_t)16 << 20)
#define FILES	    (2 * DEPTH) /* kept open, each thread for itself: half of them are not in use at any time */
#define WAYS	    8u		/* places where a shard's file is looked for */

struct cold_file {
	uint64_t shard; /* + 1; 0: none */
	bool wanted_direct;
	uint32_t users; /* reads under way */
	struct direct_file file;
};

struct cold_read {
	struct engine_read io; /* first: what comes back is this */
	struct row row;	 /* the first of: */
	uint32_t rows;
	uint8_t *stage;	 /* where it is read to instead, or NULL */
	uint32_t skip;	 /* bytes of the stage before the record */
	struct cold_file *from;
};

struct cold {
	struct engine *engine;
	struct cold_read read[DEPTH];
	uint32_t idle[DEPTH], idle_count, depth;
	struct cold_read *growing; /* not started, as the next row may belong to it; or NULL */
	uint8_t *stage;
	uint64_t stage_bytes; /* of one read */
	struct cold_file file[FILES];
};

static struct cold *cold_open(const struct shard_loader *l, struct shard_error *err)
{
	struct cold *c = mem_zalloc(sizeof(*c));
	uint64_t longest = 0;

	if (!c)
		goto fail;
	for (uint32_t g = 0; g < l->ds->m.schema.group_count; g++)
		if (l->ds->m.schema.group[g].stride > longest)
			longest = l->ds->m.schema.group[g].stride;
	c->stage_bytes = align_up(longest, LOADER_ARRAY_ALIGN) + 2 * LOADER_ARRAY_ALIGN;
	c->depth = (uint32_t)min_u64(DEPTH, STAGE_BYTES / c->stage_bytes);
	if (c->depth < 4)
		c->depth = 4;
	c->engine = engine_open(c->depth);
	if (!c->engine)
		goto fail;
	for (uint32_t i = 0; i < FILES; i++)
		c->file[i].file.fd = -1;
	for (uint32_t i = 0; i < c->depth; i++)
		c->idle[c->idle_count++] = i;
	return c;
fail:
	mem_free(c);
	error_set(err, SHARD_E_MEMORY, "no memory for reads past the page cache");
	return NULL;
}

bool cold_has_uring(const struct member *m)
{
	return m->cold && engine_is_uring(m->cold->engine);
}

void cold_close(struct member *m, bool inherited)
{
	struct cold *c = m->cold;

	if (!c)
		return;
	engine_close(c->engine);
	for (uint32_t i = 0; i < FILES; i++)
		direct_close(&c->file[i].file);
	if (!inherited)
		buffer_close(c->stage, (size_t)(c->stage_bytes * c->depth));
	mem_free(c);
	m->cold = NULL;
}

/* A place for the shard's file: where it is open already, or one that nobody uses. */
static struct cold_file *find_file(struct cold *c, uint64_t shard, bool direct)
{
	struct cold_file *f, *unused = NULL;

	for (uint64_t i = 0; i < FILES; i++) {
		f = &c->file[(shard + i) % FILES];
		if (i < WAYS && f->shard == shard + 1 && f->wanted_direct == direct)
			return f;
		if (!unused && !f->users)
			unused = f;
		if (unused && i >= WAYS)
			break;
	}
	return unused;
}

static void forget_files(struct cold *c)
{
	for (uint32_t i = 0; i < FILES; i++)
		if (!c->file[i].users) {
			direct_close(&c->file[i].file);
			c->file[i].shard = 0;
		}
}

/* Open a row's file once more; where too many are open, make do with fewer. */
static int open_again(struct cold *c, const struct row *row, bool direct, struct direct_file *out, struct shard_error *err)
{
	const struct shard_reader *r = row->r;
	int os_code = direct_open(r->path, r->inode, r->file_bytes, direct, out);
	struct shown s;

	if (os_code == EMFILE || os_code == ENFILE) {
		forget_files(c);
		os_code = direct_open(r->path, r->inode, r->file_bytes, direct, out);
	}
	if (os_code == ESTALE)
		return error_set(err, SHARD_E_IO, "%s: was replaced while in use", show(&s, r->path));
	return os_code ? error_os(err, os_code, "%s: cannot be opened again", show(&s, r->path)) : SHARD_OK;
}

/* The shard's file, open the way that is wanted, or an ordinary one. */
static int get_file(struct cold *c, const struct row *row, bool direct, struct cold_file **out, struct shard_error *err)
{
	struct cold_file *f = find_file(c, row->shard, direct);
	int rc;

	*out = f;
	if (f->shard == row->shard + 1 && f->wanted_direct == direct)
		return SHARD_OK;
	direct_close(&f->file);
	f->shard = 0;
	rc = open_again(c, row, direct, &f->file, err);
	if (rc)
		return rc;
	f->shard = row->shard + 1;
	f->wanted_direct = direct;
	return SHARD_OK;
}

/* ---- what came back ---- */

/* A direct read that the file system refuses is made again in the ordinary way; from then on the shard's others too. */
static int read_again(struct cold *c, struct cold_read *r, uint64_t epoch, struct shard_error *err)
{
	struct direct_file file;
	int rc = open_again(c, &r->row, false, &file, err);

	path_refuse_direct(r->row.l, r->row.shard, epoch);
	if (rc)
		return rc;
	rc = file_read_at(file.fd, r->io.dst, r->io.bytes, r->io.offset, r->row.r->path, err);
	direct_close(&file);
	return rc;
}

static int land_rows(const struct cold_read *r, uint64_t *checked, struct shard_error *err)
{
	uint64_t stride = r->row.r->group[r->row.group].stride;
	struct row row = r->row;
	int rc = SHARD_OK;

	for (uint32_t i = 0; !rc && i < r->rows; i++) {
		rc = rows_land(&row, r->stage ? r->stage + r->skip : row.dst, checked, err);
		row.inside++;
		row.row++;
		row.dst = row.dst ? row.dst + stride : NULL;
		row.flags = row.flags ? row.flags + 1 : NULL;
	}
	return rc;
}

static int land(struct cold *c, struct cold_read *r, uint64_t epoch, uint64_t *checked, struct shard_error *err)
{
	struct shown s;
	int rc = SHARD_OK;

	c->idle[c->idle_count++] = (uint32_t)(r - c->read);
	r->from->users--;
	if (r->io.os_code == EINVAL && r->from->file.direct)
		rc = read_again(c, r, epoch, err);
	else if (r->io.os_code == ENODATA)
		rc = error_set(err, SHARD_E_IO, "%s: ends before %" PRIu64 " (was it cut while in use?)", show(&s, r->row.r->path),
			       r->io.offset + r->io.bytes);
	else if (r->io.os_code)
		rc = error_os(err, r->io.os_code, "%s: reading %zu bytes at %" PRIu64, show(&s, r->row.r->path), r->io.bytes, r->io.offset);
	return rc ? rc : land_rows(r, checked, err);
}

/* There is room: it has its place among `depth` reads. */
static void start(struct cold *c)
{
	if (c->growing)
		engine_put(c->engine, &c->growing->io);
	c->growing = NULL;
}

int cold_finish(struct member *m, uint64_t epoch, uint64_t *checked, struct shard_error *err)
{
	struct engine_read *io;
	int rc = SHARD_OK;

	if (m->cold)
		start(m->cold);
	while (m->cold && (io = engine_get(m->cold->engine)) != NULL) { /* all of them: their memory is in use until then */
		int got = land(m->cold, (struct cold_read *)io, epoch, checked, rc ? NULL : err);

		rc = rc ? rc : got;
	}
	return rc;
}

/* ---- what is started ---- */

/* Where the record lies in the file, rounded out to what the file needs; straight to dst if nothing had to be rounded. */
static bool aim(struct cold *c, struct cold_read *r, const struct direct_file *file)
{
	const struct row *row = &r->row;
	const struct reader_group *g = &row->r->group[row->group];
	uint64_t begin = (uint64_t)(g->data - row->r->map) + row->inside * g->stride, end = begin + g->stride;
	uint64_t from = begin / file->offset_align * file->offset_align;
	uint64_t to = min_u64(ceil_div(end, file->offset_align) * file->offset_align, row->r->file_bytes);

	r->rows = 1;
	r->stage = NULL;
	r->skip = 0;
	r->io = (struct engine_read){.fd = file->fd, .offset = begin, .bytes = (size_t)g->stride, .dst = row->dst};
	if (from == begin && to == end && !((uintptr_t)row->dst % file->memory_align))
		return true;
	if (!c->stage) {
		c->stage = buffer_open((size_t)(c->stage_bytes * c->depth));
		if (c->stage)
			buffer_keep(c->stage, (size_t)(c->stage_bytes * c->depth));
	}
	if (!c->stage || file->offset_align > LOADER_ARRAY_ALIGN)
		return false;
	r->stage = c->stage + c->stage_bytes * (uint64_t)(r - c->read);
	r->skip = (uint32_t)(begin - from);
	r->io.offset = from;
	r->io.bytes = (size_t)(to - from);
	r->io.dst = r->stage;
	return true;
}

/* Is it the neighbour of what grows, in the file and in the slot?  Then it is a part of it. */
static bool grow(struct cold_read *r, const struct row *row, bool direct)
{
	uint64_t stride = row->r->group[row->group].stride;

	if (!r || r->stage || !row->dst || r->row.shard != row->shard || r->row.group != row->group || r->from->wanted_direct != direct ||
	    row->inside != r->row.inside + r->rows || row->dst != r->row.dst + r->rows * stride || r->io.bytes + stride > TOGETHER_BYTES ||
	    stride % r->from->file.offset_align)
		return false;
	r->rows++;
	r->io.bytes += (size_t)stride;
	return true;
}

int cold_put(struct member *m, const struct row *row, bool direct, uint64_t epoch, uint64_t *checked, struct shard_error *err)
{
	struct cold_file *file;
	struct cold_read *r;
	struct cold *c;
	int rc;

	if (!m->cold)
		m->cold = cold_open(row->l, err);
	c = m->cold;
	if (!c)
		return SHARD_E_MEMORY;
	if (grow(c->growing, row, direct))
		return SHARD_OK;
	start(c);
	if (engine_is_full(c->engine)) {
		rc = land(c, (struct cold_read *)engine_get(c->engine), epoch, checked, err);
		if (rc)
			return rc;
	}
	rc = get_file(c, row, direct, &file, err);
	if (rc)
		return rc;
	r = &c->read[c->idle[--c->idle_count]];
	r->row = *row;
	r->from = file;
	if (!aim(c, r, &file->file)) {
		c->idle[c->idle_count++] = (uint32_t)(r - c->read);
		return error_set(err, SHARD_E_MEMORY, "no memory to read %" PRIu64 " bytes that are not aligned", row->r->group[row->group].stride);
	}
	file->users++;
	c->growing = r;
	return SHARD_OK;
}
