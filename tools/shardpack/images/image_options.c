/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image_options.c - what a user asks of images: sizes, samples, and --limit
 */
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tools/common/cli.h"
#include "tools/common/text.h"
#include "tools/shardpack/images/images.h"

#define DEFAULT_RESIZE 256 /* with the crop of 224, what the field calls the standard evaluation transform */
#define DEFAULT_CROP   224

struct settling {
	const struct image_wish *w;
	struct transform_options *t;
	char *why;
	size_t why_bytes;
};

__attribute__((format(printf, 2, 3))) static bool refuse(const struct settling *s, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(s->why, s->why_bytes, fmt, ap);
	va_end(ap);
	return false;
}

/* The sizes that were not given; and can the given ones be? */
static bool settle_sizes(const struct settling *s, char *assumed, size_t assumed_bytes)
{
	const struct image_wish *w = s->w;
	struct transform_options *t = s->t;
	const char *fit = transform_fit_names[t->fit], *dashes = w->dashes;

	t->resize = (uint32_t)w->resize;
	t->crop = (uint32_t)w->crop;
	if (t->fit == FIT_AREA && w->crop)
		return refuse(s, "%scrop %" PRIu64 ": %sfit area keeps images whole; leave %scrop out", dashes, w->crop,
			      dashes, dashes);
	if (w->resize && w->crop > w->resize)
		return refuse(s, "%scrop %" PRIu64 " is larger than %sresize %" PRIu64, dashes, w->crop, dashes,
			      w->resize);
	if (t->fit != FIT_SHORT && !w->resize && w->crop)
		return refuse(s, "%sfit %s needs %sresize N", dashes, fit, dashes);
	if (t->fit == FIT_PAD && w->crop && w->crop != w->resize)
		return refuse(s,
			      "%scrop %" PRIu64 ": %sfit pad fills the whole square of %sresize %" PRIu64 ", so "
			      "nothing is cropped; leave %scrop out",
			      dashes, w->crop, dashes, dashes, w->resize, dashes);
	if (t->fit == FIT_AREA) {
		t->resize = t->crop = w->resize ? t->resize : DEFAULT_RESIZE;
		if (!w->resize)
			snprintf(assumed, assumed_bytes, "no size was given: %sresize %" PRIu32, dashes, t->resize);
	} else if (!w->resize && !w->crop) {
		t->resize = t->fit == FIT_SHORT ? DEFAULT_RESIZE : DEFAULT_CROP;
		t->crop = DEFAULT_CROP;
		snprintf(assumed, assumed_bytes, "no size was given: %sresize %" PRIu32 " %scrop %" PRIu32, dashes,
			 t->resize, dashes, t->crop);
	} else if (!w->crop) {
		t->crop = t->resize;
		if (t->fit == FIT_SHORT)
			snprintf(assumed, assumed_bytes,
				 "no crop was given: %scrop %" PRIu32 ", the whole shorter "
				 "side",
				 dashes, t->crop);
	}
	if (t->scale != SCALE_1 && !t->resize)
		return refuse(s, "decode-scale=%s needs %sresize N: a crop alone uses the image at its own size",
			      transform_scale_names[t->scale], dashes);
	return true;
}

/* "0.485,0.456,0.406"; `values` stay if the option was not given. */
static bool settle_channels(const struct settling *s, const char *option, const char *text, double *values)
{
	const char separators[] = {s->w->separator, '\0'}, *at = text;
	size_t bytes;

	for (uint32_t c = 0; text && c < IMAGE_CHANNELS; c++, at += bytes + 1) {
		bytes = strcspn(at, separators);
		if (!text_parse_double(at, bytes, &values[c]) ||
		    (at[bytes] == separators[0]) != (c + 1 < IMAGE_CHANNELS))
			return refuse(s, "%s%s %s: must be three numbers, for red, green and blue: 0.5%c0.5%c0.5",
				      s->w->dashes, option, text, separators[0], separators[0]);
		values[c] += 0.0; /* -0 is 0: one recipe, one text */
	}
	return true;
}

static bool is_above_1(const double *values)
{
	return fabs(values[0]) > 1 || fabs(values[1]) > 1 || fabs(values[2]) > 1;
}

/* What other programs may have taken for 1: the largest sample. */
static double top_of(const struct settling *s)
{
	const struct normal *n = &s->t->normal;
	double most = 0;

	for (uint32_t c = 0; c < IMAGE_CHANNELS; c++) {
		most = fabs(n->mean[c]) > most ? fabs(n->mean[c]) : most;
		most = fabs(n->std[c]) > most ? fabs(n->std[c]) : most;
	}
	return s->t->wide && most > UINT8_MAX ? UINT16_MAX : UINT8_MAX;
}

/* " --mean 0.485,0.456,0.406" of 123.675, 116.28 and 103.53; nothing if none of them is above 1. */
static int divided(const struct settling *s, const char *option, const double *values, char *out, size_t bytes)
{
	char by = s->w->separator;

	out[0] = '\0';
	return is_above_1(values)
		       ? snprintf(out, bytes, " %s%s %.6g%c%.6g%c%.6g", s->w->dashes, option, values[0] / top_of(s), by,
				  values[1] / top_of(s), by, values[2] / top_of(s))
		       : 0;
}

/*
 * Other programs want mean and std of samples from 0 to 255.  Taken for those of samples from 0 to
 * 1, they make every image nearly one number.
 */
static bool check_scale(const struct settling *s)
{
	const struct normal *n = &s->t->normal;
	const struct image_wish *w = s->w;
	bool mean = is_above_1(n->mean);
	char better[240];
	int used;

	if (!mean && !is_above_1(n->std))
		return true;
	used = divided(s, "mean", n->mean, better, sizeof(better));
	divided(s, "std", n->std, better + used, sizeof(better) - (size_t)used);
	return refuse(s, "%s%s %s: samples are from 0 to 1, so these must be %s; divide by %.0f:%s", w->dashes,
		      mean ? "mean" : "std", mean ? w->mean : w->std, mean ? "from -1 to 1" : "at most 1", top_of(s),
		      better);
}

/* Whole images are bytes, row by row: planes would have other places in each record. */
static bool settle_whole(const struct settling *s)
{
	const char *dashes = s->w->dashes;

	if (s->t->fit != FIT_AREA)
		return true;
	if (s->w->samples != IMAGE_U8)
		return refuse(s, "%sdtype %s: %sfit area needs u8; %s", dashes, transform_samples_names[s->w->samples],
			      dashes, s->w->samples == IMAGE_U16 ? "give another fit" : "let the trainer normalise");
	if (s->t->layout != IMAGE_HWC)
		return refuse(s, "%slayout %s: %sfit area needs hwc; let the trainer make planes", dashes,
			      transform_layout_names[s->t->layout], dashes);
	return true;
}

static bool settle_samples(const struct settling *s)
{
	static const char *const most[] = {[IMAGE_F16] = "65,504", [IMAGE_BF16] = "3.39e38", [IMAGE_F32] = "3.4e38"};
	const struct image_wish *w = s->w;
	struct transform_options *t = s->t;
	char number[TEXT_DOUBLE_CHARS];
	struct normal_table table;
	uint32_t channel;

	t->samples = w->samples;
	if (!image_is_normalised(t->samples) && (w->mean || w->std))
		return refuse(s, "%s%s needs %sdtype f16, bf16 or f32; %s samples are not normalised", w->dashes,
			      w->mean ? "mean" : "std", w->dashes, transform_samples_names[t->samples]);
	t->normal = (struct normal){{0, 0, 0}, {0, 0, 0}};
	if (!image_is_normalised(t->samples))
		return true;
	t->normal = (struct normal){{0, 0, 0}, {1, 1, 1}};
	if (!settle_channels(s, "mean", w->mean, t->normal.mean) || !settle_channels(s, "std", w->std, t->normal.std) ||
	    !check_scale(s))
		return false;
	if (normal_fill(&table, t->samples, &t->normal, &channel))
		return true;
	text_double(number, t->normal.std[channel]);
	if (!(t->normal.std[channel] > 0))
		return refuse(s, "%sstd %s: %s must be above 0, because samples are divided by it", w->dashes, w->std,
			      number);
	return refuse(s,
		      "%sdtype %s: (x / %s - mean) / std of channel %" PRIu32 " exceeds %s, the largest value of "
		      "%s; give the mean and std of samples from 0 to 1",
		      w->dashes, transform_samples_names[t->samples], t->wide ? "65535" : "255", channel,
		      most[t->samples], transform_samples_names[t->samples]);
}

/* How many bits of a sample are read. */
static bool settle_bits(const struct settling *s)
{
	const struct image_wish *w = s->w;
	const char *dashes = w->dashes, by = w->dashes[0] ? ' ' : '=';

	s->t->wide = w->samples == IMAGE_U16 || w->bits == 16;
	if (w->bits && w->bits != 8 && w->bits != 16)
		return refuse(s, "%sbits%c%" PRIu64 ": must be 8 or 16", dashes, by, w->bits);
	if (w->samples == IMAGE_U16 && w->bits == 8)
		return refuse(s, "%sbits%c8: %sdtype%cu16 is for samples of 16 bits; leave %sbits out", dashes, by,
			      dashes, by, dashes);
	if (w->samples == IMAGE_U8 && s->t->wide)
		return refuse(s, "%sbits%c16: u8 holds 8 bits; give %sdtype%cu16, or f16, bf16 or f32", dashes, by,
			      dashes, by);
	if (s->t->wide && w->scale != SCALE_1)
		return refuse(s,
			      "decode-scale=%s is for JPEG, and 16 bits a sample are read from PNG and TIFF; leave it "
			      "out",
			      transform_scale_names[w->scale]);
	return true;
}

bool image_options_settle(const struct image_wish *w, struct transform_options *t, char *assumed, size_t assumed_bytes,
			  char *why, size_t why_bytes)
{
	struct settling s = {w, t, why, why_bytes};

	assumed[0] = '\0';
	t->fit = w->fit;
	t->filter = w->filter;
	t->pixels = w->pixels;
	t->scale = w->scale;
	t->layout = w->layout;
	return settle_sizes(&s, assumed, assumed_bytes) && settle_bits(&s) && settle_whole(&s) && settle_samples(&s);
}

/* ---- --limit, and its line in a plan ---- */

/*
 * The readers hold inputs against them: decode.c and its formats, and scan_samples.c.
 */

#define MEMBERS_DEFAULT 1000
#define MEMBERS_MAX	65536 /* each is compared with all others of its sample */
#define WORD_BYTES	32

const struct cli_key limit_help[] = {
	[LIMIT_PIXELS] = {"pixels", "N", "pixels of an image [89478485]"},
	[LIMIT_SIDE] = {"side", "N", "longer side of an image [65500, which is the maximum]"},
	[LIMIT_SCANS] = {"scans", "N", "scans of a JPEG [100]"},
	[LIMIT_FRAMES] = {"frames", "N", "frames, pages or pictures in a file [no limit]"},
	[LIMIT_MEMORY] = {"memory", "SIZE", "memory of libjpeg beside the image [768M]"},
	[LIMIT_MEMBERS] = {"members", "N", "members of one sample in an archive [1000]"},
	[LIMIT_UNPACK] = {"unpack", "SIZE", "what a compressed file unpacks to [1G, or 100 times its size]"},
	[LIMITS] = {0},
};

static const struct {
	uint64_t most, max; /* by default, and what can be asked for */
} kinds[LIMITS] = {
	[LIMIT_PIXELS] = {DECODE_PIXELS_DEFAULT, (uint64_t)DECODE_SIDE_MAX *DECODE_SIDE_MAX},
	[LIMIT_SIDE] = {DECODE_SIDE_MAX, DECODE_SIDE_MAX},
	[LIMIT_SCANS] = {DECODE_SCANS_DEFAULT, INT_MAX}, /* libjpeg counts in an int */
	[LIMIT_FRAMES] = {DECODE_FRAMES_DEFAULT, DECODE_FRAMES_DEFAULT},
	[LIMIT_MEMORY] = {DECODE_MEMORY_DEFAULT_BYTES, LONG_MAX}, /* and has this in a long */
	[LIMIT_MEMBERS] = {MEMBERS_DEFAULT, MEMBERS_MAX},
	[LIMIT_UNPACK] = {0, INT64_MAX}, /* by default source_files.c decides, by the size of the file */
};

uint64_t limits_most(const struct limits *l, enum limit which)
{
	return l->most[which] ? l->most[which] : kinds[which].most;
}

/* One of them, "WHAT=N"; bit i of *given: enum limit. */
static bool parse_one(const char *text, size_t bytes, struct limits *out, uint32_t *given, char *why, size_t why_bytes)
{
	char word[2 * WORD_BYTES], *value;
	const char *names[LIMITS];
	int nearest;
	uint32_t i;

	snprintf(word, sizeof(word), "%.*s", bytes < sizeof(word) ? (int)bytes : (int)sizeof(word) - 1, text);
	value = strchr(word, '=');
	if (bytes >= sizeof(word) || !value) {
		snprintf(why, why_bytes, "'%s': must be WHAT=N, such as pixels=200M", word);
		return false;
	}
	*value++ = '\0';
	for (i = 0; i < LIMITS && strcmp(limit_help[i].name, word); i++)
		;
	if (i == LIMITS) {
		for (int k = 0; k < LIMITS; k++)
			names[k] = limit_help[k].name;
		nearest = cli_nearest(word, names, LIMITS);
		snprintf(why, why_bytes,
			 "'%s' is not a limit: must be pixels, side, scans, frames, memory, members or unpack%s%s%s",
			 word, nearest < 0 ? "" : "; did you mean '", nearest < 0 ? "" : names[nearest],
			 nearest < 0 ? "" : "'?");
		return false;
	}
	if (*given >> i & 1) {
		snprintf(why, why_bytes, "%s is given twice", word);
		return false;
	}
	*given |= 1u << i;
	if (!cli_size(value, 1, kinds[i].max, &out->most[i])) {
		snprintf(why, why_bytes,
			 "%s=%s: must be 1 to %" PRIu64 ", and may end in K, M, G or T (powers of "
			 "1024), such as 64M",
			 word, value, kinds[i].max);
		return false;
	}
	if (out->most[i] == kinds[i].most)
		out->most[i] = 0;
	return true;
}

bool limits_parse(const char *text, struct limits *out, char *why, size_t why_bytes)
{
	uint32_t given = 0;

	memset(out, 0, sizeof(*out));
	for (;; text++) {
		size_t bytes = strcspn(text, ",");

		if (!parse_one(text, bytes, out, &given, why, why_bytes))
			return false;
		text += bytes;
		if (!*text)
			return true;
	}
}

bool limits_parse_unpack(const char *text, struct limits *out, char *why, size_t why_bytes)
{
	if (!strncmp(text, "unpack=", strlen("unpack=")) && !strchr(text, ','))
		return limits_parse(text, out, why, why_bytes);
	snprintf(why, why_bytes, "must be unpack=SIZE, such as unpack=20G; the other limits are those of images");
	return false;
}

void limits_write(const struct limits *l, struct text *out)
{
	const char *before = "limit ";

	for (int i = 0; i < LIMITS; i++)
		if (l->most[i] && i != LIMIT_UNPACK) {
			text_format(out, "%s%s=%" PRIu64, before, limit_help[i].name, l->most[i]);
			before = ",";
		}
	if (before[0] == ',')
		text_add(out, "\n", 1);
}
