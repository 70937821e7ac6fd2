/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_html.c - the report as one page for people
 *
 * Outcome, reasons, classes with pictures of the first records of each, or pictures of records from
 * all over a dataset without labels, bad inputs.  What there may be any number of is cut, and how
 * much was left out is said; the JSON report has all of it.
 */
#include "tools/shardpack/report/report.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/human.h"
#include "tools/common/memory.h"
#include "tools/common/message.h"
#include "tools/common/png_out.h"
#include "tools/common/shelf.h"
#include "tools/shardpack/plan/plan.h"
#include "tools/shardpack/scan/scan.h"

/* ---- small pictures of some records ---- */

#define GALLERY_PICTURES 60
#define GALLERY_SIDE	 64
#define PICTURES_A_CLASS 4
#define PICTURE_BYTES	 (256 << 10) /* of all of them, as they stand in the page */
#define LABELS_READ	 16384	     /* records in which the first of each class are looked for */

/* The first records of each class; or, where records have no label, some from all over the dataset. */
struct gallery {
	struct shard_dataset *ds;
	const struct shard_field *image, *label; /* NULL: none */
	uint64_t record_count;
	uint64_t a_class, sample_count; /* pictures of each class, or of all; both 0 if there is no image */
	uint64_t left_bytes;
	uint64_t record[GALLERY_PICTURES]; /* a_class of each class shown, UINT64_MAX: none found; or the sample */
	void *group[SHARD_GROUPS_MAX];	   /* of a record: the ones that the image needs */
	uint8_t small[GALLERY_SIDE * GALLERY_SIDE * 3];
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
	char error[200];
	uint32_t side, step;
	struct memory_file png;
	int rc = shard_dataset_read(g->ds, &record, 1, g->group, &err);

	if (rc)
		return fail(exit_code_of_status(rc), "%s", err.message);
	rc = picture_of(g, record, &in);
	if (rc)
		return rc;
	side = in.width > in.height ? in.width : in.height;
	step = (side + GALLERY_SIDE - 1) / GALLERY_SIDE;
	thumb = in;
	thumb.pixels = g->small;
	thumb.width = (in.width + step - 1) / step;
	thumb.height = (in.height + step - 1) / step;
	thumb.pixel_bytes = in.channel_count;
	thumb.row_bytes = (size_t)thumb.width * in.channel_count;
	thumb.channel_bytes = 1;
	shrink(&in, step, g->small, &thumb);
	memory_file_open(&png);
	rc = png_write(png.stream, &thumb, error, sizeof(error));
	memory_file_close(&png);
	if (!rc && png.bytes * 4 / 3 <= g->left_bytes) {
		g->left_bytes -= png.bytes * 4 / 3;
		fprintf(out,
			"<img alt=\"record %" PRIu64 "\" title=\"record %" PRIu64 "\" width=\"%" PRIu32
			"\" height=\"%" PRIu32 "\" src=\"data:image/png;base64,",
			record, record, thumb.width, thumb.height);
		put_base64(out, (const uint8_t *)png.data, png.bytes);
		fputs("\">", out);
	}
	free(png.data);
	return rc ? fail(EXIT_IO, "a picture for the report could not be made") : EXIT_DONE;
}

/* The first records of the classes that are shown; their labels are read, not their images. */
static int find_records(struct gallery *g)
{
	void *dst[SHARD_GROUPS_MAX] = {NULL};
	uint8_t *group = xmalloc(1, g->label->stride);
	struct shard_error err;
	int rc = SHARD_OK;

	dst[g->label->group] = group;
	for (uint64_t i = 0; i < g->record_count && i < LABELS_READ && !rc; i++) {
		int64_t label;

		rc = shard_dataset_read(g->ds, &i, 1, dst, &err);
		memcpy(&label, group + g->label->offset, sizeof(label));
		for (uint64_t k = 0; k < g->a_class && label >= 0 && (uint64_t)label < GALLERY_PICTURES / g->a_class;
		     k++)
			if (g->record[(uint64_t)label * g->a_class + k] == UINT64_MAX) {
				g->record[(uint64_t)label * g->a_class + k] = i;
				break;
			}
	}
	free(group);
	return rc ? fail(exit_code_of_status(rc), "%s", err.message) : EXIT_DONE;
}

/* Say why not, and return the exit code; its groups are to be freed all the same. */
static int gallery_open(struct gallery *g, struct shard_dataset *ds, uint64_t class_count)
{
	const struct shard_schema *s = shard_dataset_schema(ds);
	struct shard_dataset_info info;

	shard_dataset_info(ds, &info);
	*g = (struct gallery){.ds = ds, .left_bytes = PICTURE_BYTES, .record_count = info.record_count};
	for (uint32_t i = 0; i < s->field_count && !g->image; i++)
		if (channels_of(s, &s->field[i]) == 1 || channels_of(s, &s->field[i]) == 3)
			g->image = &s->field[i];
	g->label = shard_schema_label(s);
	if (!g->image)
		return EXIT_DONE;
	memset(g->record, 0xff, sizeof(g->record));
	for (uint32_t i = 0; i < s->group_count; i++) {
		if (i != g->image->group && !is_whole(s, g->image))
			continue;
		g->group[i] = xmalloc(1, s->group[i].stride);
	}
	if (!g->label || !class_count) {
		/* Records that have no class: as many as there is room for, at equal distances. */
		g->sample_count = g->record_count < GALLERY_PICTURES ? g->record_count : GALLERY_PICTURES;
		for (uint64_t i = 0; i < g->sample_count; i++)
			g->record[i] = i * (g->record_count / g->sample_count) +
				       i * (g->record_count % g->sample_count) / g->sample_count;
		return EXIT_DONE;
	}
	g->a_class = GALLERY_PICTURES / class_count < 1 ? 1 : GALLERY_PICTURES / class_count;
	g->a_class = g->a_class < PICTURES_A_CLASS ? g->a_class : PICTURES_A_CLASS;
	return find_records(g);
}

/* ---- the page ---- */

#define BAD_LISTED     500
#define CLASSES_LISTED 200
#define REASONS	       (SHARD_MISS_VANISHED + 1)

/* Text from elsewhere. */
static void put_text(FILE *out, const char *text, size_t bytes)
{
	size_t length = escape_text(NULL, 0, text, bytes, ESCAPE_TALK);
	char *safe = xmalloc(length + 1, 1);

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

static void put_facts(FILE *out, const struct fact *fact, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (fact[i].label)
			put_count(out, fact[i].label, fact[i].count);
}

static void put_pack(const struct plan *plan, FILE *out)
{
	const struct token_pack *p = plan->pack;
	char documents[HUMAN_CHARS], records[HUMAN_CHARS];

	if (!p || !p->packed_count)
		return;
	fprintf(out, "<p>%s documents in %s records; %.3f %% of these is padding</p>\n",
		human_count(documents, p->document_count), human_count(records, p->window_count),
		token_pack_padding(p, plan->recipe.field[TOKEN_PACK_TOKENS].shape[0]).percent);
}

static void put_fit(const struct fit_count *f, FILE *out)
{
	struct fact fact[FACTS_MAX];

	if (!f->enlarged && !f->padded && !f->boxes)
		return;
	fputs("<h2>Sizes</h2>\n<table id=\"sizes\">\n", out);
	put_facts(out, fact, facts_fit(f, fact));
	fputs("</table>\n", out);
}

static void put_not_finite(const struct shard_schema *s, const struct not_finite *n, FILE *out)
{
	char nan[HUMAN_CHARS], infinite[HUMAN_CHARS];

	for (uint32_t f = 0; f < s->field_count; f++)
		if (n->nan[f] || n->infinite[f])
			fprintf(out, "<p>Field %s has %s NaN and %s infinite values</p>\n", s->field[f].name,
				human_count(nan, n->nan[f]), human_count(infinite, n->infinite[f]));
}

static void put_dropped(const struct fit_count *f, FILE *out)
{
	bool any = false;

	for (uint32_t i = 0; i < DROPPED_COUNT; i++) {
		if (f->dropped[i] && !any)
			fputs("<h2>Left out of images</h2>\n<table id=\"dropped\">\n", out);
		if (f->dropped[i])
			put_count(out, facts_dropped[i].label, f->dropped[i]);
		any = any || f->dropped[i];
	}
	if (any)
		fputs("</table>\n", out);
}

/* Inputs without a value for a field that may have none. */
static void put_without(const struct plan *plan, const struct fit_count *fit, FILE *out)
{
	char path[PLAN_PATH_BYTES_MAX], without[HUMAN_CHARS], all[HUMAN_CHARS];
	bool began = false;

	for (uint32_t i = 0; i < plan->recipe.field_count; i++) {
		const struct fit_field *f = &fit->field[i];

		if (!f->without || f->first >= plan->input_count)
			continue;
		if (!began)
			fputs("<h2>Records without a value</h2>\n<table id=\"without\">\n<tr><th>field</th>"
			      "<th>records</th><th>of</th><th>the first</th></tr>\n",
			      out);
		began = true;
		fputs("<tr><td>", out);
		put(out, plan->recipe.field[i].name);
		fprintf(out, "</td><td class=\"n\">%s</td><td class=\"n\">%s</td><td>",
			human_count(without, f->without), human_count(all, f->records));
		put_text(out, path, facts_path(plan, f->first, path));
		fputs("</td></tr>\n", out);
	}
	if (began)
		fputs("</table>\n", out);
}

static void put_outcome(const struct report *r, FILE *out, struct shard_dataset *ds)
{
	const struct account *a = r->job->account;
	const char *outcome = facts_outcome(r);
	char shards[HUMAN_CHARS], bytes[HUMAN_CHARS], time[HUMAN_CHARS];
	struct shard_dataset_info info;
	struct text ignored = {0};
	struct fact fact[FACTS_MAX];

	fputs("<h1>", out);
	put(out, r->job->out_dir);
	fprintf(out, "</h1>\n<p><b>%c%s</b>", toupper((unsigned char)outcome[0]), outcome + 1);
	fprintf(out, " (exit code %d) after %s", r->exit_code, human_duration(time, r->elapsed_ns));
	if (ds) {
		shard_dataset_info(ds, &info);
		fprintf(out, "; %s shard%s, %s", human_count(shards, info.shard_count),
			info.shard_count == 1 ? "" : "s", human_bytes(bytes, info.data_bytes));
	}
	fputs("</p>\n<table id=\"outcome\">\n", out);
	put_facts(out, fact, facts_account(a, fact));
	fputs("</table>\n", out);
	put_pack(r->job->plan, out);
	put_fit(&a->fit, out);
	put_not_finite(&r->job->schema, &a->not_finite, out);
	put_dropped(&a->fit, out);
	put_without(r->job->plan, &a->fit, out);
	if (!r->scan || !r->scan->ignored.count)
		return;
	ignored_list(&r->scan->ignored, &ignored);
	fprintf(out, "<p>Ignored files: %s (", human_count(shards, r->scan->ignored.count));
	put(out, ignored.data);
	fputs(")</p>\n", out);
	text_free(&ignored);
}

static void put_lines(const struct fact_text *text, FILE *out)
{
	const char *at = text->lines ? text->lines->data : NULL;

	if (!at)
		return;
	fprintf(out, "<h2>%s</h2>\n", text->title);
	for (size_t bytes; *at; at += bytes + 1) {
		bytes = strcspn(at, "\n");
		fputs("<p>", out);
		put_text(out, at, bytes);
		fputs("</p>\n", out);
	}
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
			put_count(out, i ? reason_name(i) : "unreadable", count[i]);
	fputs("</table>\n", out);
}

static void put_left_out(FILE *out, uint64_t count)
{
	char text[HUMAN_CHARS];

	if (count)
		fprintf(out, "<p>and %s more: a report whose name does not end in .html lists all</p>\n",
			human_count(text, count));
}

static void put_list(const struct plan *plan, const struct fact_list *l, FILE *out)
{
	uint64_t count = l->list ? l->list->count : 0, shown = count < BAD_LISTED ? count : BAD_LISTED;
	char path[PLAN_PATH_BYTES_MAX];

	if (!shown)
		return;
	fprintf(out, "<h2>%s</h2>\n<table id=\"%s\">\n<tr><th>input</th><th>reason</th><th>message</th></tr>\n",
		l->title, l->id);
	for (uint64_t i = 0; i < shown; i++) {
		const struct problem *p = &l->list->item[i];

		fputs("<tr><td>", out);
		put_text(out, path, facts_path(plan, plan_input_at(plan, p->ordinal), path));
		fputs("</td><td>", out);
		put(out, facts_reason(p));
		fputs("</td><td>", out);
		put(out, p->message);
		fputs("</td></tr>\n", out);
	}
	fputs("</table>\n", out);
	put_left_out(out, count - shown);
}

/* ---- classes ---- */

/* Whichever of the two is known. */
static uint64_t class_size(const struct plan *plan, const struct fact_class *c)
{
	return plan_names_inputs(plan) ? c->inputs : c->has_records ? c->records : 0;
}

/* Names of classes that no label counts, as those of COCO. */
static void put_names(const struct plan *plan, uint64_t shown, FILE *out)
{
	char name[SHARD_KEY_BYTES_MAX + 1];

	fputs("<h2>Classes</h2>\n<table id=\"names\">\n<tr><th>number</th><th>class</th></tr>\n", out);
	for (uint64_t i = 0; i < shown; i++) {
		plan_class_name(plan, i, name);
		fprintf(out, "<tr><td class=\"n\">%" PRIu64 "</td><td>", i);
		put(out, name);
		fputs("</td></tr>\n", out);
	}
	fputs("</table>\n", out);
	put_left_out(out, plan->class_count - shown);
}

static int put_classes(const struct report *r, FILE *out, const uint64_t *inputs, struct gallery *g)
{
	const struct plan *plan = r->job->plan;
	uint64_t shown = plan->class_count < CLASSES_LISTED ? plan->class_count : CLASSES_LISTED, largest = 1;
	char number[HUMAN_CHARS];
	struct fact_class c;
	int rc = EXIT_DONE;

	if (shown && plan_names_inputs(plan) && !plan_has_labels(plan)) {
		put_names(plan, shown, out);
		return EXIT_DONE;
	}
	if (!shown)
		return EXIT_DONE;
	for (uint64_t i = 0; i < plan->class_count; i++) {
		facts_class(plan, g->ds, inputs, i, &c);
		if (class_size(plan, &c) > largest)
			largest = class_size(plan, &c);
	}
	fputs("<h2>Classes</h2>\n<table "
	      "id=\"classes\">\n<tr><th>class</th><th>inputs</th><th>records</th><th></th></tr>\n",
	      out);
	for (uint64_t i = 0; i < shown && !rc; i++) {
		facts_class(plan, g->ds, inputs, i, &c);
		fputs("<tr><td>", out);
		put(out, c.name);
		fprintf(out, "</td><td class=\"n\">%s</td><td class=\"n\">",
			c.has_inputs ? human_count(number, c.inputs) : "");
		if (c.has_records)
			fputs(human_count(number, c.records), out);
		fprintf(out, "</td><td><hr style=\"width:%.0fpx\">",
			200 * (double)class_size(plan, &c) / (double)largest);
		for (uint64_t k = 0; !rc && k < g->a_class && i < GALLERY_PICTURES / g->a_class; k++)
			if (g->record[i * g->a_class + k] != UINT64_MAX)
				rc = put_picture(g, out, g->record[i * g->a_class + k]);
		fputs("</td></tr>\n", out);
	}
	fputs("</table>\n", out);
	put_left_out(out, plan->class_count - shown);
	return rc;
}

/* Pictures that stand in no class. */
static int put_records(struct gallery *g, FILE *out)
{
	char shown[HUMAN_CHARS], all[HUMAN_CHARS];
	int rc = EXIT_DONE;

	if (!g->sample_count)
		return EXIT_DONE;
	fprintf(out, "<h2>Records</h2>\n<p>%s of %s, from the first to the last</p>\n<p>",
		human_count(shown, g->sample_count), human_count(all, g->record_count));
	for (uint64_t i = 0; i < g->sample_count && !rc; i++)
		rc = put_picture(g, out, g->record[i]);
	fputs("</p>\n", out);
	return rc;
}

int report_html(const struct report *r, FILE *out, struct shard_dataset *ds, const uint64_t *inputs)
{
	struct gallery gallery = {0};
	struct fact_list list[FACTS_LISTS];
	struct fact_text text[FACTS_TEXTS];
	int rc = ds ? gallery_open(&gallery, ds, r->job->plan->class_count) : EXIT_DONE;

	put_head(r, out);
	put_outcome(r, out, ds);
	facts_texts(r->scan, text);
	for (uint32_t i = 0; i < FACTS_TEXTS; i++)
		put_lines(&text[i], out);
	put_reasons(r->job->account, out);
	if (!rc)
		rc = put_classes(r, out, inputs, &gallery);
	if (!rc)
		rc = put_records(&gallery, out);
	facts_lists(r->job->account, list);
	for (uint32_t i = 0; i < FACTS_LISTS; i++)
		put_list(r->job->plan, &list[i], out);
	fputs("</body>\n</html>\n", out);
	for (uint32_t i = 0; i < SHARD_GROUPS_MAX; i++)
		free(gallery.group[i]);
	return rc;
}
