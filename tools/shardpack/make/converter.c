/* SPDX-License-Identifier: Apache-2.0 */
/*
 * converter.c - one input of the plan to one record, or to the reason why not
 */
#include "tools/shardpack/make/make.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shard_pack.h"
#include "tools/common/exit_code.h"
#include "tools/common/files.h"
#include "tools/common/message.h"
#include "tools/common/signals.h"
#include "tools/shardpack/images/image.h"
#include "tools/shardpack/images/images.h"
#include "tools/shardpack/input/source_times.h"
#include "tools/shardpack/input/stored.h"
#include "tools/shardpack/plan/plan.h"
#include "tools/shardpack/sandbox/sandbox.h"

/* ---- the bytes of an input, exactly those that were planned ---- */

static const char *kind_of(mode_t mode)
{
	return S_ISFIFO(mode)	? "a FIFO"
	       : S_ISCHR(mode)	? "a character device"
	       : S_ISBLK(mode)	? "a block device"
	       : S_ISSOCK(mode) ? "a socket"
				: "a folder";
}

/*
 * Exactly `bytes`, and then the end of the file.  False with errno, which is 0 at another length.
 */
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

/* Read an open file that had `before` for its stat. */
static bool read_open(const struct input_bytes *in, int fd, const struct stat *before, struct scratch *to,
		      struct verdict *v)
{
	uint64_t bytes = (uint64_t)before->st_size;
	char then[SOURCE_TIME_CHARS], now[SOURCE_TIME_CHARS];
	struct stat after;

	if (bytes != in->bytes)
		return verdict_set(v, OUTCOME_CHANGED, 0,
				   "changed since the plan was made: %" PRIu64 " bytes then, %" PRIu64 " now",
				   in->bytes, bytes);
	if (in->time_ns != SOURCE_NO_TIME && in->time_ns != files_ns(&before->st_mtim))
		return verdict_set(v, OUTCOME_CHANGED, 0, "changed since the plan was made: written %s then, %s now",
				   source_time_text(in->time_ns, then),
				   source_time_text(files_ns(&before->st_mtim), now));
	if (bytes > INPUT_BYTES_MAX) {
		return verdict_set(v, OUTCOME_BAD, SHARD_MISS_LIMIT,
				   "a file of %" PRIu64 " bytes; the limit is %" PRIu64, bytes, INPUT_BYTES_MAX);
	}
	if (!scratch_reserve(to, bytes))
		return verdict_set(v, OUTCOME_STOP, 0, "out of memory for a file of %" PRIu64 " bytes", bytes);
	if (!read_whole(fd, to->data, bytes) || fstat(fd, &after) != 0)
		return errno ? verdict_set(v, OUTCOME_FAILED, 0, "%s", strerror(errno))
			     : verdict_set(v, OUTCOME_CHANGED, 0, "changed while it was read");
	if (after.st_size != before->st_size || files_ns(&after.st_mtim) != files_ns(&before->st_mtim))
		return verdict_set(v, OUTCOME_CHANGED, 0, "changed while it was read");
	return true;
}

/*
 * Why a file cannot be read.  One that is gone was removed, if its folder is still there.  If that
 * is gone, too, a disk may be missing, and that says nothing about the file.
 */
static bool cannot_read(const struct input_bytes *in, int source_fd, struct verdict *v)
{
	char folder[3 * PLAN_PATH_BYTES_MAX + 2];
	size_t bytes = files_folder_bytes(in->path);
	enum outcome outcome = OUTCOME_FAILED;
	int error = errno;
	struct stat st;

	if (error == ENOENT && bytes < sizeof(folder) - 2) {
		snprintf(folder, sizeof(folder), "./%.*s", (int)bytes, in->path);
		outcome = fstatat(source_fd, folder, &st, 0) == 0 ? OUTCOME_VANISHED : OUTCOME_FAILED;
	}
	return verdict_set(v, outcome, 0, "%s", strerror(error));
}

/* A file of its own. */
static bool read_file(const struct input_bytes *in, int source_fd, struct scratch *to, struct verdict *v)
{
	struct stat st;
	bool ok;
	int fd;

	/* First look, then open: to open a FIFO waits, and to open a device may do something. */
	if (fstatat(source_fd, in->path, &st, 0) != 0)
		return cannot_read(in, source_fd, v);
	if (!S_ISREG(st.st_mode))
		return verdict_set(v, OUTCOME_BAD, SHARD_MISS_NOT_AN_IMAGE, "%s, not a file", kind_of(st.st_mode));
	fd = openat(source_fd, in->path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) != 0) {
		cannot_read(in, source_fd, v);
		if (fd >= 0)
			close(fd);
		return false;
	}
	ok = read_open(in, fd, &st, to, v);
	close(fd); /* nothing was written: its result says nothing */
	return ok;
}

/* A part of a file of the plan. */
static bool read_part(const struct input_bytes *in, const struct stored *stored, struct scratch *to, struct verdict *v)
{
	uint64_t bytes = in->bytes;

	if (bytes > INPUT_BYTES_MAX) {
		return verdict_set(v, OUTCOME_BAD, SHARD_MISS_LIMIT, "has %" PRIu64 " bytes; the limit is %" PRIu64,
				   bytes, INPUT_BYTES_MAX);
	}
	if (!scratch_reserve(to, bytes))
		return verdict_set(v, OUTCOME_STOP, 0, "out of memory for %" PRIu64 " bytes", bytes);
	if (stored_read(stored, in->file, in->offset, to->data, bytes, v->message, sizeof(v->message)))
		return true;
	v->outcome = OUTCOME_FAILED;
	return false;
}

bool input_bytes_read(const struct input_bytes *in, int source_fd, const struct stored *stored, struct scratch *to,
		      struct verdict *v)
{
	return in->file == PLAN_NO_FILE ? read_file(in, source_fd, to, v) : read_part(in, stored, to, v);
}

bool input_bytes_same_build(const struct plan *p, const uint8_t *bytes, size_t size, struct verdict *v)
{
	const struct image_format *f = p->decoders ? image_format_in(bytes, size, NULL) : NULL;
	char there[IMAGE_LIBRARY_CHARS], here[IMAGE_LIBRARY_CHARS];

	if (!f || !f->plan_name || image_format_is_same(f, p->decoders, there, here))
		return true;
	return verdict_set(
		v, OUTCOME_OTHER, 0,
		"is %s %s by its content, for which this shardpack has the library '%s', and the one that made "
		"the plan has '%s'; let all processes that pack this plan run the same build",
		image_format_article(f), f->name, here, there);
}

/* ---- the record ---- */

struct converter {
	const struct plan *plan; /* const after open, and so are the next five */
	struct shard_schema schema;
	int source_fd;
	const struct stored *stored;
	const struct source_times *times; /* or NULL */
	const char *quarantine;
	struct pictures pictures;
	struct record_fields *fields;
	struct scratch file; /* the bytes of the input */
};

/* Where the small group of a record of images begins, behind the large one. */
static size_t meta_offset(const struct shard_schema *s)
{
	return ((size_t)s->group[0].record_bytes + SCRATCH_ALIGN_BYTES - 1) & ~(size_t)(SCRATCH_ALIGN_BYTES - 1);
}

size_t converter_record_bytes(const struct shard_schema *s)
{
	return meta_offset(s) + (size_t)s->group[1].record_bytes;
}

struct converter *converter_open(const struct plan *plan, int source_fd, const struct stored *stored,
				 const struct source_times *times, const char *quarantine, struct budget *budget,
				 struct sandbox *sandbox)
{
	struct converter *c = calloc(1, sizeof(*c));
	struct shard_error err;

	if (!c)
		return NULL;
	recipe_schema(&plan->recipe, &c->schema, &err); /* it has one, or there was no plan */
	c->plan = plan;
	c->source_fd = source_fd;
	c->stored = stored;
	c->times = times;
	c->quarantine = quarantine;
	if (pictures_open(&c->pictures, &plan->recipe, budget, sandbox))
		c->fields = record_fields_open(plan, &c->schema, source_fd, stored, times, &c->pictures);
	if (c->fields)
		return c;
	converter_close(c);
	return NULL;
}

void converter_close(struct converter *c)
{
	if (!c)
		return;
	pictures_close(&c->pictures);
	record_fields_close(c->fields);
	scratch_free(&c->file);
	free(c);
}

/* Say in the record which damage was accepted. */
static void put_damage(const struct converter *c, const struct result *r)
{
	const struct shard_field *f = recipe_damage(&c->plan->recipe, &c->schema);

	if (f)
		r->meta[f->offset] = (uint8_t)r->verdict.reason;
}

/* The input's bytes are at hand: make the record. */
static void convert(struct converter *c, struct result *r)
{
	const uint8_t *data = c->file.data;
	uint64_t bytes = r->input.source_bytes;
	struct picture made = {0};
	struct record_image image = {.is_held = c->file.capacity_bytes > BUDGET_SMALL_BYTES};

	if (!text_is_name(r->path, r->path_bytes, SHARD_KEY_BYTES_MAX)) {
		verdict_set(&r->verdict, OUTCOME_BAD, SHARD_MISS_KEY,
			    "the path becomes the record's key, so it must be UTF-8 of at most %d bytes; it has %zu",
			    SHARD_KEY_BYTES_MAX, r->path_bytes);
		return;
	}
	if (!pictures_make(&c->pictures, PICTURES_IMAGE, 1, data, bytes, r->record, &made, &r->verdict))
		return;
	image.width = made.width;
	image.height = made.height;
	image.orientation = made.orientation;
	image.stated = made.stated;
	fit_count_image(&r->fit, &c->plan->recipe.transform, made.width, made.height);
	if (!record_fields_put(c->fields, &image, r))
		return;
	fit_count_dropped(&r->fit, r->verdict.dropped, r->ordinal);
	put_damage(c, r);
	r->verdict.outcome = OUTCOME_RECORD;
}

/* A bad input, with all that belongs to it. */
static void keep(struct converter *c, struct result *r)
{
	struct verdict *v = &r->verdict;

	char path[PLAN_PATH_BYTES_MAX]; /* rows of one file share its copy */

	plan_input_file(&r->input, path);
	if (quarantine_keep(c->quarantine, path, c->file.data, r->input.source_bytes, v->message, sizeof(v->message)))
		record_fields_keep(c->fields, c->quarantine, r);
	else
		v->outcome = OUTCOME_STOP;
}

/*
 * The plan knows that it is bad, so it is not read for a verdict.  Quarantine gets what there is of
 * it; a file that has gone meanwhile leaves nothing to keep.
 */
static void take_known(struct converter *c, const struct input_bytes *in, struct result *r)
{
	struct verdict reading = {.message = ""};

	verdict_set(&r->verdict, OUTCOME_BAD, r->input.bad_reason, "%s", "");
	plan_bad_message(&r->input, r->verdict.message);
	if (!c->quarantine || !in->bytes)
		return;
	pictures_claim_file(&c->pictures, in->bytes);
	if (!input_bytes_read(in, c->source_fd, c->stored, &c->file, &reading)) {
		if (reading.outcome == OUTCOME_FAILED || reading.outcome == OUTCOME_STOP)
			r->verdict = reading;
	} else if (!quarantine_keep(c->quarantine, r->path, c->file.data, in->bytes, r->verdict.message,
				    sizeof(r->verdict.message))) {
		r->verdict.outcome = OUTCOME_STOP;
	}
}

/* What is kept from input to input is small. */
static void shrink(struct converter *c)
{
	if (c->file.capacity_bytes > BUDGET_SMALL_BYTES)
		scratch_free(&c->file);
	record_fields_shrink(c->fields);
	pictures_give_back(&c->pictures);
}

/* A look has no use for an image that states nothing. */
static void run(struct converter *c, struct result *r, bool only_look)
{
	char path[PLAN_PATH_BYTES_MAX];
	struct input_bytes in;
	bool have_bytes;

	r->verdict.message[0] = r->verdict.first[0] = '\0';
	r->verdict.reason = r->verdict.dropped = 0;
	r->fit = (struct fit_count){0};
	r->undecided = 0;
	r->meta = r->record + meta_offset(&c->schema);
	plan_input(c->plan, plan_input_at(c->plan, r->ordinal), &r->input);
	r->path_bytes = plan_input_path(c->plan, &r->input, r->path);
	plan_input_file(&r->input, path);
	in = (struct input_bytes){path, r->input.file, r->input.offset, r->input.source_bytes,
				  c->times ? source_time_of_input(c->times, r->input.input_idx, 0) : SOURCE_NO_TIME};
	if (r->input.bad_reason) {
		take_known(c, &in, r);
		shrink(c);
		return;
	}
	pictures_claim_file(&c->pictures, in.bytes);
	have_bytes = input_bytes_read(&in, c->source_fd, c->stored, &c->file, &r->verdict) &&
		     input_bytes_same_build(c->plan, c->file.data, in.bytes, &r->verdict);
	if (have_bytes && (!only_look || pictures_may_state(&c->pictures, c->file.data, in.bytes)))
		convert(c, r);
	if (r->verdict.outcome == OUTCOME_BAD && have_bytes && c->quarantine)
		keep(c, r);
	shrink(c);
}

void converter_run(struct converter *c, struct result *r)
{
	run(c, r, false);
}

/*
 * Only to learn r->undecided: whether it is.  An image that states no orientation is not decoded,
 * unless there is a sandbox.
 */
static bool is_undecided(struct converter *c, struct result *r)
{
	run(c, r, true);
	return r->undecided;
}

/* ---- an image that lies on its side, and boxes or masks that have their place in it ---- */

#define LOOK_INPUTS 1000
#define LOOK_BYTES  (UINT64_C(256) << 20)

static bool is_asked(const struct job *job)
{
	const struct recipe *recipe = &job->plan->recipe;
	bool lies = false;

	for (uint32_t i = 0; i < recipe->field_count; i++)
		lies |= recipe->from[i].kind == FIELD_BOXES || recipe->from[i].kind == FIELD_MASK;
	return lies && !job->exif_said && recipe->exif != EXIF_APPLY;
}

static int refuse(const struct job *job, const struct result *r, const char *how)
{
	return fail(EXIT_USAGE,
		    "%s/%s: states in EXIF or XMP that it is to be turned, and the field %s belongs to its pixels; %s",
		    job->source, r->path, job->plan->recipe.field[r->undecided - 1].name, how);
}

int exif_decision_check(const struct job *job, const struct result *r)
{
	if (!r->undecided || !is_asked(job))
		return EXIT_DONE;
	return refuse(job, r,
		      "repeat the command that made the plan, with --exif ignore if the field was made for the pixels "
		      "as they lie in the file (finished shards are kept), or with --exif apply to turn both (all "
		      "shards are made again)");
}

/* How many inputs are looked at. */
static uint64_t count_looks(const struct plan *p)
{
	uint64_t count = p->input_count < LOOK_INPUTS ? p->input_count : LOOK_INPUTS;
	uint64_t most = LOOK_BYTES / (p->source_bytes / p->input_count + 1) + 1;

	return count < most ? count : most;
}

/* What cannot be read or decoded is left to the build, which names it. */
static int look(const struct job *job, struct converter *c, struct result *r)
{
	uint64_t count = count_looks(job->plan);

	for (uint64_t i = 0; i < count; i++) {
		if (interrupted())
			return EXIT_INTERRUPTED;
		r->ordinal = (uint64_t)((__uint128_t)i * job->plan->input_count / count);
		if (is_undecided(c, r))
			return refuse(
				job, r,
				"type --exif ignore if the field was made for the pixels as they lie in the file, "
				"or --exif apply to turn both");
	}
	return EXIT_DONE;
}

int exif_decision_look(const struct job *job, bool in_sandbox)
{
	struct result *r = NULL;
	struct converter *c = NULL;
	struct sandbox *sandbox = NULL;
	int code = EXIT_DONE;

	if (!plan_names_inputs(job->plan) || !is_asked(job))
		return EXIT_DONE;
	if (in_sandbox)
		code = pictures_sandbox(&sandbox, &job->plan->recipe);
	if (code == EXIT_DONE) {
		r = calloc(1, sizeof(*r));
		c = converter_open(job->plan, job->source_fd, job->stored, NULL, NULL, NULL, sandbox);
		if (r)
			r->record = malloc(converter_record_bytes(&job->schema));
		code = r && r->record && c ? look(job, c, r)
					   : fail(EXIT_IO, "out of memory for a look at orientations");
	}
	converter_close(c);
	sandbox_close(sandbox);
	if (r)
		free(r->record);
	free(r);
	return code;
}
