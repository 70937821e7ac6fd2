/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decode.h - the bytes of an image file to RGB or the values of a mask, or a sentence that says why
 * not
 *
 * The pixels are those of Pillow's Image.open(...).convert("RGB") with libjpeg-turbo: alpha
 * is dropped, palettes and gray are expanded, CMYK is converted as Pillow does, colour
 * profiles and the EXIF orientation are ignored.  Content decides, never a file's name.
 *
 * Unlike Pillow this is strict.  A decoder that warns of damage has invented pixels, so a damaged
 * or shortened file is bad input, unless it is a JPEG and of a damage that was to be accepted.  A
 * verdict is a function of the bytes and the options alone: not of the images before, the thread,
 * or the memory that was free.
 */
#ifndef SHARD_DECODE_DECODE_H
#define SHARD_DECODE_DECODE_H

#include "tools/shardpack/images/decode_options.h"
#include "tools/shardpack/images/decode_verdict.h"
#include "tools/shardpack/images/image.h"
#include "tools/shardpack/images/mask_codes.h"

/* One per thread. */
struct decoder;

/* `opt` may be NULL.  NULL when memory ran out. */
struct decoder *decoder_open(const struct decode_options *opt);
void decoder_close(struct decoder *d);

/*
 * The wanted part of an image, row by row.  The verdict is on the whole file: unwanted parts are
 * read as well.
 */
enum decode_status decoder_stream(struct decoder *d, const void *bytes, size_t size, const struct image_sink *sink,
				  struct decode_verdict *v);

/*
 * The same with 16 bits a sample, in the order of bytes of this machine: 6 bytes a pixel.  Read are
 * PNG and TIFF that have 16 bits, gray and RGB; alpha is dropped.  Others are bad input, since 8
 * bits could mean x or 257 x.
 */
enum decode_status decoder_stream_wide(struct decoder *d, const void *bytes, size_t size, const struct image_sink *sink,
				       struct decode_verdict *v);

/*
 * The same of a mask: one byte for each pixel, which is not a colour but a value.  The values are
 * those of NumPy's asarray(Image.open(...)) with Pillow: the indices of a palette, whatever it
 * looks like and wherever it ends; the samples of gray, of 1 bit 0 and 1, of 2 and 4 bits, and of a
 * PGM that ends below 255, scaled to 255; those of 16 bits where none of them is above 255 (a PGM
 * must say 65535, or Pillow scales it).  Read are PNG, BMP and PGM.  More channels, animations and
 * lossy files are bad input.
 */
enum decode_status decoder_mask(struct decoder *d, const void *bytes, size_t size, const struct image_sink *sink,
				struct decode_verdict *v);

/*
 * The same of a mask whose pixels are classes by a map, or ids of more than 8 bits: the sink gets
 * codes->sample_bytes for each.  Colours are read as well.
 */
enum decode_status decoder_coded_mask(struct decoder *d, const struct mask_codes *codes, const void *bytes, size_t size,
				      const struct image_sink *sink, struct decode_verdict *v);

#endif
