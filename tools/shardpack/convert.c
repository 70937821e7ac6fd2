/* SPDX-License-Identifier: Apache-2.0 */
/*
 * convert.c - one input of the plan to one record, or to the reason why not
 */
#include "tools/shardpack/convert.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/shardpack/budget.h"
#include "tools/shardpack/decode.h"
#include "tools/shardpack/exif.h"
#include "tools/shardpack/quarantine.h"
#include "tools/shardpack/stored.h"
#include "tools/shardpack/turn.h"

struct converter {
	const struct plan *plan;
	int source_fd;
	const struct stored *stored;
	const struct quarantine *quarantine;
	struct budget *budget;
	uint64_t claimed_bytes; /* of the budget, for the input at hand */
	struct decoder *decoder;
	struct transform *transform;
	struct turn turn;
	bool turning;	     /* the image at hand is held whole to be turned, beside what its decoder needs */
	struct scratch file; /* the bytes of the input */
};

/* The input at hand needs this much; the first claim holds to its end. */
static void claim(void *context, uint64_t bytes)
{
	struct converter *c = context;

	if (!c->budget || c->claimed_bytes || bytes <= BUDGET_SMALL_BYTES)
		return;
	budget_take(c->budget, bytes);
	c->claimed_bytes = bytes;
}

/*
 * What the decoder asks for itself, which it does before the size of the image is known to others: at least 2 bytes for
 * each of its pixels, and the turned image has 3.  The first claim must do for both.
 */
static void claim_decoder(void *context, uint64_t bytes)
{
	struct converter *c = context;

	claim(c, c->turning ? bytes * 5 / 2 : bytes);
}

/* What is kept from input to input is small. */
static void unclaim(struct converter *c)
{
	if (c->turn.pixels.capacity_bytes > BUDGET_SMALL_BYTES)
		turn_free(&c->turn);
	if (c->file.capacity_bytes > BUDGET_SMALL_BYTES)
		scratch_free(&c->file);
	if (c->claimed_bytes)
		budget_give(c->budget, c->claimed_bytes);
	c->claimed_bytes = 0;
}

struct converter *converter_open(const struct plan *plan, int source_fd, const struct stored *stored,
				 const struct quarantine *quarantine, struct budget *budget)
{
	struct converter *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->plan = plan;
	c->source_fd = source_fd;
	c->stored = stored;
	c->quarantine = quarantine;
	c->budget = budget;
	c->decoder = decoder_open(&(struct decode_options){.claim = claim_decoder, .context = c});
	c->transform = transform_open(&plan->recipe.transform);
	c->turn.claim = claim;
	c->turn.context = c;
	if (!c->decoder || !c->transform) {
		converter_close(c);
		return NULL;
	}
	return c;
}

void converter_close(struct converter *c)
{
	if (!c)
		return;
	decoder_close(c->decoder);
	transform_close(c->transform);
	turn_free(&c->turn);
	scratch_free(&c->file);
	free(c);
}

static void set(struct result *r, enum outcome outcome, uint32_t reason, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

static void set(struct result *r, enum outcome outcome, uint32_t reason, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(r->message, sizeof(r->message), fmt, ap);
	va_end(ap);
	r->outcome = outcome;
	r->reason = reason;
}

static const char *kind_of(mode_t mode)
{
	return S_ISFIFO(mode)	? "a FIFO"
	       : S_ISCHR(mode)	? "a character device"
	       : S_ISBLK(mode)	? "a block device"
	       : S_ISSOCK(mode) ? "a socket"
				: "a folder";
}

/* Exactly `bytes` from the file and then its end; false with errno, or 0 if it has another length. */
static bool read_whole(int fd, uint8_t *out, size_t bytes)
{
	size_t at = 0;
	uint8_t more;
	ssize_t n;

	do {
		n = at < bytes ? read(fd, out + at, bytes - at) : read(fd, &more, 1);
		if (n > 0)
			at += (size_t)n;
	} while ((n > 0 && at <= bytes) || (n < 0 && errno == EINTR));
	if (n < 0)
		return false;
	errno = 0;
	return at == bytes;
}

/* Read an open file that had `before` for its stat.  False if the result says why not. */
static bool read_input(struct converter *c, struct result *r, int fd, const struct stat *before)
{
	uint64_t bytes = (uint64_t)before->st_size;
	struct stat after;

	if (bytes != r->input.source_bytes) {
		set(r, OUTCOME_FAILED, 0, "changed since the plan was made: %" PRIu64 " bytes then, %" PRIu64 " now",
		    r->input.source_bytes, bytes);
		return false;
	}
	if (bytes > INPUT_BYTES_MAX) {
		set(r, OUTCOME_BAD, SHARD_MISS_LIMIT, "a file of %" PRIu64 " bytes; the limit is %" PRIu64, bytes,
		    INPUT_BYTES_MAX);
		return false;
	}
	if (!scratch_reserve(&c->file, bytes)) {
		set(r, OUTCOME_STOP, 0, "out of memory for a file of %" PRIu64 " bytes", bytes);
		return false;
	}
	if (!read_whole(fd, c->file.data, bytes) || fstat(fd, &after) != 0) {
		set(r, OUTCOME_FAILED, 0, "%s", errno ? strerror(errno) : "changed while it was read");
		return false;
	}
	if (after.st_size != before->st_size || after.st_mtim.tv_sec != before->st_mtim.tv_sec ||
	    after.st_mtim.tv_nsec != before->st_mtim.tv_nsec) {
		set(r, OUTCOME_FAILED, 0, "changed while it was read");
		return false;
	}
	return true;
}

/* The bytes of the input into c->file.  False if the result says why not. */
static bool open_and_read(struct converter *c, struct result *r)
{
	struct stat st;
	bool ok;
	int fd;

	/* Looked at before it is opened: opening a FIFO waits, and opening a device may do something. */
	if (fstatat(c->source_fd, r->input.path, &st, 0) != 0) {
		set(r, OUTCOME_FAILED, 0, "%s", strerror(errno));
		return false;
	}
	if (!S_ISREG(st.st_mode)) {
		set(r, OUTCOME_BAD, SHARD_MISS_NOT_AN_IMAGE, "%s, not a file", kind_of(st.st_mode));
		return false;
	}
	fd = openat(c->source_fd, r->input.path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) != 0) {
		set(r, OUTCOME_FAILED, 0, "%s", strerror(errno));
		if (fd >= 0)
			close(fd);
		return false;
	}
	ok = read_input(c, r, fd, &st);
	close(fd); /* nothing was written: its result says nothing */
	return ok;
}

/* The same of a part of a file of the plan. */
static bool read_part(struct converter *c, struct result *r)
{
	uint64_t bytes = r->input.source_bytes;

	if (bytes > INPUT_BYTES_MAX) {
		set(r, OUTCOME_BAD, SHARD_MISS_LIMIT, "has %" PRIu64 " bytes; the limit is %" PRIu64, bytes, INPUT_BYTES_MAX);
		return false;
	}
	if (!scratch_reserve(&c->file, bytes)) {
		set(r, OUTCOME_STOP, 0, "out of memory for %" PRIu64 " bytes", bytes);
		return false;
	}
	if (stored_read(c->stored, r->input.file, r->input.offset, c->file.data, bytes, r->message, sizeof(r->message)))
		return true;
	r->outcome = OUTCOME_FAILED;
	return false;
}

static enum decode_status decode(struct converter *c, const struct result *r, struct decode_verdict *verdict)
{
	uint64_t bytes = r->input.source_bytes;
	uint32_t orientation = c->plan->recipe.exif == EXIF_APPLY ? exif_orientation(c->file.data, bytes) : 1;
	enum decode_status status;

	c->turning = orientation != 1;
	if (!c->turning) {
		status = decoder_stream(c->decoder, c->file.data, bytes, transform_sink(c->transform, r->record), verdict);
		if (status == DECODE_OK)
			transform_finish(c->transform);
		return status;
	}
	status = decoder_stream(c->decoder, c->file.data, bytes, turn_sink(&c->turn, orientation), verdict);
	if (status == DECODE_OK && !transform_run(c->transform, &c->turn.image, r->record))
		status = DECODE_NO_MEMORY;
	return status;
}

static void decode_and_transform(struct converter *c, struct result *r)
{
	const struct transform_options *t = &c->plan->recipe.transform;
	struct decode_verdict verdict;
	enum decode_status status;

	if (!text_is_name(r->input.path, r->input.path_bytes, SHARD_KEY_BYTES_MAX)) {
		set(r, OUTCOME_BAD, SHARD_MISS_KEY,
		    "the path becomes the record's key, so it must be UTF-8 of at most %d bytes; it has %zu",
		    SHARD_KEY_BYTES_MAX, r->input.path_bytes);
		return;
	}
	status = decode(c, r, &verdict);
	if (status == DECODE_BAD_INPUT) {
		set(r, OUTCOME_BAD, (uint32_t)verdict.reason, "%s", verdict.message);
		return;
	}
	if (status != DECODE_OK) {
		set(r, OUTCOME_STOP, 0, "out of memory while it was decoded");
		return;
	}
	memset(&r->moments, 0, sizeof(r->moments));
	if (t->samples == IMAGE_U8) /* the format has none of others */
		moments_add(&r->moments, r->record, (size_t)t->crop * t->crop, t->layout);
	r->outcome = OUTCOME_RECORD;
}

void converter_run(struct converter *c, struct result *r)
{
	bool have_bytes;

	r->message[0] = '\0';
	r->reason = 0;
	r->input_idx = plan_input_at(c->plan, r->ordinal);
	plan_input(c->plan, r->input_idx, &r->input);
	/* A file that is large by itself: what its pixels need cannot be told yet, so it has all there is. */
	if (r->input.source_bytes > BUDGET_SMALL_BYTES)
		claim(c, r->input.source_bytes > BUDGET_BYTES ? r->input.source_bytes : BUDGET_BYTES);
	have_bytes = r->input.file == PLAN_NO_FILE ? open_and_read(c, r) : read_part(c, r);
	if (have_bytes)
		decode_and_transform(c, r);
	if (r->outcome == OUTCOME_BAD && have_bytes && c->quarantine &&
	    !quarantine_keep(c->quarantine, r->input.path, c->file.data, r->input.source_bytes, r->message,
			     sizeof(r->message)))
		r->outcome = OUTCOME_STOP;
	unclaim(c);
}
