/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image_recipe.c - from the options of `shardpack images` to its recipe
 *
 * --resize and the others are short for --field image:resize=..., and --columns for fields of one
 * number.
 */
#include "tools/shardpack/sources/sources.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shard_inspect.h"
#include "tools/common/memory.h"
#include "tools/common/message.h"
#include "tools/common/text.h"
#include "tools/shardpack/images/images.h"
#include "tools/shardpack/plan/plan.h"
#include "tools/shardpack/scan/scan.h"

/* ---- the file of map=FILE ---- */

/*
 * The map is a part of the recipe, so another one is another dataset, and no machine but this one
 * needs the file.
 */

/* Fill an empty map, of the field `field`.  Says why not, and returns the exit code. */
static int read_map_file(struct mask_map *m, const char *field, const char *path)
{
	char file[FIELD_FROM_BYTES_MAX + SHARD_NAME_BYTES + 32], why[200];
	FILE *in = fopen(path, "re");
	struct line line = {.number = 0};
	int rc = EXIT_DONE;

	snprintf(file, sizeof(file), "--field %s: map=%s", field, path);
	if (!in)
		return fail(EXIT_IO, "%s: %s", file, strerror(errno));
	while (rc == EXIT_DONE) {
		rc = line_next(&line, in, file, "'R G B CLASS' or 'VALUE CLASS'");
		if (rc != EXIT_DONE || line.is_end)
			break;
		if (!mask_map_add(m, line.text, line.bytes, why, sizeof(why)))
			rc = fail(EXIT_BAD, "%s: line %" PRIu64 ": %s", file, line.number, why);
	}
	fclose(in);
	return rc;
}

/* ---- the image ---- */

static void wish_of_options(const struct pack_options *o, struct image_wish *out)
{
	static const enum resize_filter filters[] = {RESIZE_BILINEAR, RESIZE_BICUBIC, RESIZE_LANCZOS, RESIZE_BOX};
	static const enum resize_pixels pixels[] = {RESIZE_PILLOW_13, RESIZE_PILLOW_12, RESIZE_ROWS_FIRST};

	*out = (struct image_wish){.resize = o->resize,
				   .crop = o->crop,
				   .fit = (enum transform_fit)o->fit,
				   .filter = filters[o->filter],
				   .pixels = pixels[o->pixels],
				   .layout = o->layout ? IMAGE_CHW : IMAGE_HWC,
				   .samples = (enum image_samples)o->dtype,
				   .bits = o->bits ? 8 * (uint64_t)o->bits : 0,
				   .mean = o->mean,
				   .std = o->std,
				   .separator = ',',
				   .dashes = "--"};
}

static bool texts_differ(const char *a, const char *b)
{
	return a && b && strcmp(a, b);
}

/* What both say must be the same. */
static int refuse_differences(const struct request *r, const struct field_option *o, const struct image_wish *a,
			      const struct image_wish *b)
{
	const struct {
		const char *name;
		enum field_key key;
		bool differs;
	} said[] = {
		{"resize", FIELD_KEY_RESIZE, a->resize != b->resize},
		{"fit", FIELD_KEY_FIT, a->fit != b->fit},
		{"crop", FIELD_KEY_CROP, a->crop != b->crop},
		{"filter", FIELD_KEY_FILTER, a->filter != b->filter},
		{"layout", FIELD_KEY_LAYOUT, a->layout != b->layout},
		{"dtype", FIELD_KEY_DTYPE, a->samples != b->samples},
		{"bits", FIELD_KEY_BITS, a->bits != b->bits},
		{"mean", FIELD_KEY_MEAN, texts_differ(a->mean, b->mean)},
		{"std", FIELD_KEY_STD, texts_differ(a->std, b->std)},
	};
	for (size_t i = 0; i < sizeof(said) / sizeof(said[0]); i++)
		if (said[i].differs && o->given >> said[i].key & 1 && cli_given(r->args, said[i].name))
			return cli_misuse(r->args, "--%s and --field image:%s= differ; give one of them", said[i].name,
					  said[i].name);
	return EXIT_DONE;
}

/* As the option has them: with commas. */
static void use_commas(char *text)
{
	for (; *text; text++)
		if (*text == '/')
			*text = ',';
}

/* `o` is NULL if there is no --field image. */
static int settle_image(const struct request *r, struct field_option *o)
{
	struct image_wish wish, merged;
	char assumed[200], why[320];
	int rc = EXIT_DONE;

	if (r->o->no_label)
		r->recipe->label = LABEL_NONE;
	r->recipe->exif = (uint32_t)r->o->exif;
	r->recipe->accept = (uint32_t)r->o->accept;
	if (r->o->limit && !limits_parse(r->o->limit, &r->recipe->limits, why, sizeof(why)))
		return cli_misuse(r->args, "--limit %s: %s", r->o->limit, why);
	wish_of_options(r->o, &wish);
	merged = wish;
	if (o) {
		use_commas(o->mean);
		use_commas(o->std);
		field_option_image(o, &merged);
		rc = refuse_differences(r, o, &wish, &merged);
	}
	if (rc == EXIT_DONE && merged.samples > IMAGE_U16)
		return cli_misuse(r->args, "--field image: dtype: must be u8, u16, f16, bf16 or f32");
	if (rc == EXIT_DONE &&
	    !image_options_settle(&merged, &r->recipe->transform, assumed, sizeof(assumed), why, sizeof(why)))
		return cli_misuse(r->args, "%s", why);
	if (rc == EXIT_DONE && assumed[0])
		note("%s", assumed);
	return rc;
}

/* ---- the others ---- */

/* A field, and that of its lengths. */
static int enter_field(const struct request *r, struct field_option *o)
{
	const char *option = o->column ? "--columns" : "--field";
	struct recipe *recipe = r->recipe;
	struct shard_field f, length;
	struct field_source s;
	uint64_t line_count;
	bool ragged;
	char why[320];
	uint32_t i;
	int rc = o->map_path[0] ? read_map_file(&o->map, o->name, o->map_path) : EXIT_DONE;

	if (rc != EXIT_DONE)
		return rc;
	line_count = o->map.count;
	for (i = 0; i < recipe->field_count; i++)
		line_count += recipe->from[i].map.count;
	if (line_count > MASK_MAP_ALL_LINES_MAX)
		return fail(EXIT_BAD,
			    "--field %s: map=%s: with this one, all maps have %" PRIu64 " lines; the limit is %d",
			    o->name, o->map_path, line_count, MASK_MAP_ALL_LINES_MAX);
	if (!field_option_settle(o, &recipe->transform, &f, &s, why, sizeof(why)))
		return cli_misuse(r->args, "%s %s: %s", option, o->name, why);
	if (s.turn != TURN_UNSAID && recipe->exif != EXIF_APPLY)
		return cli_misuse(r->args, "%s %s: turn=%s needs --exif apply; without it only TIFFs are turned",
				  option, o->name, field_turn_names[s.turn]);
	ragged = field_set_length(&length, &f);
	for (i = 0; i < recipe->field_count; i++)
		if (!strcmp(recipe->field[i].name, f.name) || (ragged && !strcmp(recipe->field[i].name, length.name)))
			return cli_misuse(r->args, "%s %s: there is a field %s already", option, o->name,
					  recipe->field[i].name);
	if (recipe->transform.fit == FIT_AREA &&
	    (!strcmp(o->name, "image" FIELD_LENGTH_SUFFIX) || !strcmp(o->name, "image" FIELD_SIZE_SUFFIX)))
		return cli_misuse(r->args, "%s %s: whole images (--fit area) have a field of that name; rename yours",
				  option, o->name);
	if (recipe->field_count + 1 + ragged > SHARD_FIELDS_MAX - recipe_first(recipe))
		return cli_misuse(r->args,
				  "%s %s: more than the limit of %" PRIu32 " fields beside image and label; fields of "
				  "lengths count too",
				  option, o->name, SHARD_FIELDS_MAX - recipe_first(recipe));
	if (ragged && strlen(f.name) + strlen(FIELD_LENGTH_SUFFIX) >= sizeof(f.name))
		return cli_misuse(r->args,
				  "--field %s: the field of its lengths would be called "
				  "%s" FIELD_LENGTH_SUFFIX ", which is too long; use a shorter name",
				  o->name, o->name);
	i = recipe->field_count++;
	recipe->field[i] = f;
	recipe->from[i] = s;
	if (ragged) {
		recipe->field[i].length_field = i + 1;
		recipe->field[i + 1] = length;
		recipe->from[i + 1] = (struct field_source){.kind = FIELD_LENGTH};
		recipe->field_count++;
	}
	return EXIT_DONE;
}

/*
 * "site:u16:default=0" is short for --field site:kind=tensor,dtype=u16, whose cells are decimal
 * numbers, or empty.  With ":all" behind it all cells may be empty.
 */
static int read_column(const struct request *r, const char *at, int bytes, struct field_option *o)
{
	static const char key[] = ":default=";
	int name_bytes = (int)strcspn(at, ",:"), key_bytes = (int)strlen(key), left, number_bytes;
	const char *type = at + name_bytes + (at[name_bytes] == ':');
	int type_bytes = (int)strcspn(type, ",:");
	struct shard_field f = {.name = ""};
	char text[256], why[320];
	uint8_t value[8];

	if (!type_bytes || snprintf(text, sizeof(text), "%.*s:kind=tensor,dtype=%.*s", name_bytes, at, type_bytes,
				    type) >= (int)sizeof(text))
		return cli_misuse(r->args, "--columns %s: must be NAME:TYPE,..., such as age:f32,site:u16",
				  r->o->columns);
	if (!field_option_parse(text, false, o, why, sizeof(why)))
		return cli_misuse(r->args, "--columns %.*s: %s", bytes, at, why);
	o->column = true;
	left = bytes - (int)(type + type_bytes - at);
	if (!left)
		return EXIT_DONE;
	o->value[FIELD_KEY_OPTIONAL] = left > 4 && !memcmp(at + bytes - 4, ":all", 4);
	number_bytes = left - key_bytes - (o->value[FIELD_KEY_OPTIONAL] ? 4 : 0);
	if (number_bytes < 1 || number_bytes > FIELD_EMPTY_BYTES ||
	    memcmp(type + type_bytes, key, (size_t)key_bytes) != 0)
		return cli_misuse(r->args,
				  "--columns %.*s: '%.*s' must be :default=V, a number of at most %d characters, "
				  "which is packed for empty cells; or :default=V:all, if all cells may be empty",
				  bytes, at, left, type + type_bytes, FIELD_EMPTY_BYTES);
	memcpy(o->empty, type + type_bytes + key_bytes, (size_t)number_bytes);
	f.dtype = (uint32_t)o->value[FIELD_KEY_DTYPE];
	return field_value_of_column(&f, o->empty, value)
		       ? EXIT_DONE
		       : cli_misuse(r->args, "--columns %.*s: '%s' is not a value of type %s", bytes, at, o->empty,
				    shard_name(SHARD_NAME_DTYPE, f.dtype));
}

/* --accept adds a field of its own. */
static int make_room_for_damage(const struct request *r)
{
	const struct recipe *recipe = r->recipe;
	if (recipe->accept == ACCEPT_NONE)
		return EXIT_DONE;
	for (uint32_t i = 0; i < recipe->field_count; i++)
		if (!strcmp(recipe->field[i].name, RECIPE_DAMAGE))
			return cli_misuse(r->args,
					  "--accept %s adds a field " RECIPE_DAMAGE ", and there is one of "
					  "that name already; rename yours",
					  recipe_accept_names[recipe->accept]);
	if (recipe->field_count > recipe_named_max(recipe))
		return cli_misuse(r->args,
				  "--accept %s adds a field " RECIPE_DAMAGE ", which makes more than the "
				  "limit of %" PRIu32 " fields beside image and label; fields of lengths count too",
				  recipe_accept_names[recipe->accept], SHARD_FIELDS_MAX - recipe_first(recipe));
	return EXIT_DONE;
}

/* All that --columns and --field say, in this order: a plan has the numbers of columns first. */
static int read_fields(const struct request *r, struct field_option *o, struct field_option **image)
{
	const char *column = r->o->columns;
	char why[320];
	int rc = EXIT_DONE;

	*image = NULL;
	while (rc == EXIT_DONE && column) {
		size_t bytes = strcspn(column, ",");

		rc = read_column(r, column, (int)bytes, o++);
		column = column[bytes] ? column + bytes + 1 : NULL;
	}
	for (size_t i = 0; rc == EXIT_DONE && i < r->o->fields.count; i++, o++) {
		if (!field_option_parse(r->o->fields.items[i], false, o, why, sizeof(why)))
			return cli_misuse(r->args, "--field %s: %s", r->o->fields.items[i], why);
		if (!strcmp(o->name, "image") && *image)
			return cli_misuse(r->args, "--field image is given twice");
		if (!strcmp(o->name, "image"))
			*image = o;
	}
	return rc;
}

/* Options that say what the label is.  --multi-label is a number, or "hot". */
static int settle_labels(const struct request *r)
{
	static const char *const names[] = {"labels", "label-regex", "no-label"};
	static const char *const of_labels[] = {"labels", "label-regex", "label-key", "classes", "strict-classes"};
	const char *many = r->o->multi_label;
	uint64_t room = 0;

	for (size_t i = 0; i < sizeof(of_labels) / sizeof(of_labels[0]) && r->o->no_label; i++)
		if (cli_given(r->args, of_labels[i]))
			return cli_misuse(r->args, "--no-label and --%s exclude each other", of_labels[i]);
	if (!many && r->o->label_separator)
		return cli_misuse(r->args, "--label-separator needs --multi-label");
	if (!many)
		return EXIT_DONE;
	if (r->o->label_separator && !r->o->label_separator[0])
		return cli_misuse(r->args, "--label-separator is empty; must be what stands between labels");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (cli_given(r->args, names[i]))
			return cli_misuse(r->args, "--multi-label and --%s exclude each other", names[i]);
	r->recipe->label = strcmp(many, "hot") ? LABEL_LIST : LABEL_HOT;
	if (r->recipe->label == LABEL_LIST && (!text_u64(many, strlen(many), &room) || !room || room > UINT32_MAX))
		return cli_misuse(r->args, "--multi-label %s: must be the most labels of an image, such as 8, or hot",
				  many);
	r->recipe->label_room = room ? (uint32_t)room : 1; /* until it is known how many classes there are */
	return EXIT_DONE;
}

int image_recipe_settle(const struct request *r)
{
	size_t count = r->o->fields.count + (r->o->columns != NULL);
	struct field_option *o, *image = NULL;
	int rc;

	for (const char *at = r->o->columns; at && *at; at++)
		count += *at == ',';
	o = xcalloc(count + 1, sizeof(*o));
	rc = settle_labels(r);
	if (rc == EXIT_DONE)
		rc = read_fields(r, o, &image);
	if (rc == EXIT_DONE)
		rc = settle_image(r, image);
	for (size_t i = 0; rc == EXIT_DONE && i < count; i++)
		if (&o[i] != image)
			rc = enter_field(r, &o[i]);
	if (rc == EXIT_DONE)
		rc = make_room_for_damage(r);
	for (size_t i = 0; o && i < count; i++)
		field_option_free(&o[i]);
	free(o);
	return rc;
}
