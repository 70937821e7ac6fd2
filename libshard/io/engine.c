/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine.c - reads by io_uring or by pread, with the same results
 *
 * What io_uring gives back short or interrupted is completed by pread, so that an error is an error
 * of the file and not of the way to it.
 *
 * A read that must not wait begins to fetch what is missing (Linux 6.18), and a fast disk may
 * deliver it before that read ends.  So such reads count as cached only if the thread has read
 * nothing from a device meanwhile.  To ask costs 0.5 us; so this is asked for many of them at once.
 */
#include "libshard/io/io.h"

#include <errno.h>
#include <unistd.h>

#include "libshard/base/mem.h"

struct engine {
	struct uring *uring; /* NULL: pread, when a read is asked for */
	uint32_t depth, under_way;
	/* [depth] reads that io_uring does not get: those in the page cache, or all without it */
	struct engine_read **line;
	uint32_t head, line_count; /* first come first served from head */
	uint32_t unjudged;	   /* the last ones of the line; those of them that are cached may not be */
	uint64_t blocks;	   /* that the thread had read from devices before the first of these */
};

struct engine *engine_open(uint32_t depth, uint32_t batch)
{
	struct engine *e = mem_zalloc(sizeof(*e));

	if (!e)
		return NULL;
	e->depth = depth;
	e->line = mem_array(depth, sizeof(*e->line));
	if (!e->line) {
		mem_free(e);
		return NULL;
	}
	e->uring = uring_open(depth, batch);
	return e;
}

void engine_close(struct engine *e)
{
	if (!e)
		return;
	uring_close(e->uring);
	mem_free(e->line);
	mem_free(e);
}

bool engine_is_uring(const struct engine *e)
{
	return e->uring;
}

bool engine_is_full(const struct engine *e)
{
	return e->under_way == e->depth;
}

void engine_put(struct engine *e, struct engine_read *r)
{
	if (r->asks && !e->unjudged)
		e->blocks = file_blocks_read();
	r->there = r->cached = r->asks && file_read_cached(r->fd, r->dst, r->bytes, r->offset);
	if (e->uring && !r->cached) {
		uring_put(e->uring, r);
	} else {
		e->line[(e->head + e->line_count++) % e->depth] = r;
		e->unjudged += r->cached || e->unjudged;
	}
	e->under_way++;
}

/* Read what is missing behind the first `there` bytes. */
static void complete(struct engine_read *r, size_t there)
{
	r->os_code = 0;
	while (there < r->bytes) {
		ssize_t n = pread(r->fd, (uint8_t *)r->dst + there, r->bytes - there, (off_t)(r->offset + there));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			r->os_code = n ? errno : ENODATA;
			return;
		}
		there += (size_t)n;
	}
}

struct engine_read *engine_get(struct engine *e)
{
	struct engine_read *r;
	int result = 0;

	if (!e->under_way)
		return NULL;
	e->under_way--;
	if (e->line_count) {
		if (e->unjudged == e->line_count) {
			bool doubt = file_blocks_read() != e->blocks;

			for (; e->unjudged; e->unjudged--)
				if (doubt)
					e->line[(e->head + e->line_count - e->unjudged) % e->depth]->cached = false;
		}
		r = e->line[e->head];
		e->head = (e->head + 1) % e->depth;
		e->line_count--;
	} else {
		r = uring_get(e->uring, &result);
	}
	if (r->there)
		result = (int)r->bytes;
	if (result == -EINTR || result == -EAGAIN || result == -ECANCELED)
		result = 0;
	r->os_code = result < 0 ? -result : 0;
	if (result >= 0)
		complete(r, (size_t)result);
	return r;
}

bool engine_has(const struct engine *e)
{
	return !e->line_count && e->uring && uring_has(e->uring);
}
