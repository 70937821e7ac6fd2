/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decode_versions.c - names and versions of the libraries that decode
 */
#include "tools/shardpack/images/decode_versions.h"

#include <stdio.h>

#include <jpeglib.h>
#include <png.h>
#include <webp/decode.h>

#define TEXT(x)	   #x
#define TEXT_OF(x) TEXT(x)

const char *decoder_jpeg_version(void)
{
#ifdef LIBJPEG_TURBO_VERSION
	return "libjpeg-turbo " TEXT_OF(LIBJPEG_TURBO_VERSION);
#else
	return "libjpeg " TEXT_OF(JPEG_LIB_VERSION);
#endif
}

const char *decoder_png_version(void)
{
	return "libpng " PNG_LIBPNG_VER_STRING;
}

const char *decoder_webp_version(void)
{
	static char text[32]; /* every thread writes the same */
	int version = WebPGetDecoderVersion();

	snprintf(text, sizeof(text), "libwebp %d.%d.%d", version >> 16, version >> 8 & 255, version & 255);
	return text;
}
