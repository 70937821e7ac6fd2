/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decode_versions.h - names and versions of the libraries that decode, for --version and for
 * provenance
 */
#ifndef SHARD_DECODE_DECODE_VERSIONS_H
#define SHARD_DECODE_DECODE_VERSIONS_H

const char *decoder_jpeg_version(void);
const char *decoder_png_version(void);
const char *decoder_webp_version(void);

#endif
