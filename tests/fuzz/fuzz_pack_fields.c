/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_pack_fields.c - any text as --field, and any bytes as a value of the field that it asks for
 *
 * The input is a line, the option, and what follows it, the value.  A field that was understood,
 * written as a plan has it, must read as the same field again, and no other text may be that
 * plan's.  A value never takes more than its room.
 */
#include "tests/fuzz/fuzz.h"
#include "tools/shardpack/plan/plan.h"

#define ROOM_MAX ((size_t)1 << 20)

static const struct transform_options image = {.resize = 8, .crop = 7, .filter = RESIZE_BILINEAR};

static bool read_field(const char *text, bool encoded, struct shard_field *f, struct field_source *s)
{
	char why[320] = "";
	struct field_option o;
	bool ok = field_option_parse(text, encoded, &o, why, sizeof(why)) && strcmp(o.name, "image") != 0 &&
		  field_option_settle(&o, &image, f, s, why, sizeof(why));

	must(ok || why[0] || !strcmp(o.name, "image"), "a refusal has no reason");
	field_option_free(&o);
	return ok;
}

/* As a plan says it, and back. */
static void turn_round(const struct shard_field *f, const struct field_source *s)
{
	struct text written = {0}, again = {0};
	struct shard_field g;
	struct field_source t;

	text_format(&written, "%s:", f->name);
	field_option_write(f, s, &written);
	must(!text_failed(&written) && !strpbrk(written.data, " \n"), "a plan's line would be cut");
	must(read_field(written.data, true, &g, &t), "what was written is not read");
	must(!memcmp(f, &g, sizeof(g)) && s->kind == t.kind && !strcmp(s->from, t.from) && s->optional == t.optional &&
		     s->fill == t.fill && s->boxes == t.boxes && s->turn == t.turn &&
		     s->transform.crop == t.transform.crop && s->transform.resize == t.transform.resize &&
		     s->transform.samples == t.transform.samples && s->transform.scale == t.transform.scale &&
		     !memcmp(&s->transform.normal, &t.transform.normal, sizeof(t.transform.normal)),
	     "another field than was written");
	text_format(&again, "%s:", g.name);
	field_option_write(&g, &t, &again);
	mask_map_free(&t.map);
	must(again.bytes == written.bytes && !memcmp(again.data, written.data, again.bytes), "a field has two texts");
	text_free(&written);
	text_free(&again);
}

static void take_value(const struct shard_field *f, const struct field_source *s, const uint8_t *data, size_t size)
{
	size_t room = field_value_room(f), bytes = 0;
	/* a sanitizer sees the first touch outside of either */
	uint8_t *out = malloc(room), *copy = malloc(size + !size);
	struct field_verdict v = {.message = ""};
	bool there = true, ok;

	must(out && copy, "no memory");
	memset(out, 0, room);
	memcpy(copy, data, size);
	ok = field_json_key(s) ? field_value_of_key(f, s, copy, size, out, &bytes, &there, &v)
			       : field_value(f, s, copy, size, out, &bytes, &v);
	must(bytes <= room && (f->kind != SHARD_TENSOR || !ok || bytes == room), "a value is not of its field's size");
	must(ok || v.message[0], "a refusal has no reason");
	must(ok || v.reason, "a refusal is of no kind");
	must(there || !ok, "what is not there is a value");
	free(copy);
	free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *lf = memchr(data, '\n', size);
	size_t line = lf ? (size_t)(lf - data) : size;
	char *text = strndup((const char *)data, line);
	struct field_part part;
	struct field_source s;
	struct shard_field f;

	must(text, "no memory");
	field_part_read(text, strlen(text), &part);
	if (read_field(text, false, &f, &s)) {
		turn_round(&f, &s);
		if (!field_is_picture(s.kind) && field_value_room(&f) <= ROOM_MAX)
			take_value(&f, &s, data + line + (lf != NULL), size - line - (lf != NULL));
		mask_map_free(&s.map);
	}
	if (read_field(text, true, &f, &s)) { /* as a plan would have it, maps included */
		turn_round(&f, &s);
		mask_map_free(&s.map);
	}
	free(text);
	return 0;
}
