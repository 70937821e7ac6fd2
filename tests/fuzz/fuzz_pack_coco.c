/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_pack_coco.c - any bytes as JSON, as an object of COCO, as lines of YOLO, and as a token of a
 * plan
 *
 * The text ends where its memory ends, so a sanitizer sees the first touch outside.  What jansson
 * takes for JSON must be JSON here too, as deep as we go; it ends at a NUL.  The document that is
 * read in pieces must be the one that lies in memory.  An object that was taken fills exactly its
 * pixels.
 */
#include <jansson.h>

#include "tests/fuzz/fuzz.h"
#include "tools/shardpack/parse/parse.h"
#include "tools/shardpack/plan/plan.h"

#define WIDTH  13
#define HEIGHT 9
#define DEEP   256

static bool read_all(void *context, uint64_t offset, void *out, size_t bytes)
{
	memcpy(out, (const char *)context + offset, bytes);
	return true;
}

static bool is_json(struct json_scan *s)
{
	bool ok = json_scan_skip(s) && json_scan_ends(s);

	must(ok == !s->why[0], "a refusal has no reason");
	must(memchr(s->why, 0, sizeof(s->why)), "a reason has no end");
	return ok;
}

static bool is_deep(const char *text, size_t size)
{
	size_t open = 0;

	for (size_t i = 0; i < size; i++)
		open += text[i] == '[' || text[i] == '{';
	return open > DEEP;
}

static void as_json(char *text, size_t size)
{
	struct json_scan here, pieces;
	json_error_t error;
	json_t *value = json_loadb(text, size, JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
	bool ok;

	json_scan_text(&here, text, size);
	json_scan_start(&pieces, size, read_all, text);
	ok = is_json(&here);
	must(ok == is_json(&pieces), "a document in pieces is another one");
	must(ok || !value || is_deep(text, size) || memchr(text, 0, size), "what jansson reads is refused");
	json_decref(value);
	json_scan_free(&pieces);
}

static void as_strings(char *text, size_t size)
{
	struct json_scan s;
	struct json_range r;
	bool first = true;

	json_scan_text(&s, text, size);
	while (json_scan_element(&s, &first) == JSON_ITEM && json_scan_take(&s, &r)) {
		char *out = malloc(r.bytes);
		int64_t whole;
		size_t bytes;

		must(out || !r.bytes, "no memory");
		must(r.text >= text && r.text + r.bytes <= text + size, "a value lies outside of the text");
		if (json_range_string(&r, out, &bytes))
			must(bytes < r.bytes && !out[bytes], "a string is longer than its text");
		json_range_whole(&r, &whole);
		json_range_is(&r, "counts");
		free(out);
	}
}

static void as_object(char *text, size_t size)
{
	struct coco_shapes s = {.count = 0};
	uint8_t *picture = calloc(WIDTH, HEIGHT);
	uint64_t set = 0;
	must(picture, "no memory");
	if (coco_shapes_add(&s, text, size, WIDTH, HEIGHT, 7)) {
		coco_shapes_paint(&s, &(struct rle_picture){picture, WIDTH, HEIGHT, 1});
		for (int i = 0; i < WIDTH * HEIGHT; i++)
			set += picture[i] == 7;
		must(set <= s.shape[0].area, "more pixels than the object has");
		must(set == s.shape[0].area || s.piece_count > 1, "less pixels than the object has");
	} else {
		must(s.why[0] && memchr(s.why, 0, sizeof(s.why)), "a refusal has no reason");
	}
	free(picture);
	coco_shapes_free(&s);
}

static void as_lines(char *text, size_t size)
{
	struct yolo y = {text, text + size, 0};
	char why[YOLO_WHY_BYTES] = "";
	struct yolo_box box;
	enum yolo_status status;

	while ((status = yolo_next(&y, &box, why)) == YOLO_BOX)
		must(box.class_idx >= 0, "a class is below 0");
	must(status == YOLO_END || (why[0] && memchr(why, 0, sizeof(why))), "a refusal has no reason");
}

static void as_token(char *text, size_t size)
{
	struct field_part part;

	if (memchr(text, ' ', size) || memchr(text, '\n', size) || !field_part_read(text, size, &part))
		return;
	must(!part.width == !part.height, "half a size");
	if (part.kind == FIELD_PART_SHAPES)
		field_part_shapes_fit(&part, 1000, 255);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const as[])(char *text, size_t size) = {as_json, as_strings, as_object, as_lines, as_token};

	for (size_t i = 0; i < sizeof(as) / sizeof(as[0]) && size; i++) {
		char *text = malloc(size);

		must(text, "no memory");
		memcpy(text, data, size);
		as[i](text, size);
		free(text);
	}
	return 0;
}
