/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_html.c - the report as one page for people
 *
 * Outcome, reasons, classes, pictures of the first records of each class, bad inputs.  What there
 * may be any number of is cut, and how much was left out is said; the JSON report has all of it.
 */
#include "tools/shardpack/report/report_html.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shard_pack.h"
#include "tools/common/escape.h"
#include "tools/common/exit_code.h"
#include "tools/common/human.h"
#include "tools/common/message.h"
#include "tools/common/png_out.h"
#include "tools/shardpack/build/job.h"
#include "tools/shardpack/convert/account.h"
#include "tools/shardpack/plan/plan.h"
#include "tools/shardpack/report/report.h"
#include "tools/shardpack/scan/image_list.h"
#include "tools/shardpack/scan/scan.h"

#define BAD_LISTED	 500
#define CLASSES_LISTED	 200
#define PICTURES	 60
#define PICTURES_A_CLASS 4
#define PICTURE_SIDE	 64
#define PICTURE_BYTES	 (256 << 10) /* of all of them, as they stand in the page */
#define LABELS_READ	 16384	     /* records in which the first of each class are looked for */
#define REASONS		 (SHARD_MISS_VANISHED + 1)

/* Text from elsewhere. */
static void put_text(FILE *out, const char *text, size_t bytes)
{
	size_t length = escape_text(NULL, 0, text, bytes, ESCAPE_TALK);
	char *safe = malloc(length + 1);

	if (!safe) {
		fputs("(out of memory)", out);
		return;
	}
	escape_text(safe, length + 1, text, bytes, ESCAPE_TALK);
	for (const char *c = safe; *c; c++)
		switch (*c) {
		case '&':
			fputs("&amp;", out);
			break;
		case '<':
			fputs("&lt;", out);
			break;
		case '>':
			fputs("&gt;", out);
			break;
		case '"':
			fputs("&quot;", out);
			break;
		case '\'':
			fputs("&#39;", out);
			break;
		default:
			fputc(*c, out);
		}
	free(safe);
}

static void put(FILE *out, const char *text)
{
	put_text(out, text, strlen(text));
}

static void put_head(const struct report *r, FILE *out)
{
	fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
	      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; style-src "
	      "'unsafe-inline'\">\n<title>",
	      out);
	put(out, r->job->out_dir);
	fputs("</title>\n<style>\n"
	      "body{font:15px/1.5 sans-serif;margin:2em auto;max-width:70em;padding:0 1em;color:#222;background:#fff}\n"
	      "table{border-collapse:collapse}td,th{text-align:left;padding:.15em 1em .15em 0;vertical-align:top;"
	      "overflow-wrap:anywhere}\n"
	      "td.n{text-align:right;font-variant-numeric:tabular-nums}hr{margin:.5em 0;height:.6em;border:0;"
	      "background:#48c}\nimg{image-rendering:pixelated;margin:0 2px}\n</style>\n</head>\n<body>\n",
	      out);
}

static void put_count(FILE *out, const char *what, uint64_t count)
{
	char text[HUMAN_CHARS];

	fprintf(out, "<tr><td>%s</td><td class=\"n\">%s</td></tr>\n", what, human_count(text, count));
}

static void put_outcome(const struct report *r, FILE *out, struct shard_dataset *ds)
{
	const struct account *a = r->job->account;
	uint64_t not_done = account_not_done(a);
	char shards[HUMAN_CHARS], bytes[HUMAN_CHARS], time[HUMAN_CHARS];
	struct shard_dataset_info info;
	struct text ignored = {0};

	fputs("<h1>", out);
	put(out, r->job->out_dir);
	fprintf(out, "</h1>\n<p><b>%s</b>",
		r->exit_code == EXIT_INTERRUPTED ? "Interrupted"
		: r->exit_code != EXIT_DONE	 ? "Failed"
		: r->sealed			 ? "Sealed"
						 : "Built");
	fprintf(out, " (exit code %d) after %s", r->exit_code, human_duration(time, r->elapsed_ns));
	if (ds) {
		shard_dataset_info(ds, &info);
		fprintf(out, "; %s shard%s, %s", human_count(shards, info.shard_count),
			info.shard_count == 1 ? "" : "s", human_bytes(bytes, info.data_bytes));
	}
	fputs("</p>\n<table id=\"outcome\">\n", out);
	put_count(out, "inputs", a->input_count);
	put_count(out, "written", a->written);
	if (a->accepted)
		put_count(out, "of these accepted with warnings", a->accepted);
	put_count(out, "skipped", a->skipped);
	put_count(out, "quarantined", a->quarantined);
	put_count(out, "failed", account_failed(a) - not_done);
	put_count(out, "not done", not_done);
	fputs("</table>\n", out);
	if (!r->scan || !r->scan->ignored.count)
		return;
	ignored_list(&r->scan->ignored, &ignored);
	fprintf(out, "<p>Ignored files: %s (", human_count(shards, r->scan->ignored.count));
	put(out, text_failed(&ignored) ? "out of memory" : ignored.data);
	fputs(")</p>\n", out);
	text_free(&ignored);
}

static void put_reasons(const struct account *a, FILE *out)
{
	uint64_t count[REASONS] = {0};

	if (!a->problems.count)
		return;
	for (uint64_t i = 0; i < a->problems.count; i++)
		count[a->problems.item[i].how == PROBLEM_UNREADABLE || a->problems.item[i].reason >= REASONS
			      ? 0
			      : a->problems.item[i].reason]++;
	fputs("<h2>Reasons</h2>\n<table id=\"reasons\">\n", out);
	for (uint32_t i = 0; i < REASONS; i++)
		if (count[i])
			put_count(out, i ? shard_miss_reason_name(i) : "unreadable", count[i]);
	fputs("</table>\n", out);
}

static void put_left_out(FILE *out, uint64_t count)
{
	char text[HUMAN_CHARS];

	if (count)
		fprintf(out, "<p>and %s more: a report whose name does not end in .html lists all</p>\n",
			human_count(text, count));
}

static void put_problems(const struct plan *plan, const struct problem_list *list, const char *title, const char *id,
			 FILE *out)
{
	uint64_t shown = list->count < BAD_LISTED ? list->count : BAD_LISTED;
	char path[PLAN_PATH_BYTES_MAX];
	struct plan_input input;

	if (!shown)
		return;
	fprintf(out, "<h2>%s</h2>\n<table id=\"%s\">\n<tr><th>input</th><th>reason</th><th>message</th></tr>\n", title,
		id);
	for (uint64_t i = 0; i < shown; i++) {
		const struct problem *p = &list->item[i];

		plan_input(plan, plan_input_at(plan, p->ordinal), &input);
		fputs("<tr><td>", out);
		put_text(out, path, plan_input_path(plan, &input, path));
		fputs("</td><td>", out);
		put(out, p->how == PROBLEM_UNREADABLE ? "unreadable" : shard_miss_reason_name(p->reason));
		fputs("</td><td>", out);
		put(out, p->message);
		fputs("</td></tr>\n", out);
	}
	fputs("</table>\n", out);
	put_left_out(out, list->count - shown);
}

/* ---- pictures ---- */

struct gallery {
	struct shard_dataset *ds;
	const struct shard_field *image, *label; /* NULL: none */
	uint64_t a_class, left_bytes;
	uint64_t record[PICTURES];     /* a_class of each class shown; UINT64_MAX: none found */
	void *group[SHARD_GROUPS_MAX]; /* of a record: those that the image needs; all NULL if there are no pictures */
	uint8_t small[PICTURE_SIDE * PICTURE_SIDE * 3];
};

static void put_base64(FILE *out, const uint8_t *in, size_t bytes)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (size_t i = 0; i < bytes; i += 3) {
		size_t left = bytes - i;
		uint32_t bits =
			(uint32_t)in[i] << 16 | (left > 1 ? (uint32_t)in[i + 1] << 8 : 0) | (left > 2 ? in[i + 2] : 0);

		fputc(digits[bits >> 18], out);
		fputc(digits[bits >> 12 & 63], out);
		fputc(left > 1 ? digits[bits >> 6 & 63] : '=', out);
		fputc(left > 2 ? digits[bits & 63] : '=', out);
	}
}

/* The mean of each square of `step` pixels. */
static void shrink(const struct png_image *in, uint32_t step, uint8_t *to, const struct png_image *out)
{
	for (uint32_t y = 0; y < out->height; y++)
		for (uint32_t x = 0; x < out->width; x++)
			for (uint32_t c = 0; c < out->channel_count; c++) {
				uint64_t sum = 0, count = 0;

				for (uint32_t v = y * step; v < (y + 1) * step && v < in->height; v++)
					for (uint32_t u = x * step; u < (x + 1) * step && u < in->width; u++, count++)
						sum += in->pixels[v * in->row_bytes + u * in->pixel_bytes +
								  c * in->channel_bytes];
				*to++ = (uint8_t)((sum + count / 2) / count);
			}
}

static bool is_whole(const struct shard_schema *s, const struct shard_field *f)
{
	return shard_image_size_field(s, (uint32_t)(f - s->field)) < s->field_count;
}

/* How many channels a picture of this field has; 0 if there is none. */
static uint32_t channels_of(const struct shard_schema *s, const struct shard_field *f)
{
	return is_whole(s, f) ? f->shape[1] : shard_field_channels(f);
}

/* The record is there. */
static int picture_of(const struct gallery *g, uint64_t record, struct png_image *out)
{
	const struct shard_schema *s = shard_dataset_schema(g->ds);
	const struct shard_field *f = g->image;
	uint32_t planes = f->layout == SHARD_CHW, channels = channels_of(s, f);
	struct shard_size size = {f->shape[planes], f->shape[planes + 1]};
	struct png_image in = {.pixels = (uint8_t *)g->group[f->group] + f->offset, .channel_count = channels};
	struct shard_error err;
	int rc = SHARD_OK;

	if (is_whole(s, f))
		rc = shard_image_size(s, (uint32_t)(f - s->field), (const void *const *)g->group, record, &size, &err);
	if (rc)
		return fail(exit_code_of_status(rc), "%s", err.message);
	in.height = size.height;
	in.width = size.width;
	in.pixel_bytes = planes ? 1 : channels;
	in.row_bytes = in.width * in.pixel_bytes;
	in.channel_bytes = planes ? in.row_bytes * in.height : 1;
	*out = in;
	return EXIT_DONE;
}

static int put_picture(struct gallery *g, FILE *out, uint64_t record)
{
	struct png_image in, thumb;
	struct shard_error err;
	char error[200], *png = NULL;
	uint32_t side, step;
	size_t bytes = 0;
	FILE *stream;
	int rc = shard_dataset_read(g->ds, &record, 1, g->group, &err);

	if (rc)
		return fail(exit_code_of_status(rc), "%s", err.message);
	rc = picture_of(g, record, &in);
	if (rc)
		return rc;
	side = in.width > in.height ? in.width : in.height;
	step = (side + PICTURE_SIDE - 1) / PICTURE_SIDE;
	thumb = in;
	thumb.pixels = g->small;
	thumb.width = (in.width + step - 1) / step;
	thumb.height = (in.height + step - 1) / step;
	thumb.pixel_bytes = in.channel_count;
	thumb.row_bytes = (size_t)thumb.width * in.channel_count;
	thumb.channel_bytes = 1;
	shrink(&in, step, g->small, &thumb);
	stream = open_memstream(&png, &bytes);
	rc = stream ? png_write(stream, &thumb, error, sizeof(error)) : -1;
	if (stream && fclose(stream))
		rc = -1;
	if (!rc && bytes * 4 / 3 <= g->left_bytes) {
		g->left_bytes -= bytes * 4 / 3;
		fprintf(out,
			"<img alt=\"record %" PRIu64 "\" width=\"%" PRIu32 "\" height=\"%" PRIu32
			"\" src=\"data:image/png;base64,",
			record, thumb.width, thumb.height);
		put_base64(out, (const uint8_t *)png, bytes);
		fputs("\">", out);
	}
	free(png);
	return rc ? fail(EXIT_IO, "a picture for the report could not be made") : EXIT_DONE;
}

/* The first records of the classes that are shown; their labels are read, not their images. */
static int find_records(struct gallery *g)
{
	struct shard_dataset_info info;
	void *dst[SHARD_GROUPS_MAX] = {NULL};
	uint8_t *group = malloc((size_t)g->label->stride);
	struct shard_error err;
	int rc = SHARD_OK;

	if (!group)
		return fail(EXIT_IO, "out of memory for a record of %" PRIu64 " bytes", g->label->stride);
	shard_dataset_info(g->ds, &info);
	dst[g->label->group] = group;
	for (uint64_t i = 0; i < info.record_count && i < LABELS_READ && !rc; i++) {
		int64_t label;

		rc = shard_dataset_read(g->ds, &i, 1, dst, &err);
		memcpy(&label, group + g->label->offset, sizeof(label));
		for (uint64_t k = 0; k < g->a_class && label >= 0 && (uint64_t)label < PICTURES / g->a_class; k++)
			if (g->record[(uint64_t)label * g->a_class + k] == UINT64_MAX) {
				g->record[(uint64_t)label * g->a_class + k] = i;
				break;
			}
	}
	free(group);
	return rc ? fail(exit_code_of_status(rc), "%s", err.message) : EXIT_DONE;
}

static int gallery_open(struct gallery *g, struct shard_dataset *ds, uint64_t class_count)
{
	const struct shard_schema *s = shard_dataset_schema(ds);

	*g = (struct gallery){.ds = ds, .left_bytes = PICTURE_BYTES};
	for (uint32_t i = 0; i < s->field_count && !g->image; i++)
		if (channels_of(s, &s->field[i]) == 1 || channels_of(s, &s->field[i]) == 3)
			g->image = &s->field[i];
	g->label = shard_schema_label(s);
	if (!g->image || !g->label || !class_count)
		return EXIT_DONE;
	g->a_class = PICTURES / class_count < 1 ? 1 : PICTURES / class_count;
	g->a_class = g->a_class < PICTURES_A_CLASS ? g->a_class : PICTURES_A_CLASS;
	memset(g->record, 0xff, sizeof(g->record));
	for (uint32_t i = 0; i < s->group_count; i++) {
		if (i != g->image->group && !is_whole(s, g->image))
			continue;
		g->group[i] = malloc((size_t)s->group[i].stride);
		if (!g->group[i])
			return fail(EXIT_IO, "out of memory for a record of %" PRIu64 " bytes", s->group[i].stride);
	}
	return find_records(g);
}

static int put_pictures(struct gallery *g, FILE *out, uint64_t class_idx)
{
	int code = EXIT_DONE;

	for (uint64_t k = 0; g->image && g->group[g->image->group] && k < g->a_class &&
			     class_idx < PICTURES / g->a_class && code == EXIT_DONE;
	     k++)
		if (g->record[class_idx * g->a_class + k] != UINT64_MAX)
			code = put_picture(g, out, g->record[class_idx * g->a_class + k]);
	return code;
}

/* ---- classes ---- */

/* Records of a class; false if there is no dataset, or it does not say. */
static bool class_records(const struct gallery *g, uint64_t class_idx, uint64_t *records)
{
	struct shard_error err;

	return g->label && shard_dataset_class_records(g->ds, (uint32_t)(g->label - shard_dataset_schema(g->ds)->field),
						       class_idx, records, &err) == SHARD_OK;
}

/* Whichever of the two is known. */
static uint64_t class_size(const struct plan *plan, const struct gallery *g, const uint64_t *inputs, uint64_t class_idx)
{
	uint64_t records;

	if (plan_names_inputs(plan))
		return inputs[class_idx];
	return class_records(g, class_idx, &records) ? records : 0;
}

static int put_classes(const struct report *r, FILE *out, const uint64_t *inputs, struct gallery *g)
{
	const struct plan *plan = r->job->plan;
	uint64_t shown = plan->class_count < CLASSES_LISTED ? plan->class_count : CLASSES_LISTED, largest = 1;
	char name[SHARD_KEY_BYTES_MAX + 1], number[HUMAN_CHARS];
	int code = EXIT_DONE;

	if (!shown)
		return EXIT_DONE;
	for (uint64_t i = 0; i < plan->class_count; i++)
		if (class_size(plan, g, inputs, i) > largest)
			largest = class_size(plan, g, inputs, i);
	fputs("<h2>Classes</h2>\n<table "
	      "id=\"classes\">\n<tr><th>class</th><th>inputs</th><th>records</th><th></th></tr>\n",
	      out);
	for (uint64_t i = 0; i < shown && code == EXIT_DONE; i++) {
		uint64_t records;

		plan_class_name(plan, i, name);
		fputs("<tr><td>", out);
		put(out, name);
		fprintf(out, "</td><td class=\"n\">%s</td><td class=\"n\">",
			plan_has_labels(plan) ? human_count(number, inputs[i]) : "");
		if (class_records(g, i, &records))
			fputs(human_count(number, records), out);
		fprintf(out, "</td><td><hr style=\"width:%.0fpx\">",
			200 * (double)class_size(plan, g, inputs, i) / (double)largest);
		code = put_pictures(g, out, i);
		fputs("</td></tr>\n", out);
	}
	fputs("</table>\n", out);
	put_left_out(out, plan->class_count - shown);
	return code;
}

int report_html(const struct report *r, FILE *out, struct shard_dataset *ds, const uint64_t *inputs)
{
	struct gallery gallery = {0};
	int code = ds ? gallery_open(&gallery, ds, r->job->plan->class_count) : EXIT_DONE;

	put_head(r, out);
	put_outcome(r, out, ds);
	put_reasons(r->job->account, out);
	if (code == EXIT_DONE)
		code = put_classes(r, out, inputs, &gallery);
	put_problems(r->job->plan, &r->job->account->problems, "Bad inputs", "bad", out);
	put_problems(r->job->plan, &r->job->account->accepted_inputs, "Accepted with warnings", "accepted", out);
	fputs("</body>\n</html>\n", out);
	for (uint32_t i = 0; i < SHARD_GROUPS_MAX; i++)
		free(gallery.group[i]);
	return code;
}
