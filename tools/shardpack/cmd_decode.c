/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_decode.c - `shardpack decode`: images from stdin, their pixels to stdout
 *
 * For a program that has the bytes of images, such as libshard.pack() in Python.  The answer to the
 * command itself is one line, which says what pixels will be:
 *
 *   shardpack 0.3.0 u8 hwc 224,224,3
 *
 * Then each image is asked for by a length of 8 bytes, least first, and that many bytes.  What comes
 * back is one byte, two lengths of 8 bytes, a sentence of the first and pixels of the second.  The
 * byte is
 *
 *   P  the sentence says what the image has and its pixels do not; it is empty if there is nothing
 *   B  the image is bad; the sentence says why, and there are no pixels
 *   S  it could not be decoded for want of memory or the like, and may be good
 *
 * With --memory, pixels come in a file that both processes have mapped, which has room for some
 * images: the n-th image that was asked for has the place n modulo their number, also if it is bad.
 * The program asks for an image when it needs the pixels at its place no more.
 */
#include "tools/shardpack/shardpack.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "libshard/base/bytes.h"
#include "shard_inspect.h"
#include "tools/common/cli.h"
#include "tools/common/memory.h"
#include "tools/common/message.h"
#include "tools/common/signals.h"
#include "tools/common/text.h"
#include "tools/shardpack/make/make.h"
#include "tools/shardpack/plan/plan.h"
#include "tools/shardpack/report/report.h"
#include "tools/shardpack/sandbox/sandbox.h"
#include "tools/shardpack/scan/scan.h"
#include "tools/shardpack/sources/sources.h"

#define IMAGE_BYTES_MAX (UINT64_C(1) << 31)

struct decode_arguments {
	struct pack_options pack;
	uint64_t memory; /* a file descriptor; 0: there is none */
};

#define AT(member) .offset = offsetof(struct decode_arguments, pack.member)

/* clang-format off */
/* Those of `shardpack images`.  A record here has one size, and no place for damage that was accepted. */
static const struct cli_option options[] = {
	{.name = "resize", .kind = CLI_U64, AT(resize), .arg_name = "N", .min = 1, .max = 65500,
	 .default_note = "256, unless --crop is given", .help = "resize until the shorter side has N pixels; see --fit"},
	{.name = "fit", .kind = CLI_CHOICE, AT(fit), .arg_name = "HOW", .choices = "short|long|stretch|pad",
	 .default_value = "short", .help = "how to reach the size"},
	{.name = "crop", .kind = CLI_U64, AT(crop), .arg_name = "N", .min = 1, .max = 65500,
	 .default_note = "224, or as --resize", .help = "cut out a square of N x N pixels from the middle"},
	{.name = "dtype", .kind = CLI_CHOICE, AT(dtype), .arg_name = "TYPE", .choices = "u8|f16|bf16|f32|u16",
	 .default_value = "u8", .help = "type of the pixel values"},
	{.name = "mean", .kind = CLI_STRING, AT(mean), .arg_name = "R,G,B", .default_note = "0,0,0",
	 .help = "mean to subtract from values of 0 to 1, if --dtype is f16, bf16 or f32"},
	{.name = "std", .kind = CLI_STRING, AT(std), .arg_name = "R,G,B", .default_note = "1,1,1",
	 .help = "standard deviation to divide by after that"},
	{.name = "layout", .kind = CLI_CHOICE, AT(layout), .choices = "hwc|chw", .default_value = "hwc",
	 .help = "interleaved channels, or a plane for each channel"},
	{.name = "exif", .kind = CLI_CHOICE, AT(exif), .arg_name = "HOW", .choices = "ignore|apply",
	 .default_value = "ignore", .help = "what to do with an orientation in EXIF or XMP data"},
	{.name = "filter", .kind = CLI_CHOICE, AT(filter), .arg_name = "NAME", .choices = "bilinear|bicubic|lanczos|box",
	 .default_value = "bilinear", .help = "filter that computes the resized pixels"},
	{.name = "pixels", .kind = CLI_CHOICE, AT(pixels), .arg_name = "LIKE", .choices = "pillow-13|pillow-12|rows-first",
	 .default_value = "pillow-13", .help = "version of Pillow to resize like"},
	{.name = "bits", .kind = CLI_CHOICE, AT(bits), .arg_name = "N", .choices = "auto|8|16", .default_value = "auto",
	 .help = "how many bits to read of each colour value"},
	{.name = "limit", .kind = CLI_STRING, AT(limit), .arg_name = "WHAT=N,...",
	 .help = "change what is too large, such as pixels=200M,memory=2G"},
	{.name = "sandbox", .kind = CLI_FLAG, AT(sandbox), .help = "decode in a process that can open no files"},
	{.name = "memory", .kind = CLI_U64, .offset = offsetof(struct decode_arguments, memory), .arg_name = "FD", .min = 3,
	 .max = INT_MAX, .help = "write pixels to the file that is open as FD, which both sides map"},
	{0}};
/* clang-format on */

static int say_geometry(const struct shard_field *f)
{
	printf("shardpack %d.%d.%d %s %s ", SHARD_VERSION_MAJOR, SHARD_VERSION_MINOR, SHARD_VERSION_PATCH,
	       shard_name(SHARD_NAME_DTYPE, f->dtype), shard_name(SHARD_NAME_LAYOUT, f->layout));
	for (uint32_t i = 0; i < f->ndim; i++)
		printf("%s%" PRIu32, i ? "," : "", f->shape[i]);
	putchar('\n');
	return fflush(stdout) ? fail(EXIT_IO, "stdout: %s", strerror(errno)) : EXIT_DONE;
}

/* Names what an image states and its pixels do not show, such as an orientation. */
static void describe_loss(const struct verdict *v, struct text *out)
{
	out->bytes = 0;
	for (uint32_t i = 0; i < DROPPED_COUNT; i++)
		if (v->dropped >> i & 1) {
			text_add(out, "; ", out->bytes ? 2 : 0);
			text_add(out, facts_dropped[i].text, strlen(facts_dropped[i].text));
		}
	if (v->first[0]) {
		text_add(out, "; ", out->bytes ? 2 : 0);
		text_add(out, v->first, strlen(v->first));
	}
}

/* In one call if the pipe has room. */
static int answer(char kind, const char *sentence, size_t sentence_bytes, const uint8_t *pixels, uint64_t bytes)
{
	uint8_t head[17] = {(uint8_t)kind};
	struct iovec part[3] = {{head, sizeof(head)},
				{(void *)(uintptr_t)sentence, sentence_bytes},
				{(void *)(uintptr_t)pixels, bytes}};
	struct iovec *at = part, *end = part + 3;

	store64(head + 1, sentence_bytes);
	store64(head + 9, bytes);
	while (at < end) {
		ssize_t n = writev(STDOUT_FILENO, at, (int)(end - at));

		if (n < 0 && errno == EINTR && !interrupted())
			continue;
		if (n < 0)
			return fail(EXIT_IO, "stdout: %s", strerror(errno));
		while (at < end && (size_t)n >= at->iov_len)
			n -= (ssize_t)at++->iov_len;
		if (at < end) {
			at->iov_base = (uint8_t *)at->iov_base + n;
			at->iov_len -= (size_t)n;
		}
	}
	return EXIT_DONE;
}

/* Where pixels are written. */
struct places {
	uint8_t *at;
	uint64_t count, bytes; /* bytes: of each */
	uint64_t mapped;       /* 0: they are answered */
};

static int places_open(struct places *p, int fd, uint64_t bytes)
{
	struct stat st;
	void *map;

	*p = (struct places){.count = 1, .bytes = bytes};
	if (!fd) {
		p->at = xmalloc(bytes, 1);
		return EXIT_DONE;
	}
	if (fstat(fd, &st) != 0)
		return fail(EXIT_USAGE, "--memory %d: %s", fd, strerror(errno));
	if ((uint64_t)st.st_size < bytes)
		return fail(EXIT_USAGE, "--memory %d: has %" PRIu64 " bytes; an image needs %" PRIu64, fd,
			    (uint64_t)st.st_size, bytes);
	map = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return fail(EXIT_IO, "--memory %d: %s", fd, strerror(errno));
	*p = (struct places){map, (uint64_t)st.st_size / bytes, bytes, (uint64_t)st.st_size};
	return EXIT_DONE;
}

static void places_close(struct places *p)
{
	if (p->mapped)
		munmap(p->at, p->mapped);
	else
		free(p->at);
}

/* Until stdin ends, which it may do between two images only, or a signal asks to stop. */
static int decode_all(struct pictures *p, const struct shard_field *f, int fd)
{
	uint8_t head[8], *data = NULL;
	uint64_t bytes, capacity = 0, n = 0;
	struct places places = {0};
	struct text loss = {0};
	size_t got;
	int rc = EXIT_DONE;

	while (rc == EXIT_DONE && !interrupted() && (got = fread(head, 1, sizeof(head), stdin)) != 0) {
		struct verdict v = {.outcome = OUTCOME_RECORD};
		struct picture made = {0};
		uint8_t *pixels;

		bytes = got == sizeof(head) ? load64(head) : 0;
		if (got == sizeof(head) && bytes > IMAGE_BYTES_MAX) {
			rc = fail(EXIT_BAD, "stdin: an image of %" PRIu64 " bytes; the limit is %" PRIu64, bytes,
				  IMAGE_BYTES_MAX);
			break;
		}
		if (bytes > capacity) {
			capacity = bytes;
			data = xrealloc(data, capacity, 1);
		}
		if (got != sizeof(head) || fread(data, 1, bytes, stdin) != bytes) {
			if (!interrupted() && !ferror(stdin))
				rc = fail(EXIT_BAD, "stdin: ends within an image");
			break;
		}
		/* Now, since the program learns how large an image is by our first line. */
		if (!places.at && (rc = places_open(&places, fd, f->bytes)) != EXIT_DONE)
			break;
		pixels = places.at + n++ % places.count * places.bytes;
		if (pictures_make(p, PICTURES_IMAGE, 1, data, bytes, pixels, &made, &v)) {
			describe_loss(&v, &loss);
			rc = answer('P', loss.bytes ? loss.data : "", loss.bytes, pixels, places.mapped ? 0 : f->bytes);
		} else {
			rc = answer(v.outcome == OUTCOME_BAD ? 'B' : 'S', v.message, strlen(v.message), NULL, 0);
		}
		pictures_give_back(p);
	}
	if (rc == EXIT_DONE && interrupted())
		rc = EXIT_INTERRUPTED;
	else if (rc == EXIT_DONE && ferror(stdin))
		rc = fail(EXIT_IO, "stdin: %s", strerror(errno));
	text_free(&loss);
	free(data);
	places_close(&places);
	return rc;
}

static int decode(const struct cli_args *args)
{
	const struct decode_arguments *given = args->options;
	const struct pack_options *o = &given->pack;
	struct recipe recipe = {.source = SOURCE_IMAGES};
	const struct request r = {.o = o, .args = args, .recipe = &recipe};
	struct sandbox *sandbox = NULL;
	struct shard_schema schema;
	struct shard_error err;
	struct pictures p = {0};
	int rc = image_recipe_settle(&r);

	recipe.label = LABEL_NONE;
	if (rc == EXIT_DONE && recipe_schema(&recipe, &schema, &err) != SHARD_OK)
		rc = fail_of_library(&err);
	if (rc == EXIT_DONE && o->sandbox)
		rc = pictures_sandbox(&sandbox, &recipe);
	if (rc == EXIT_DONE) {
		if (!pictures_open(&p, &recipe, NULL, sandbox))
			rc = fail(EXIT_IO, "out of memory for a decoder");
		rc = rc == EXIT_DONE ? say_geometry(&schema.field[RECIPE_IMAGE]) : rc;
		rc = rc == EXIT_DONE ? decode_all(&p, &schema.field[RECIPE_IMAGE], (int)given->memory) : rc;
		pictures_close(&p);
	}
	sandbox_close(sandbox);
	recipe_free(&recipe);
	return rc;
}

const struct cli_verb cmd_decode = {
	.name = "decode",
	.options = {options},
	.options_bytes = sizeof(struct decode_arguments),
	.run = decode,
};
