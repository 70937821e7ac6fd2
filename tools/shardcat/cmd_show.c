/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_show.c - shardcat show: a contact sheet of a dataset
 *
 * Chooses records, draws each small with its class below, and writes one PNG.  The same
 * dataset and options give the same picture.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shard_pack.h"
#include "tools/common/human.h"
#include "tools/common/memory.h"
#include "tools/common/signals.h"
#include "tools/common/text.h"
#include "tools/shardcat/dataset/cat_dataset.h"
#include "tools/shardcat/shardcat.h"

#define COUNT_MAX     2000
#define COLUMNS_MAX   50
#define BLOCK_RECORDS 512 /* looked at together */

/* All in pixels. */
#define MARGIN	      32
#define SIDE	      160
#define GAP_X	      20
#define GAP_Y	      22
#define CAPTION_GAP   8
#define LINE_HEIGHT   (FONT_HEIGHT + 3)
#define CELL_HEIGHT   (SIDE + CAPTION_GAP + 2 * LINE_HEIGHT)
#define HEADER_HEIGHT (2 * LINE_HEIGHT + 27)

static const struct colour paper = {250, 249, 245}, ink = {38, 38, 42}, faint = {140, 139, 134}, line = {224, 222, 214};

struct show_options {
	const char *path, *out, *field, *class_name;
	uint64_t count, first, columns, seed;
};

struct sheet {
	struct input input;
	const struct shard_field *image, *label; /* label may be NULL */
	uint64_t *records;			 /* chosen */
	uint64_t record_count;			 /* of them */
	int64_t class_idx;			 /* label of the records, if the user named a class */
	bool sequential;
	uint32_t columns;
	struct picture_scale scale; /* of the image */
	struct canvas canvas;
};

static int find_image(const struct cli_args *args, struct sheet *s)
{
	const struct show_options *o = args->options;
	const struct shard_schema *schema = s->input.schema;

	if (o->field)
		s->image = shard_schema_find(schema, o->field);
	for (uint32_t i = 0; i < schema->field_count && !o->field && !s->image; i++)
		if (schema->field[i].semantic == SHARD_IMAGE)
			s->image = &schema->field[i];
	if (s->image)
		return EXIT_DONE;
	if (o->field)
		return cli_misuse(args, "--field %s: %s has no such field; 'shardcat info' lists them", o->field,
				  s->input.path);
	return cli_misuse(args, "%s has no field with the semantic image; name one with --field", s->input.path);
}

static int read_label(struct sheet *s, uint64_t idx, int64_t *value)
{
	struct record record;
	int rc = record_read(&s->input, idx, s->label, &record);

	if (!rc)
		*value = number_integer(s->label->dtype, (uint8_t *)record.group[s->label->group] + s->label->offset);
	record_free(&record);
	return rc;
}

/* The number of the class that the user named, or a number where classes have no names. */
static int find_class(const struct cli_args *args, const struct sheet *s, int64_t *value)
{
	const struct show_options *o = args->options;

	if (!s->label)
		return cli_misuse(args, "--class %s: %s has no labels", o->class_name, s->input.path);
	if (input_find_class(&s->input, o->class_name, strlen(o->class_name), value))
		return EXIT_DONE;
	if (!text_i64(o->class_name, strlen(o->class_name), value) || input_class_name(&s->input, 0))
		return cli_misuse(args, "--class %s: %s has no such class; 'shardcat info -v' lists them",
				  o->class_name, s->input.path);
	return EXIT_DONE;
}

/* Fill s->records with the first records in order, or in a random one, that have the class. */
static int choose_records(const struct cli_args *args, struct sheet *s)
{
	const struct show_options *o = args->options;
	uint64_t total = s->input.record_count, idx[BLOCK_RECORDS];
	struct shard_error err;
	int64_t label = 0;
	int rc = o->class_name ? find_class(args, s, &s->class_idx) : EXIT_DONE;

	s->sequential = cli_given(args, "first");
	if (!rc)
		rc = input_check_index(&s->input, o->first);
	if (rc)
		return rc;
	s->records = xcalloc(o->count, sizeof(s->records[0]));
	for (uint64_t first = o->first; first < total && s->record_count < o->count && !rc; first += BLOCK_RECORDS) {
		uint64_t count = total - first < BLOCK_RECORDS ? total - first : BLOCK_RECORDS;

		for (uint64_t i = 0; i < count; i++)
			idx[i] = first + i;
		if (!s->sequential && shard_pack_order(o->seed, total, first, count, idx, &err))
			rc = fail_of_library(&err);
		for (uint64_t i = 0; i < count && s->record_count < o->count && !rc; i++) {
			if (o->class_name)
				rc = read_label(s, idx[i], &label);
			if (!rc && (!o->class_name || label == s->class_idx))
				s->records[s->record_count++] = idx[i];
		}
		if (interrupted())
			rc = EXIT_INTERRUPTED;
	}
	if (!rc && !s->record_count)
		rc = fail(EXIT_USAGE, "%s: no record of class %s", s->input.path, o->class_name);
	return rc;
}

/* The name of a class if the font has all of it, else its number. */
static void class_text(const struct sheet *s, int64_t label, char *out, size_t out_bytes)
{
	const char *name = input_class_name(&s->input, (uint64_t)label), *c = name;

	while (c && *c >= ' ' && *c <= '~')
		c++;
	if (c && !*c)
		snprintf(out, out_bytes, "%s", name);
	else
		snprintf(out, out_bytes, "class %" PRId64, label);
}

/* Class name, or label, or the end of the key: the first that there is. */
static int caption(struct sheet *s, uint64_t idx, char *out, size_t out_bytes)
{
	const char *base;
	struct shard_view key;
	int64_t label;
	int rc;

	if (s->label) {
		rc = read_label(s, idx, &label);
		if (rc)
			return rc;
		class_text(s, label, out, out_bytes);
		return EXIT_DONE;
	}
	rc = input_key(&s->input, idx, &key);
	if (rc)
		return rc;
	escape_text(out, out_bytes, key.data, key.bytes, ESCAPE_EXACT);
	base = strrchr(out, '/');
	if (base)
		memmove(out, base + 1, strlen(base + 1) + 1);
	return EXIT_DONE;
}

static int draw_cell(struct sheet *s, uint64_t number)
{
	uint32_t x = MARGIN + (uint32_t)(number % s->columns) * (SIDE + GAP_X);
	uint32_t y = MARGIN + HEADER_HEIGHT + (uint32_t)(number / s->columns) * (CELL_HEIGHT + GAP_Y);
	char text[2048], index_text[32];
	struct png_image image;
	struct tensor tensor = {0};
	struct record record;
	int rc = record_read(&s->input, s->records[number], s->image, &record);

	if (!rc)
		rc = tensor_take(&s->input, &record, s->image, &tensor);
	if (!rc)
		rc = picture_image(&s->scale, false, &tensor, &image);
	if (!rc)
		rc = caption(s, s->records[number], text, sizeof(text));
	if (!rc) {
		canvas_fill(&s->canvas, x - 1, y - 1, SIDE + 2, SIDE + 2, line);
		canvas_fill(&s->canvas, x, y, SIDE, SIDE, (struct colour){255, 255, 255});
		canvas_thumbnail(&s->canvas, x, y, SIDE, &image);
		y += SIDE + CAPTION_GAP;
		canvas_text(&s->canvas, x, y, SIDE, text, strlen(text), ink, false);
		snprintf(index_text, sizeof(index_text), "#%" PRIu64, s->records[number]);
		canvas_text(&s->canvas, x, y + LINE_HEIGHT, SIDE, index_text, strlen(index_text), faint, false);
	}
	tensor_free(&tensor);
	record_free(&record);
	return rc;
}

static void draw_header(struct sheet *s, const struct show_options *o)
{
	uint32_t width = s->canvas.width - 2 * MARGIN;
	char text[2048], shape[SHAPE_CHARS], count[HUMAN_CHARS], how[64], class_name[1100] = "";
	char *real = realpath(s->input.path, NULL);
	const char *path = real ? real : s->input.path, *base = strrchr(path, '/');
	uint64_t classes = 0;
	size_t used;

	/* The last part of the path, or of what "." and "/" stand for. */
	base = base && base[1] ? base + 1 : path;
	escape_text(text, sizeof(text), base, strlen(base), ESCAPE_EXACT);
	free(real);
	canvas_text(&s->canvas, MARGIN, MARGIN, width, text, strlen(text), ink, true);
	if (s->sequential)
		snprintf(how, sizeof(how), "from #%" PRIu64, o->first);
	else
		snprintf(how, sizeof(how), "sampled with seed %" PRIu64, o->seed);
	if (o->class_name)
		class_text(s, s->class_idx, class_name, sizeof(class_name));
	while (input_class_name(&s->input, classes))
		classes++;
	used = (size_t)snprintf(text, sizeof(text), "%s record%s", human_count(count, s->input.record_count),
				s->input.record_count == 1 ? "" : "s");
	if (classes)
		used += (size_t)snprintf(text + used, sizeof(text) - used, " in %s class%s",
					 human_count(count, classes), classes == 1 ? "" : "es");
	snprintf(text + used, sizeof(text) - used, "  |  %s %s  |  %s%s%.900s shown, %s",
		 shard_name(SHARD_NAME_DTYPE, s->image->dtype), shape_text(shape, s->image->shape, s->image->ndim),
		 human_count(count, s->record_count), class_name[0] ? " of " : "", class_name, how);
	canvas_text(&s->canvas, MARGIN, MARGIN + LINE_HEIGHT + 3, width, text, strlen(text), faint, false);
	canvas_fill(&s->canvas, MARGIN, MARGIN + 2 * LINE_HEIGHT + 9, width, 1, line);
}

static int write_sheet(const struct sheet *s, const char *path)
{
	const struct png_image image = {
		.pixels = s->canvas.pixels,
		.width = s->canvas.width,
		.height = s->canvas.height,
		.channel_count = 3,
		.row_bytes = (size_t)s->canvas.width * 3,
		.pixel_bytes = 3,
		.channel_bytes = 1,
	};
	struct memory_file file;
	char error[256];
	int rc = EXIT_DONE;

	memory_file_open(&file);
	if (png_write(file.stream, &image, error, sizeof(error)))
		rc = fail(EXIT_IO, "%s", error);
	rc = out_file_close(&file, path, rc);
	if (!rc && strcmp(path, "-"))
		note("%s: %" PRIu64 " record%s, %" PRIu32 " x %" PRIu32 " pixels", path, s->record_count,
		     s->record_count == 1 ? "" : "s", s->canvas.width, s->canvas.height);
	return rc;
}

static int draw_sheet(struct sheet *s, const struct show_options *o)
{
	uint64_t rows;
	uint32_t width, height;
	int rc = EXIT_DONE;

	s->columns = (uint32_t)(o->columns < s->record_count ? o->columns : s->record_count);
	rows = (s->record_count + s->columns - 1) / s->columns;
	width = 2 * MARGIN + s->columns * SIDE + (s->columns - 1) * GAP_X;
	height = (uint32_t)(2 * MARGIN + HEADER_HEIGHT + rows * CELL_HEIGHT + (rows - 1) * GAP_Y);
	canvas_init(&s->canvas, width, height, paper);
	draw_header(s, o);
	for (uint64_t i = 0; i < s->record_count && !rc; i++) {
		rc = draw_cell(s, i);
		if (interrupted())
			rc = EXIT_INTERRUPTED;
	}
	return rc;
}

static int run(const struct cli_args *args)
{
	const struct show_options *o = args->options;
	struct sheet s = {.records = NULL};
	int rc = input_open(&s.input, o->path);

	if (!rc)
		rc = find_image(args, &s);
	if (!rc) {
		s.label = input_label_field(&s.input);
		rc = choose_records(args, &s);
	}
	if (!rc)
		rc = picture_scale(&s.input, s.image, &s.scale);
	if (!rc)
		rc = draw_sheet(&s, o);
	if (!rc)
		rc = write_sheet(&s, o->out);
	canvas_free(&s.canvas);
	free(s.records);
	input_close(&s.input);
	return rc;
}

/* clang-format off */
static const struct cli_option positionals[] = {DIR_OR_SHARD(struct show_options), {0}};

static const struct cli_option options[] = {
	{.name = "out",
	 .short_name = 'o',
	 .kind = CLI_FILE,
	 .arg_name = "FILE",
	 .offset = offsetof(struct show_options, out),
	 .default_value = "sheet.png",
	 .help = "PNG file to write; it is overwritten; - for stdout"},
	{.name = "count",
	 .kind = CLI_U64,
	 .arg_name = "N",
	 .min = 1,
	 .max = COUNT_MAX,
	 .offset = offsetof(struct show_options, count),
	 .default_value = "40",
	 .help = "number of records to draw"},
	{.name = "columns",
	 .kind = CLI_U64,
	 .arg_name = "N",
	 .min = 1,
	 .max = COLUMNS_MAX,
	 .offset = offsetof(struct show_options, columns),
	 .default_value = "8",
	 .help = "number of pictures in a row"},
	{.name = "first",
	 .kind = CLI_U64,
	 .arg_name = "N",
	 .offset = offsetof(struct show_options, first),
	 .default_note = "a random sample",
	 .help = "draw consecutive records, beginning with number N"},
	{.name = "seed",
	 .kind = CLI_U64,
	 .arg_name = "N",
	 .offset = offsetof(struct show_options, seed),
	 .default_value = "0",
	 .help = "seed of the random sample"},
	{.name = "class",
	 .kind = CLI_STRING,
	 .arg_name = "NAME",
	 .offset = offsetof(struct show_options, class_name),
	 .help = "draw only records of this class"},
	{.name = "field",
	 .kind = CLI_STRING,
	 .arg_name = "F",
	 .offset = offsetof(struct show_options, field),
	 .default_note = "the first image",
	 .help = "field to draw"},
	{0},
};
/* clang-format on */

const struct cli_verb verb_show = {
	.name = "show",
	.positionals = positionals,
	.options = {options},
	.options_bytes = sizeof(struct show_options),
	.run = run,
};
