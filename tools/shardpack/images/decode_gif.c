/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decode_gif.c - the first frame of a GIF to RGB, through giflib
 *
 * The picture is as large as the screen, or as the frame reaches, if that is more.  Where there is
 * no frame it has the transparent index, or else index 0, as in Pillow.  A palette in which each
 * index stands for its own gray, or none, means gray.
 *
 * The frames behind it are counted, up to the end of the file, and not decompressed.
 */
#include "tools/shardpack/images/images.h"

#include <string.h>

#include <gif_lib.h>

#include "shard_inspect.h"

#define CONTROL_CODE  0xf9 /* an extension: what is transparent */
#define CONTROL_BYTES 4

/* What a record of the file begins with. */
#define EXTENSION_RECORD 0x21
#define FRAME_RECORD	 0x2c
#define END_RECORD	 0x3b

struct gif {
	GifFileType *file;
	struct decoder *d;
	struct decode_verdict *v;
	const uint8_t *bytes; /* not read yet */
	size_t left_bytes;
	int error; /* of opening */
	int other; /* the index where there is no frame */
	int palette_count;
	uint8_t palette[256][IMAGE_CHANNELS];
};

static int on_read(GifFileType *file, GifByteType *to, int count)
{
	struct gif *g = file->UserData;
	size_t n = (size_t)count < g->left_bytes ? (size_t)count : g->left_bytes;

	memcpy(to, g->bytes, n);
	g->bytes += n;
	g->left_bytes -= n;
	return (int)n;
}

static enum decode_status refuse(const struct gif *g)
{
	int error = g->file ? g->file->Error : g->error;
	const char *why = GifErrorString(error);

	if (error == D_GIF_ERR_NOT_ENOUGH_MEM)
		return decode_no_memory(g->v);
	if (!g->left_bytes)
		return decode_bad(g->v, SHARD_MISS_TRUNCATED, "GIF data ends early");
	return decode_bad(g->v, SHARD_MISS_DECODE, "GIF cannot be decoded: %s", why ? why : "unknown error");
}

/* Extensions are passed over, but for the index that is transparent. */
static enum decode_status read_extension(struct gif *g)
{
	GifByteType *block;
	int code;

	if (DGifGetExtension(g->file, &code, &block) != GIF_OK)
		return refuse(g);
	if (code == CONTROL_CODE && block && block[0] == CONTROL_BYTES && block[1] & 1) {
		g->other = block[4];
		decode_drop(g->v, DROPPED_ALPHA);
	}
	while (block)
		if (DGifGetExtensionNext(g->file, &block) != GIF_OK)
			return refuse(g);
	return DECODE_OK;
}

/* The frame's own palette, or that of all frames. */
static void choose_palette(struct gif *g)
{
	const ColorMapObject *map = g->file->Image.ColorMap ? g->file->Image.ColorMap : g->file->SColorMap;

	g->palette_count = map ? map->ColorCount : 256;
	for (int i = 0; i < 256; i++) {
		const GifColorType *c = map && i < map->ColorCount ? &map->Colors[i] : NULL;

		g->palette[i][0] = c ? c->Red : (uint8_t)i;
		g->palette[i][1] = c ? c->Green : (uint8_t)i;
		g->palette[i][2] = c ? c->Blue : (uint8_t)i;
	}
}

static enum decode_status bad_index(const struct gif *g, int idx)
{
	return decode_bad(g->v, SHARD_MISS_DAMAGED, "GIF data is damaged: palette index %d, but the palette ends at %d",
			  idx, g->palette_count - 1);
}

static enum decode_status read_row(struct gif *g, uint32_t y)
{
	const GifImageDesc *at = &g->file->Image;
	uint8_t *to = decode_row(g->d, (uint32_t)at->Top + y) + IMAGE_CHANNELS * (size_t)at->Left;

	if (DGifGetLine(g->file, g->d->line.data, at->Width) != GIF_OK)
		return refuse(g);
	for (int x = 0; x < at->Width; x++, to += IMAGE_CHANNELS) {
		if (g->d->line.data[x] >= g->palette_count)
			return bad_index(g, g->d->line.data[x]);
		memcpy(to, g->palette[g->d->line.data[x]], IMAGE_CHANNELS);
	}
	return DECODE_OK;
}

static enum decode_status read_frame(struct gif *g)
{
	static const struct {
		uint32_t first, step;
	} passes[] = {{0, 8}, {4, 8}, {2, 4}, {1, 2}};
	const GifImageDesc *at = &g->file->Image;
	uint64_t width, height, right, below;
	enum decode_status rc;

	if (DGifGetImageDesc(g->file) != GIF_OK)
		return refuse(g);
	if (at->Width <= 0 || at->Height <= 0 || at->Left < 0 || at->Top < 0)
		return decode_bad(g->v, SHARD_MISS_DECODE, "GIF has no pixels");
	right = (uint64_t)at->Left + (uint64_t)at->Width;
	below = (uint64_t)at->Top + (uint64_t)at->Height;
	width = right > (uint64_t)g->file->SWidth ? right : (uint64_t)g->file->SWidth;
	height = below > (uint64_t)g->file->SHeight ? below : (uint64_t)g->file->SHeight;
	rc = decode_begin(g->d, width, height, g->v);
	if (rc != DECODE_OK)
		return rc;
	choose_palette(g);
	if ((uint64_t)at->Width * (uint64_t)at->Height < width * height && g->other >= g->palette_count)
		return bad_index(g, g->other);
	if (!scratch_reserve(&g->d->line, (size_t)at->Width))
		return decode_no_memory(g->v);
	for (uint64_t i = 0; i < width * height; i++)
		memcpy(g->d->pixels.data + IMAGE_CHANNELS * i, g->palette[g->other], IMAGE_CHANNELS);
	/* in the order of the file: all rows, or every 8th, the ones between them, and so on */
	for (uint32_t y = 0; !at->Interlace && rc == DECODE_OK && y < (uint32_t)at->Height; y++)
		rc = read_row(g, y);
	for (size_t i = 0; at->Interlace && i < sizeof(passes) / sizeof(passes[0]); i++)
		for (uint32_t y = passes[i].first; rc == DECODE_OK && y < (uint32_t)at->Height; y += passes[i].step)
			rc = read_row(g, y);
	return rc;
}

/* The next byte; -1 at the end of the file. */
static int next_byte(struct gif *g)
{
	if (!g->left_bytes)
		return -1;
	g->left_bytes--;
	return *g->bytes++;
}

static void skip(struct gif *g, size_t bytes)
{
	bytes = bytes < g->left_bytes ? bytes : g->left_bytes;
	g->bytes += bytes;
	g->left_bytes -= bytes;
}

/* Blocks with their lengths before them, up to the empty one. */
static void skip_blocks(struct gif *g)
{
	for (int length = next_byte(g); length > 0; length = next_byte(g))
		skip(g, (size_t)length);
}

#define FRAME_BYTES 8 /* before its flags */

/*
 * What is behind the first frame, of which giflib has read all.  Its bytes are walked here, as
 * giflib keeps something of each frame.
 */
static enum decode_status count_frames(struct gif *g)
{
	uint64_t count = 1;

	for (;;) {
		int type = next_byte(g), flags;

		switch (type) {
		case EXTENSION_RECORD:
			skip(g, 1);
			skip_blocks(g);
			break;
		case FRAME_RECORD:
			skip(g, FRAME_BYTES);
			flags = next_byte(g);
			if (flags > 0 && flags & 0x80) /* a palette */
				skip(g, (size_t)3 << ((flags & 7) + 1));
			skip(g, 1);
			skip_blocks(g);
			count++;
			break;
		case END_RECORD:
			return decode_first_of(g->d, count, "GIF", "frames", g->v);
		case -1:
			return refuse(g);
		default:
			return decode_bad(
				g->v, SHARD_MISS_DECODE,
				"GIF cannot be decoded: 0x%02x does not begin a frame, an extension or the end",
				(unsigned)type);
		}
	}
}

enum decode_status gif_run(struct decoder *d, const uint8_t *bytes, size_t size, struct decode_verdict *v)
{
	struct gif g = {.d = d, .v = v, .bytes = bytes, .left_bytes = size};
	GifRecordType type = EXTENSION_RECORD_TYPE;
	enum decode_status rc = DECODE_OK;

	g.file = DGifOpen(&g, on_read, &g.error);
	if (!g.file)
		return refuse(&g);
	while (rc == DECODE_OK && type == EXTENSION_RECORD_TYPE) /* up to the first frame */
		if (DGifGetRecordType(g.file, &type) != GIF_OK)
			rc = refuse(&g);
		else if (type == EXTENSION_RECORD_TYPE)
			rc = read_extension(&g);
	if (rc == DECODE_OK)
		rc = type == IMAGE_DESC_RECORD_TYPE ? read_frame(&g)
						    : decode_bad(v, SHARD_MISS_DECODE, "GIF has no frame");
	if (rc == DECODE_OK)
		rc = count_frames(&g);
	DGifCloseFile(g.file, NULL);
	return rc;
}

#define TEXT(x)	   #x
#define TEXT_OF(x) TEXT(x)

const char *decoder_gif_version(void)
{
	return "giflib " TEXT_OF(GIFLIB_MAJOR) "." TEXT_OF(GIFLIB_MINOR) "." TEXT_OF(GIFLIB_RELEASE);
}
