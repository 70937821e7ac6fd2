/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dump_jpeg_warnings.c - what libjpeg itself says of files
 *
 * For each path on stdin one line: every warning and the error, in order, each with what was being read ("head" or
 * "scan") and separated by tabs; an empty line if there was nothing to say.  Nothing of the converter is used: it is
 * for pillow_mutants.py, which asks whether the converter had a reason.
 */
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>

struct reader {
	struct jpeg_decompress_struct cinfo;
	struct jpeg_error_mgr errors;
	jmp_buf failed;
	const char *phase;
};

static void say(struct reader *r)
{
	char text[JMSG_LENGTH_MAX];

	r->errors.format_message((j_common_ptr)&r->cinfo, text);
	printf("%s: %s\t", r->phase, text);
}

static void on_error(j_common_ptr cinfo)
{
	struct reader *r = cinfo->client_data;

	say(r);
	longjmp(r->failed, 1);
}

static void on_message(j_common_ptr cinfo, int level)
{
	if (level < 0)
		say(cinfo->client_data);
}

static void read_all(struct reader *r, FILE *f)
{
	JSAMPARRAY row;

	jpeg_create_decompress(&r->cinfo);
	jpeg_stdio_src(&r->cinfo, f);
	jpeg_read_header(&r->cinfo, TRUE);
	r->phase = "scan";
	jpeg_start_decompress(&r->cinfo);
	row = r->cinfo.mem->alloc_sarray((j_common_ptr)&r->cinfo, JPOOL_IMAGE,
					 r->cinfo.output_width * (JDIMENSION)r->cinfo.output_components, 1);
	while (r->cinfo.output_scanline < r->cinfo.output_height)
		jpeg_read_scanlines(&r->cinfo, row, 1);
	jpeg_finish_decompress(&r->cinfo);
}

static void dump(const char *path)
{
	struct reader r = {.phase = "head"};
	FILE *f = fopen(path, "rb");

	if (!f) {
		printf("cannot be opened\t\n");
		return;
	}
	r.cinfo.err = jpeg_std_error(&r.errors);
	r.cinfo.client_data = &r;
	r.errors.error_exit = on_error;
	r.errors.emit_message = on_message;
	if (!setjmp(r.failed))
		read_all(&r, f);
	putchar('\n');
	jpeg_destroy_decompress(&r.cinfo);
	fclose(f);
}

int main(void)
{
	char path[4096];

	while (fgets(path, sizeof(path), stdin)) {
		path[strcspn(path, "\n")] = 0;
		dump(path);
	}
	return 0;
}
