/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli_args.c - the arguments of a verb's function, and questions to them
 */
#include "tools/common/cli_args.h"

#include <assert.h>
#include <stdarg.h>
#include <string.h>

#include "tools/common/exit_code.h"

int cli_misuse(const struct cli_args *args, const char *fmt, ...)
{
	const char *verb = args->verb ? args->verb->name : "";
	char text[2048];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	fail(EXIT_USAGE, "%s", text);
	hint("try '%s%s%s --help'", args->program->name, verb[0] ? " " : "", verb);
	return EXIT_USAGE;
}

bool cli_given(const struct cli_args *args, const char *name)
{
	const struct cli_option *positional = args->verb->positionals;
	struct cli_flat flat;

	cli_flatten(args->verb, &flat);
	for (unsigned i = 0; i < flat.count; i++)
		if (!strcmp(flat.option[i]->name, name))
			return args->given >> i & 1;
	for (unsigned i = flat.count; positional && positional->name; i++, positional++)
		if (!strcmp(positional->name, name))
			return args->given >> i & 1;
	assert(!"the name is in the verb's tables");
	return false;
}
