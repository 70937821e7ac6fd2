/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_pack_exif.c - any bytes as an image file that states its orientation, in EXIF or in XMP
 *
 * What comes out is an orientation, whatever the bytes are, and the same one each time.
 */
#include "tests/fuzz/fuzz.h"
#include "tools/shardpack/images/images.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	for (int rules = EXIF_RULES_PILLOW_12; rules <= EXIF_RULES_PILLOW_13; rules++) {
		uint32_t stated = 99, again = 98;

		must(image_stated(data, size, (enum exif_rules)rules, &stated), "out of memory");
		must(stated <= 8, "an orientation above 8");
		must(image_stated(data, size, (enum exif_rules)rules, &again) && again == stated, "another answer");
	}
	return 0;
}
