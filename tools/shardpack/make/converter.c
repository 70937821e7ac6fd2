/* SPDX-License-Identifier: Apache-2.0 */
/*
 * converter.c - one input of the plan to one record, or to the reason why not
 *
 * First its image, then its other fields.  Their values stand in the plan and were checked when it
 * was made.  Files and members are checked here: a bad one makes its sample bad input, as a bad image
 * does.
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

#include "libshard/base/utf8.h"
#include "tools/common/memory.h"
#include "tools/shardpack/images/images.h"
#include "tools/shardpack/input/input.h"
#include "tools/shardpack/parse/parse.h"

struct converter {
	const struct job *job; /* const after open */
	struct pictures pictures;
	struct scratch file;		    /* the bytes of the input */
	struct scratch part;		    /* the bytes of one of its other fields */
	char path[3 * PLAN_PATH_BYTES_MAX]; /* of the file that they are */
	struct coco_shapes shapes;	    /* of a mask that is drawn, and so are the next two */
	struct scratch shape_text, drawn;
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

struct converter *converter_open(const struct job *job, struct budget *budget)
{
	struct converter *c = xcalloc(1, sizeof(*c));

	c->job = job;
	if (pictures_open(&c->pictures, &job->plan->recipe, budget, job->sandbox))
		return c;
	converter_close(c);
	return NULL;
}

void converter_close(struct converter *c)
{
	if (!c)
		return;
	pictures_close(&c->pictures);
	scratch_free(&c->file);
	scratch_free(&c->part);
	scratch_free(&c->shape_text);
	scratch_free(&c->drawn);
	coco_shapes_free(&c->shapes);
	free(c);
}

/* ---- the bytes of an input, exactly those that were planned ---- */

/* An input that is more than this cannot be an image worth packing, and is not read. */
#define INPUT_BYTES_MAX UNPACK_MEMBER_BYTES_MAX

/* Bytes that are a file of their own, or part of a file of the plan. */
struct input_bytes {
	const char *path; /* of a file of its own */
	uint32_t file;	  /* or PLAN_NO_FILE */
	uint64_t offset, bytes;
	uint64_t time_ns; /* of a file of its own: when it was written; SOURCE_NO_TIME: whenever */
};

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
static bool cannot_read(const struct converter *c, const struct input_bytes *in, struct verdict *v)
{
	char folder[3 * PLAN_PATH_BYTES_MAX + 2];
	size_t bytes = files_folder_bytes(in->path);
	enum outcome outcome = OUTCOME_FAILED;
	int error = errno;
	struct stat st;

	if (error == ENOENT && bytes < sizeof(folder) - 2) {
		snprintf(folder, sizeof(folder), "./%.*s", (int)bytes, in->path);
		outcome = fstatat(c->job->source_fd, folder, &st, 0) == 0 ? OUTCOME_VANISHED : OUTCOME_FAILED;
	}
	return verdict_set(v, outcome, 0, "%s", strerror(error));
}

/* A file of its own. */
static bool read_file(const struct converter *c, const struct input_bytes *in, struct scratch *to, struct verdict *v)
{
	struct stat st;
	bool ok;
	int fd;

	/* First look, then open: to open a FIFO waits, and to open a device may do something. */
	if (fstatat(c->job->source_fd, in->path, &st, 0) != 0)
		return cannot_read(c, in, v);
	if (!S_ISREG(st.st_mode))
		return verdict_set(v, OUTCOME_BAD, SHARD_MISS_NOT_AN_IMAGE, "%s, not a file", kind_of(st.st_mode));
	fd = openat(c->job->source_fd, in->path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) != 0) {
		cannot_read(c, in, v);
		if (fd >= 0)
			close(fd);
		return false;
	}
	ok = read_open(in, fd, &st, to, v);
	close(fd); /* nothing was written: its result says nothing */
	return ok;
}

/* Read all of them into `to`.  False if `v` says why not. */
static bool input_bytes_read(const struct converter *c, const struct input_bytes *in, struct scratch *to,
			     struct verdict *v)
{
	if (in->file == PLAN_NO_FILE)
		return read_file(c, in, to, v);
	if (in->bytes > INPUT_BYTES_MAX)
		return verdict_set(v, OUTCOME_BAD, SHARD_MISS_LIMIT, "has %" PRIu64 " bytes; the limit is %" PRIu64,
				   in->bytes, INPUT_BYTES_MAX);
	if (!scratch_reserve(to, in->bytes))
		return verdict_set(v, OUTCOME_STOP, 0, "out of memory for %" PRIu64 " bytes", in->bytes);
	if (source_file_read(c->job->source_files, in->file, in->offset, to->data, in->bytes, v->message,
			     sizeof(v->message)))
		return true;
	v->outcome = OUTCOME_FAILED;
	return false;
}

/*
 * Is a GIF, TIFF or AVIF, by its content, read by the library that the maker of the plan had?  False
 * if `v` says that it is not: then another process would make another record of it, or none.
 */
static bool input_bytes_same_build(const struct plan *p, const uint8_t *bytes, size_t size, struct verdict *v)
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

/* ---- masks that are drawn from the objects that COCO describes ---- */

static bool read_shapes(struct converter *c, const struct field_part *part, uint32_t width, uint32_t height,
			struct verdict *v)
{
	struct words words = words_of(part->text, part->text_bytes);
	struct field_shape shape;
	bool wrong;

	coco_shapes_clear(&c->shapes);
	while (field_part_next_shape(&words, &shape, &wrong)) {
		struct input_bytes in = {.file = (uint32_t)part->file,
					 .offset = shape.offset,
					 .bytes = shape.bytes,
					 .time_ns = SOURCE_NO_TIME};

		if (!input_bytes_read(c, &in, &c->shape_text, v))
			return false;
		errno = 0;
		if (coco_shapes_add(&c->shapes, (const char *)c->shape_text.data, shape.bytes, width, height,
				    shape.value))
			continue;
		if (errno == ENOMEM) /* of malloc(); a reader of JSON names it as it names faults */
			return verdict_set(v, OUTCOME_STOP, 0, "out of memory for the outlines of its mask");
		return verdict_set(v, OUTCOME_BAD, SHARD_MISS_UNSUPPORTED,
				   "segmentation at byte %" PRIu64 " of %.100s: %s", shape.offset,
				   c->job->plan->file[part->file].path, c->shapes.why);
	}
	return true;
}

/* ---- the fields beside the image ---- */

/* A field of the record being made. */
struct target {
	struct converter *c;
	const struct picture *image; /* of the record, which its masks and boxes must follow */
	struct result *r;
	uint32_t i; /* its number in the recipe */
	const struct field_source *source;
	const struct shard_field *f; /* as laid out */
	uint8_t *at;
};

/*
 * Which bytes are meant by the part of field `i`; those of a file have their path in c->path.
 * False if the part is none.
 */
static bool part_bytes(struct converter *c, uint64_t input_idx, uint32_t i, const struct field_part *part,
		       struct input_bytes *out)
{
	uint32_t number = 1;

	for (uint32_t k = 0; k < i; k++)
		number += field_has_part(&c->job->plan->recipe.from[k]);
	*out = (struct input_bytes){.file = PLAN_NO_FILE,
				    .offset = part->offset,
				    .bytes = part->bytes,
				    .time_ns = c->job->times ? source_time_of_input(c->job->times, input_idx, number)
							     : SOURCE_NO_TIME};
	if (part->kind == FIELD_PART_FILE) {
		text_decode(part->text, part->text_bytes, true, c->path);
		out->path = c->path;
	} else if (part->kind == FIELD_PART_MEMBER) {
		out->file = (uint32_t)part->file;
	}
	return part->kind == FIELD_PART_FILE || part->kind == FIELD_PART_MEMBER;
}

#define WHERE_BYTES 140

/* The bytes of a field: "masks/a.png". */
static const char *name_bytes(const struct target *t, const struct input_bytes *in, char where[WHERE_BYTES])
{
	if (in->path)
		return in->path;
	snprintf(where, WHERE_BYTES, "%" PRIu64 " bytes at offset %" PRIu64 " of %.60s", in->bytes, in->offset,
		 t->c->job->plan->file[in->file].path);
	return where;
}

/* Name the field and its bytes: "field mask, masks/a.png: ...". */
static bool blame(const struct target *t, const struct input_bytes *in)
{
	struct verdict *v = &t->r->verdict;
	char why[sizeof(v->message)], where[WHERE_BYTES];

	memcpy(why, v->message, sizeof(why));
	return verdict_set(v, v->outcome, v->reason, "field %s, %.100s: %s", t->f->name, name_bytes(t, in, where), why);
}

/* The same for a file of more frames than one. */
static void name_first(const struct target *t, const struct input_bytes *in)
{
	struct verdict *v = &t->r->verdict;
	char why[DECODE_FIRST_BYTES], where[WHERE_BYTES];

	snprintf(why, sizeof(why), "%.*s", DECODE_FIRST_BYTES - 1, v->first);
	if (why[0])
		snprintf(v->first, sizeof(v->first), "field %.30s, %.60s: %s", t->f->name, name_bytes(t, in, where),
			 why);
}

/* Numbers, text and bytes, from a file or member.  A byte-order mark is not a part of a text.  *there is false if it has
 * no such key. */
static bool put_value(const struct target *t, const struct input_bytes *in, size_t *bytes, bool *there)
{
	const char *data = (const char *)t->c->part.data;
	size_t mark = 0, data_bytes = (size_t)in->bytes;
	struct field_verdict v;
	bool ok;

	if (t->source->kind != FIELD_BYTES) {
		if (utf8_is_utf16(data, data_bytes))
			return verdict_set(&t->r->verdict, OUTCOME_BAD, SHARD_MISS_DECODE, UTF8_UTF16);
		mark = utf8_mark(data, data_bytes);
	}
	ok = field_json_key(t->source) && in->file != PLAN_NO_FILE
		     ? field_value_of_key(t->f, t->source, data + mark, data_bytes - mark, t->at, bytes, there, &v)
		     : field_value(t->f, t->source, data + mark, data_bytes - mark, t->at, bytes, &v);
	if (ok || (!*there && t->source->optional))
		return true;
	return verdict_set(&t->r->verdict, v.reason == FIELD_NO_MEMORY ? OUTCOME_STOP : OUTCOME_BAD, (uint32_t)v.reason,
			   "%s", v.message);
}

/* How large the picture is that a mask or boxes belong to: the file's, or the upright one. */
static void frame_size(const struct target *t, uint32_t *width, uint32_t *height)
{
	bool lies = t->source->turn != TURN_NONE && turn_axes(t->image->orientation).lies;

	*width = lies ? t->image->height : t->image->width;
	*height = lies ? t->image->width : t->image->height;
}

/* The size that was written beside boxes and outlines; those of another picture lie elsewhere. */
static bool check_size(const struct target *t, const struct field_part *part)
{
	uint32_t width, height;

	frame_size(t, &width, &height);
	if (!part->width || (part->width == width && part->height == height) ||
	    (t->source->turn == TURN_UNSAID && t->image->orientation != 1))
		return true;
	return verdict_set(&t->r->verdict, OUTCOME_BAD, SHARD_MISS_UNSUPPORTED,
			   "field %s: belongs to an image of %" PRIu32 " x %" PRIu32 ", and its image has %" PRIu32
			   " x %" PRIu32,
			   t->f->name, part->width, part->height, width, height);
}

/*
 * A field needs so much memory now, and no field before it does.  If the image's own file is large, it
 * is still in memory: then what it took of the budget stays taken.
 */
static void claim_field(struct converter *c, uint64_t bytes)
{
	if (c->file.capacity_bytes <= BUDGET_SMALL_BYTES)
		pictures_give_back(&c->pictures);
	pictures_claim_file(&c->pictures, bytes);
}

/*
 * A mask of objects: it is drawn as large as the picture that they belong to, then transformed as a
 * mask of a file is.  0 is where no object lies.
 */
static bool put_shapes(const struct target *t, const struct field_part *part)
{
	struct converter *c = t->c;
	struct verdict *v = &t->r->verdict;
	char why[sizeof(v->message)];
	uint32_t orientation, sample_bytes = (uint32_t)shard_dtype_bytes(t->f->dtype);
	struct image_size size = {.scale = 1};
	struct rle_picture picture;
	size_t bytes;
	bool ok;

	frame_size(t, &size.width, &size.height);
	bytes = (size_t)size.width * size.height * sample_bytes;
	claim_field(c, bytes);
	ok = pictures_orientation_of(&c->pictures, t->source->turn, t->image->orientation, NULL, 0, &orientation, v) &&
	     read_shapes(c, part, size.width, size.height, v);
	if (ok && !scratch_reserve(&c->drawn, bytes))
		ok = verdict_set(v, OUTCOME_STOP, 0, "out of memory for a mask of %" PRIu32 " x %" PRIu32, size.width,
				 size.height);
	if (ok) {
		picture = (struct rle_picture){c->drawn.data, size.width, size.height, sample_bytes};
		memset(c->drawn.data, 0, bytes);
		coco_shapes_paint(&c->shapes, &picture);
		ok = image_give(mask_sink(c->pictures.mask[t->i], orientation, t->at), &size, c->drawn.data,
				sample_bytes) ||
		     verdict_set(v, OUTCOME_STOP, 0, "out of memory for a mask");
	}
	if (ok)
		return true;
	memcpy(why, v->message, sizeof(why));
	return verdict_set(v, v->outcome, v->reason, "field %s, %s", t->f->name, why);
}

/* Boxes of the source image, XYXY, become those of the record. */
static bool move_boxes(const struct target *t, size_t bytes)
{
	float *boxes = (float *)(void *)t->at; /* aligned: the format sees to it */
	uint64_t count = bytes / (4 * sizeof(*boxes));
	const struct picture *image = t->image;
	uint32_t width, height;
	struct decode_verdict v = {0};

	if (count && image->orientation != 1 && t->source->turn == TURN_UNSAID)
		return verdict_set(&t->r->verdict, OUTCOME_BAD, SHARD_MISS_UNSUPPORTED,
				   "field %s: its image has orientation %" PRIu32 "; with --exif apply, say turn=image "
				   "if the boxes lie as that file does, or turn=none if they are upright",
				   t->f->name, image->orientation);
	/* A plan's have not been looked at. */
	if (!verdict_of_decoder(&t->r->verdict, boxes_read(BOXES_XYXY, false, boxes, count, boxes, &v), &v))
		return false;
	frame_size(t, &width, &height);
	if (t->source->unit)
		boxes_scale(width, height, boxes, count);
	if (t->source->turn != TURN_NONE)
		boxes_turn(image->orientation, width, height, boxes, count);
	boxes_move(&t->c->job->plan->recipe.transform, image->width, image->height, boxes, count);
	fit_count_boxes(&t->r->fit, boxes, count);
	return true;
}

/* From a file or member, whose bytes are in c->part.  `bytes` is what a value that is there has. */
static bool put_part(const struct target *t, const struct input_bytes *in, size_t *bytes, bool *there)
{
	struct verdict *v = &t->r->verdict;
	const uint8_t *data = t->c->part.data;
	struct picture made;

	if (t->source->kind != FIELD_IMAGE && t->source->kind != FIELD_MASK)
		return put_value(t, in, bytes, there);
	/* To guess how it is turned would put it beside its object. */
	if (!input_bytes_same_build(t->c->job->plan, data, in->bytes, v) ||
	    !pictures_make(&t->c->pictures, t->i, t->image->orientation, data, in->bytes, t->at, &made, v))
		return false;
	if (t->source->kind == FIELD_IMAGE || (made.width == t->image->width && made.height == t->image->height))
		return true;
	return verdict_set(v, OUTCOME_BAD, SHARD_MISS_UNSUPPORTED,
			   "a mask of %" PRIu32 " x %" PRIu32 ", and its image has %" PRIu32 " x %" PRIu32
			   "; they must be of one size",
			   made.width, made.height, t->image->width, t->image->height);
}

/* Of lists and masks is counted what is in them; of lists the length is a field of its own. */
static void count_value(const struct target *t, bool there, size_t bytes)
{
	struct fit_field *to = &t->r->fit.field[t->i];
	uint32_t length = 0;

	if (t->f->kind != SHARD_TENSOR) {
		const struct shard_field *f = &t->c->job->schema.field[t->f->length_field];

		length = (uint32_t)(bytes / (t->f->bytes / t->f->shape[0]));
		memcpy((f->group ? t->r->meta : t->r->record) + f->offset, &length, sizeof(length));
	}
	if (!there)
		fit_count_without(to, t->r->input.input_idx);
	else if (t->source->kind == FIELD_MASK)
		fit_count_mask(to, t->f, t->at);
	else if (t->f->kind != SHARD_TENSOR)
		fit_count_length(to, length);
}

/* Does the value have its place in the picture?  A list of no boxes has none. */
static bool lies_in_picture(const struct target *t, const struct field_part *part, size_t bytes)
{
	if (t->source->kind != FIELD_MASK)
		return t->source->kind == FIELD_BOXES && bytes;
	return part->kind == FIELD_PART_SHAPES ? part->text_bytes > 0 : part->kind != FIELD_PART_NONE;
}

static bool put_field(const struct target *t, const struct field_part *part)
{
	struct input_bytes in;
	uint32_t reason = t->r->verdict.reason;
	bool had_first = t->r->verdict.first[0], there = !field_part_is_none(part, t->source);
	size_t bytes = 0;

	if (!check_size(t, part))
		return false;
	if (part_bytes(t->c, t->r->input.input_idx, t->i, part, &in)) {
		claim_field(t->c, in.bytes);
		if (!input_bytes_read(t->c, &in, &t->c->part, &t->r->verdict) || !put_part(t, &in, &bytes, &there))
			return blame(t, &in);
		if (t->r->verdict.reason != reason) /* its damage was accepted */
			blame(t, &in);
		if (!had_first)
			name_first(t, &in);
	} else if (part->kind == FIELD_PART_VALUE && t->source->pick == PICK_ALL) {
		bytes = field_texts_put(t->f, part, t->at);
	} else if (part->kind == FIELD_PART_VALUE) {
		bytes = part->bytes;
		text_unhex(part->text, part->text_bytes, t->at, bytes);
	} else if (part->kind == FIELD_PART_SHAPES) {
		if (!put_shapes(t, part))
			return false;
	} else if (t->source->kind == FIELD_MASK) {
		mask_fill(&t->c->job->plan->recipe.transform, (uint32_t)shard_dtype_bytes(t->f->dtype), t->source->fill,
			  t->at);
	}
	count_value(t, there, bytes);
	if (t->image->stated && !t->r->undecided && lies_in_picture(t, part, bytes))
		t->r->undecided = 1 + t->i;
	return t->source->kind != FIELD_BOXES || move_boxes(t, bytes);
}

/* Of a whole image: how many pixels it has, and its height and width. */
static void put_size(const struct converter *c, const struct picture *image, struct result *r)
{
	const struct transform_options *t = &c->job->plan->recipe.transform;
	const struct shard_schema *s = &c->job->schema;
	struct transform_geometry g;
	uint32_t size[2], pixels;

	if (t->fit != FIT_AREA)
		return;
	g = transform_geometry(t, image->width, image->height);
	size[0] = g.height;
	size[1] = g.width;
	pixels = g.width * g.height;
	memcpy(r->meta + s->field[RECIPE_LENGTH].offset, &pixels, sizeof(pixels));
	memcpy(r->meta + s->field[RECIPE_SIZE].offset, size, sizeof(size));
}

static void put_label(const struct converter *c, struct result *r)
{
	const struct recipe *recipe = &c->job->plan->recipe;
	const struct shard_field *f = &c->job->schema.field[recipe_label_field(recipe)];
	uint8_t *to = r->meta + f->offset;
	const char *at = r->input.classes;
	int64_t label = r->input.class_idx;
	uint32_t class_idx, count = 0;

	if (!at)
		memcpy(to, &label, sizeof(label));
	for (; at && class_list_next(&at, &class_idx); count++) {
		label = class_idx;
		if (recipe->label == LABEL_HOT)
			to[class_idx] = 1;
		else
			memcpy(to + count * sizeof(label), &label, sizeof(label));
	}
	if (recipe->label == LABEL_LIST)
		memcpy(r->meta + c->job->schema.field[f->length_field].offset, &count, sizeof(count));
}

/*
 * Write all fields but the image into the record.  False if the verdict of the result says why not.
 */
static bool put_fields(struct converter *c, const struct picture *image, struct result *r)
{
	const struct recipe *recipe = &c->job->plan->recipe;
	const struct shard_schema *s = &c->job->schema;
	const char *parts = r->input.parts;
	struct field_part part;
	/* Where fields are not, and behind the end of what is ragged, there are zeros. */
	memset(r->record + s->field[RECIPE_IMAGE].bytes, 0,
	       (size_t)(s->group[0].record_bytes - s->field[RECIPE_IMAGE].bytes));
	memset(r->meta, 0, (size_t)s->group[1].record_bytes);
	if (recipe_has_label(recipe))
		put_label(c, r);
	put_size(c, image, r);
	for (uint32_t i = 0; i < recipe->field_count; i++) {
		const struct shard_field *f = &s->field[recipe_first(recipe) + i];
		struct target t = {c, image, r, i, &recipe->from[i], f, (f->group ? r->meta : r->record) + f->offset};

		if (field_part_next(&recipe->field[i], t.source, &parts, &part) && !put_field(&t, &part))
			return false;
	}
	return true;
}

/* The name of a member beside the image of its sample: the key of both, and the suffix. */
static const char *member_path(struct converter *c, const struct result *r, const struct field_source *s)
{
	const char *slash = strrchr(r->path, '/'), *base = slash ? slash + 1 : r->path;

	snprintf(c->path, sizeof(c->path), "%.*s.%s", (int)(base - r->path + (ptrdiff_t)strcspn(base, ".")), r->path,
		 field_json_key(s) ? "json" : s->from);
	return c->path;
}

/* Keep a bad input, with the files and members that belong to it. */
static void keep_bad(struct converter *c, struct result *r)
{
	const struct recipe *recipe = &c->job->plan->recipe;
	const char *parts = r->input.parts;
	struct verdict *v = &r->verdict, reading = {.message = ""};
	struct field_part part;
	struct input_bytes in;
	char path[PLAN_PATH_BYTES_MAX]; /* rows of one file share its copy */

	plan_input_file(&r->input, path);
	if (!quarantine_keep(c->job->quarantine, path, c->file.data, r->input.source_bytes, v->message,
			     sizeof(v->message))) {
		v->outcome = OUTCOME_STOP;
		return;
	}
	for (uint32_t i = 0; i < recipe->field_count; i++) {
		if (!field_part_next(&recipe->field[i], &recipe->from[i], &parts, &part) ||
		    !part_bytes(c, r->input.input_idx, i, &part, &in))
			continue;
		claim_field(c, in.bytes);
		if (!input_bytes_read(c, &in, &c->part, &reading)) {
			if (reading.outcome == OUTCOME_BAD) /* a FIFO, or too large: there are no bytes to keep */
				continue;
			verdict_set(v, reading.outcome, 0, "field %s: %s", recipe->field[i].name, reading.message);
			return;
		}
		if (!quarantine_keep(c->job->quarantine, in.path ? in.path : member_path(c, r, &recipe->from[i]),
				     c->part.data, in.bytes, v->message, sizeof(v->message))) {
			v->outcome = OUTCOME_STOP;
			return;
		}
	}
}

/* ---- the record ---- */

/* The input's bytes are at hand: make the record. */
static void convert(struct converter *c, struct result *r)
{
	const uint8_t *data = c->file.data;
	uint64_t bytes = r->input.source_bytes;
	struct picture image = {0};
	const struct shard_field *damage = recipe_damage(&c->job->plan->recipe, &c->job->schema);

	if (!text_is_name(r->path, r->path_bytes, SHARD_KEY_BYTES_MAX)) {
		verdict_set(&r->verdict, OUTCOME_BAD, SHARD_MISS_KEY,
			    "the path becomes the record's key, so it must be UTF-8 of at most %d bytes; it has %zu",
			    SHARD_KEY_BYTES_MAX, r->path_bytes);
		return;
	}
	if (!pictures_make(&c->pictures, PICTURES_IMAGE, 1, data, bytes, r->record, &image, &r->verdict))
		return;
	fit_count_image(&r->fit, &c->job->plan->recipe.transform, image.width, image.height);
	if (!put_fields(c, &image, r))
		return;
	fit_count_dropped(&r->fit, r->verdict.dropped, r->ordinal);
	if (damage) /* which damage was accepted */
		r->meta[damage->offset] = (uint8_t)r->verdict.reason;
	r->verdict.outcome = OUTCOME_RECORD;
}

/*
 * The plan knows that it is bad, so it is not read for a verdict.  Quarantine gets what there is of
 * it; a file that has gone meanwhile leaves nothing to keep.
 */
static void keep_known_bad(struct converter *c, const struct input_bytes *in, struct result *r)
{
	struct verdict reading = {.message = ""};

	verdict_set(&r->verdict, OUTCOME_BAD, r->input.bad_reason, "%s", "");
	plan_bad_message(&r->input, r->verdict.message);
	if (!c->job->quarantine || !in->bytes)
		return;
	pictures_claim_file(&c->pictures, in->bytes);
	if (!input_bytes_read(c, in, &c->file, &reading)) {
		if (reading.outcome == OUTCOME_FAILED || reading.outcome == OUTCOME_STOP)
			r->verdict = reading;
	} else if (!quarantine_keep(c->job->quarantine, r->path, c->file.data, in->bytes, r->verdict.message,
				    sizeof(r->verdict.message))) {
		r->verdict.outcome = OUTCOME_STOP;
	}
}

/* What is kept from input to input is small. */
static void shrink(struct converter *c)
{
	if (c->file.capacity_bytes > BUDGET_SMALL_BYTES)
		scratch_free(&c->file);
	if (c->part.capacity_bytes > BUDGET_SMALL_BYTES)
		scratch_free(&c->part);
	if (c->drawn.capacity_bytes > BUDGET_SMALL_BYTES)
		scratch_free(&c->drawn);
	if (c->shape_text.capacity_bytes > BUDGET_SMALL_BYTES)
		scratch_free(&c->shape_text);
	if (c->shapes.rle.capacity * sizeof(uint32_t) > BUDGET_SMALL_BYTES)
		coco_shapes_free(&c->shapes);
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
	r->meta = r->record + meta_offset(&c->job->schema);
	plan_input(c->job->plan, plan_input_at(c->job->plan, r->ordinal), &r->input);
	r->path_bytes = plan_input_path(c->job->plan, &r->input, r->path);
	plan_input_file(&r->input, path);
	in = (struct input_bytes){path, r->input.file, r->input.offset, r->input.source_bytes,
				  c->job->times ? source_time_of_input(c->job->times, r->input.input_idx, 0)
						: SOURCE_NO_TIME};
	if (r->input.bad_reason) {
		keep_known_bad(c, &in, r);
		shrink(c);
		return;
	}
	pictures_claim_file(&c->pictures, in.bytes);
	have_bytes = input_bytes_read(c, &in, &c->file, &r->verdict) &&
		     input_bytes_same_build(c->job->plan, c->file.data, in.bytes, &r->verdict);
	if (have_bytes && (!only_look || pictures_may_state(&c->pictures, c->file.data, in.bytes)))
		convert(c, r);
	if (r->verdict.outcome == OUTCOME_BAD && have_bytes && c->job->quarantine)
		keep_bad(c, r);
	shrink(c);
}

void converter_run(struct converter *c, struct result *r)
{
	run(c, r, false);
}

bool converter_is_undecided(struct converter *c, struct result *r)
{
	run(c, r, true);
	return r->undecided;
}
