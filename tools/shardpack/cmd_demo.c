/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_demo.c - `shardpack demo`: a folder of photographs to try everything with
 *
 * The command holds nine photographs.  Each becomes a class, whose images are parts of it, cut out
 * at places that are the same in every run.
 */
#include "tools/shardpack/shardpack.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

#include "libshard/order/order.h"
#include "tools/common/cli.h"
#include "tools/common/files.h"
#include "tools/common/memory.h"
#include "tools/common/message.h"
#include "tools/common/text.h"

struct demo_options {
	const char *dir;
};

/* clang-format off */
static const struct cli_option positional[] = {
	{.name = "DIR", .kind = CLI_DIR, .required = true, .offset = offsetof(struct demo_options, dir),
	 .help = "folder to make, which must be new or empty"}, {0}};
/* clang-format on */

/* ---- the photographs ---- */

/*
 * Each stands here byte for byte.  The assembler reads them, and looks for them where the compiler
 * looks for our headers.
 */
#define EMBED(class_, file_)                                                        \
	__asm__(".pushsection .rodata." #class_ "_jpg\n" #class_ "_jpg:\n"          \
		".incbin \"examples/photos/" file_ ".jpg\"\n" #class_ "_jpg_end:\n" \
		".popsection\n");                                                   \
	extern const uint8_t class_##_jpg[], class_##_jpg_end[]

EMBED(astronaut, "train/astronaut/astronaut_008");
EMBED(brick, "train/brick/brick_001");
EMBED(camera, "val/camera/camera_001");
EMBED(cat, "train/cat/cat_009");
EMBED(coffee, "train/coffee/coffee_002");
EMBED(grass, "val/grass/grass_002");
EMBED(gravel, "train/gravel/gravel_006");
EMBED(hubble, "train/hubble/hubble_005");
EMBED(rocket, "train/rocket/rocket_003");

#define PHOTO(class_, source_)                                   \
	{                                                        \
#class_, source_, class_##_jpg, class_##_jpg_end \
	}

static const struct photo {
	const char *class_name, *source;
	const uint8_t *begin, *end;
} photos[] = {
	PHOTO(astronaut, "portrait of Eileen Collins, NASA, public domain"),
	PHOTO(brick, "CC0Textures Bricks25, CC0"),
	PHOTO(camera, "Lav Varshney, CC0"),
	PHOTO(cat, "Stefan van der Walt (the cat Chelsea), CC0"),
	PHOTO(coffee, "Rachel Michetti, CC0"),
	PHOTO(grass, "a texture, CC0"),
	PHOTO(gravel, "CC0Textures Gravel04, CC0"),
	PHOTO(hubble, "Hubble deep field, NASA, public domain"),
	PHOTO(rocket, "Falcon 9 launch, SpaceX, public domain"),
};
#define PHOTO_COUNT (sizeof(photos) / sizeof(photos[0]))

static const struct part_of_demo {
	const char *name;
	uint32_t images; /* of each class */
} parts[] = {{"train", 16}, {"val", 4}};
#define PART_COUNT (sizeof(parts) / sizeof(parts[0]))

/* ---- JPEG ---- */

struct picture {
	uint8_t *pixels; /* height * width * 3 */
	uint32_t width, height;
};

/* The photographs are sound, so this happens if memory ran out.  Files are written whole or not at all. */
static void give_up(j_common_ptr jpeg)
{
	char text[JMSG_LENGTH_MAX];

	jpeg->err->format_message(jpeg, text);
	exit(fail(EXIT_IO, "demo: %s", text));
}

static void read_photo(const struct photo *from, struct picture *out)
{
	struct jpeg_decompress_struct d;
	struct jpeg_error_mgr errors;

	d.err = jpeg_std_error(&errors);
	errors.error_exit = give_up;
	jpeg_create_decompress(&d);
	jpeg_mem_src(&d, (unsigned char *)(uintptr_t)from->begin, (unsigned long)(from->end - from->begin));
	jpeg_read_header(&d, TRUE);
	d.out_color_space = JCS_RGB;
	jpeg_start_decompress(&d);
	*out = (struct picture){.width = d.output_width, .height = d.output_height};
	out->pixels = xmalloc((size_t)out->width * out->height, 3);
	while (d.output_scanline < d.output_height) {
		JSAMPROW row = out->pixels + (size_t)d.output_scanline * out->width * 3;

		jpeg_read_scanlines(&d, &row, 1);
	}
	jpeg_destroy_decompress(&d);
}

/* Of a picture, the part at (x, y), as a JPEG.  *out is to be freed. */
static void write_part(const struct picture *from, uint32_t x, uint32_t y, uint32_t width, uint32_t height,
		       unsigned char **out, unsigned long *bytes)
{
	struct jpeg_compress_struct c;
	struct jpeg_error_mgr errors;

	*out = NULL;
	*bytes = 0;
	c.err = jpeg_std_error(&errors);
	errors.error_exit = give_up;
	jpeg_create_compress(&c);
	jpeg_mem_dest(&c, out, bytes);
	c.image_width = width;
	c.image_height = height;
	c.input_components = 3;
	c.in_color_space = JCS_RGB;
	jpeg_set_defaults(&c);
	jpeg_set_quality(&c, 92, TRUE);
	jpeg_start_compress(&c, TRUE);
	while (c.next_scanline < height) {
		JSAMPROW row = from->pixels + ((size_t)(y + c.next_scanline) * from->width + x) * 3;

		jpeg_write_scanlines(&c, &row, 1);
	}
	jpeg_finish_compress(&c);
	jpeg_destroy_compress(&c);
}

/* ---- files ---- */

static int make_folder(const char *path)
{
	return files_make_dir(path) ? EXIT_DONE
				    : fail(EXIT_IO, "%s: cannot make this folder: %s", path, strerror(errno));
}

static int publish(const char *path, const void *data, size_t bytes)
{
	struct shard_error err;

	return files_publish(path, data, bytes, &err) ? fail_of_library(&err) : EXIT_DONE;
}

/* The images of one class in one part.  `first`: the number of the first one of them, of all. */
static int write_class(const char *dir, const struct photo *photo, const struct picture *from, uint32_t count,
		       uint64_t first)
{
	char folder[FILES_PATH_BYTES], path[FILES_PATH_BYTES], name[64];
	int rc = files_path(folder, dir, photo->class_name);

	if (rc == EXIT_DONE)
		rc = make_folder(folder);
	for (uint32_t i = 0; rc == EXIT_DONE && i < count; i++) {
		uint64_t draw = 4 * (first + i);
		/* three fifths of each side, or more */
		uint32_t width = from->width - (uint32_t)(random_draw(0, draw) % (2 * from->width / 5));
		uint32_t height = from->height - (uint32_t)(random_draw(0, draw + 1) % (2 * from->height / 5));
		uint32_t x = (uint32_t)(random_draw(0, draw + 2) % (from->width - width + 1));
		uint32_t y = (uint32_t)(random_draw(0, draw + 3) % (from->height - height + 1));
		unsigned char *jpeg;
		unsigned long bytes;

		snprintf(name, sizeof(name), "%s_%02" PRIu32 ".jpg", photo->class_name, i);
		rc = files_path(path, folder, name);
		if (rc != EXIT_DONE)
			break;
		write_part(from, x, y, width, height, &jpeg, &bytes);
		rc = publish(path, jpeg, bytes);
		free(jpeg);
	}
	return rc;
}

/* Where the photographs come from. */
static int write_sources(const char *dir)
{
	struct text out = {0};
	char path[FILES_PATH_BYTES];
	int rc = files_path(path, dir, "SOURCES.txt");

	text_format(&out, "Each image is a part of one of these photographs, as scikit-image's documentation "
			  "describes them:\n");
	for (const struct photo *p = photos; p < photos + PHOTO_COUNT; p++)
		text_format(&out, "  %-9s  %s\n", p->class_name, p->source);
	if (rc == EXIT_DONE)
		rc = publish(path, out.data, out.bytes);
	text_free(&out);
	return rc;
}

static void find_name(void *context, const char *name)
{
	bool *found = context;

	*found |= strcmp(name, ".") && strcmp(name, "..");
}

static int write_all(const char *dir)
{
	char folder[FILES_PATH_BYTES];
	uint64_t first = 0;
	int rc = EXIT_DONE;

	for (size_t k = 0; rc == EXIT_DONE && k < PART_COUNT; k++) {
		rc = files_path(folder, dir, parts[k].name);
		if (rc == EXIT_DONE)
			rc = make_folder(folder);
	}
	for (size_t i = 0; rc == EXIT_DONE && i < PHOTO_COUNT; i++) {
		struct picture photo;

		read_photo(&photos[i], &photo);
		for (size_t k = 0; rc == EXIT_DONE && k < PART_COUNT; first += parts[k].images, k++) {
			rc = files_path(folder, dir, parts[k].name);
			if (rc == EXIT_DONE)
				rc = write_class(folder, &photos[i], &photo, parts[k].images, first);
		}
		free(photo.pixels);
	}
	return rc == EXIT_DONE ? write_sources(dir) : rc;
}

static int demo(const struct cli_args *args)
{
	const char *dir = ((const struct demo_options *)args->options)->dir;
	struct text words = {0};
	bool absent = false, has_names = false;
	char *path;
	int rc = files_list(dir, find_name, &has_names, &absent);

	if (rc != EXIT_DONE)
		return rc;
	if (has_names)
		return fail(EXIT_USAGE, "%s: is not empty; give the name of a new folder", dir);
	path = xstrdup(dir);
	if (!files_make_parents(path, 1))
		rc = fail(EXIT_IO, "%s: cannot make the folder above it: %s", dir, strerror(errno));
	free(path);
	if (rc == EXIT_DONE)
		rc = make_folder(dir);
	if (rc == EXIT_DONE)
		rc = write_all(dir);
	if (rc != EXIT_DONE)
		return rc;
	text_shell_word(&words, dir);
	note("%s: %zu photographs for training and %zu for validation, in %zu classes", dir,
	     PHOTO_COUNT * parts[0].images, PHOTO_COUNT * parts[1].images, PHOTO_COUNT);
	note("next: shardpack images %s/train -o ds/train --resize 256 --crop 224", words.data);
	text_free(&words);
	return EXIT_DONE;
}

const struct cli_verb cmd_demo = {
	.name = "demo", .positionals = positional, .options_bytes = sizeof(struct demo_options), .run = demo};
