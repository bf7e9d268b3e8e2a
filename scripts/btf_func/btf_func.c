// SPDX-License-Identifier: GPL-2.0
/*
 * Write BTF of the functions that cannot be found by name
 *
 * The kernel knows a function by its address, and so by its symbol. BTF has one FUNC of a
 * name, without an address: it is wrong, or missing, where several functions share the
 * name, where the compiler made a clone with other arguments, and where pahole took
 * another function's prototype, or none. For these this program writes .BTF.func, which is
 * split BTF over the object's .BTF:
 *
 *   FUNC            has the name of the symbol, and a FUNC_PROTO of what is passed.
 *                   "void NAME(...)": nothing is known
 *   DECL_TAG        "file:PATH"     the source file, where the name is ambiguous, or
 *                                   another file begins
 *                   "removed:NAME"  a parameter that is not passed, or in pieces
 *   LOC_PROTO       where the arguments are, if the compiler changed them; the return
 *                   value is not known then
 *   LOCSEC          which FUNC is at which address, sorted by both
 *
 * A function without an entry has the FUNC of its exact name in .BTF. That holds for
 * each because this program checks each, as it does again with --verify in the linked
 * file.
 */
#include <errno.h>
#include <getopt.h>
#include <string.h>

#include <bpf/libbpf.h>

#include <array_size.h>

#include "btf_func.h"

bool verbose;

/* What is removed from the front of source files' paths */
const char *source_dirs[8];

static const char usage[] =
	"Usage: btf_func [--btf FILE] [--btf_base FILE] [--source_dir DIR]... ELF\n"
	"       btf_func --verify [--btf_base FILE] ELF\n"
	"\n"
	"Write ELF.BTF.func for vmlinux or a module, or check this section of ELF.\n"
	"\n"
	"  --btf FILE       final BTF of ELF, if its section .BTF is not there yet\n"
	"  --btf_base FILE  vmlinux, if ELF is a module\n"
	"  --source_dir DIR source files are named relative to it\n"
	"  --verify         compare what the kernel will find with the debug information\n"
	"  --without-index  with --verify: as a kernel that only has .BTF\n"
	"  --verbose        print the result, and each mismatch of --without-index\n";

static struct btf *load_btf(const char *path, struct btf *base)
{
	struct btf *btf = base ? btf__parse_split(path, base) : btf__parse(path, NULL);
	char error[128];

	if (!btf) {
		libbpf_strerror(errno, error, sizeof(error));
		fatal("%s: no BTF: %s", path, error);
	}
	return btf;
}

static struct btf *load_func_btf(struct object *obj, struct btf *base)
{
	struct btf *btf;
	size_t size;
	void *data;

	data = object__section_data(obj, ".BTF.func", &size);
	if (!data)
		fatal("%s: no section .BTF.func", obj->path);
	btf = btf__new_split(data, size, base);
	if (!btf)
		fatal("%s: .BTF.func: %s", obj->path, strerror(errno));
	return btf;
}

/* Readers that do not know the kinds for locations can pass over them. */
static struct btf *new_func_btf(struct btf *base)
{
	LIBBPF_OPTS(btf_new_opts, opts, .base_btf = base, .add_layout = true);

	return btf__new_empty_opts(&opts);
}

struct options {
	const char *btf;
	const char *base;
	bool verify;
	bool without_index;
};

static int run(const struct options *options, const char *path)
{
	struct btf *base, *btf, *func_btf;
	struct functions functions;
	struct index index = {};
	struct object obj;
	struct types types;
	int wrong = 0;

	base = options->base ? load_btf(options->base, NULL) : NULL;
	btf = load_btf(options->btf ?: path, base);
	object__open(&obj, path);
	functions__read(&functions, &obj);

	if (options->verify && !options->without_index)
		func_btf = load_func_btf(&obj, btf);
	else
		func_btf = new_func_btf(btf);
	if (!func_btf)
		fatal("%s: %s", path, strerror(errno));
	types__init(&types, func_btf);

	if (options->verify) {
		if (!options->without_index)
			index__read(&index, &obj, func_btf);
	} else {
		generate(&obj, &functions, &types, &index);
		index__write(&index, &obj, func_btf);
	}
	wrong = verify(&obj, &functions, &types, &index,
		       !options->without_index || verbose, options->verify || verbose);

	types__free(&types);
	btf__free(func_btf);
	free(index.entries);
	functions__free(&functions);
	object__close(&obj);
	btf__free(btf);
	btf__free(base);
	return wrong && !options->without_index;
}

int main(int argc, char **argv)
{
	static const struct option longopts[] = {
		{ "btf", required_argument, NULL, 'b' },
		{ "btf_base", required_argument, NULL, 'B' },
		{ "source_dir", required_argument, NULL, 's' },
		{ "verify", no_argument, NULL, 'V' },
		{ "without-index", no_argument, NULL, 'w' },
		{ "verbose", no_argument, NULL, 'v' },
		{ "help", no_argument, NULL, 'h' },
		{},
	};
	struct options options = {};
	int opt, nr_dirs = 0;

	while ((opt = getopt_long(argc, argv, "vh", longopts, NULL)) != -1) {
		switch (opt) {
		case 'b':
			options.btf = optarg;
			break;
		case 'B':
			options.base = optarg;
			break;
		case 's':
			if (nr_dirs == ARRAY_SIZE(source_dirs) - 1)
				fatal("more than %d --source_dir", nr_dirs);
			source_dirs[nr_dirs++] = optarg;
			break;
		case 'V':
			options.verify = true;
			break;
		case 'w':
			options.without_index = true;
			break;
		case 'v':
			verbose = true;
			break;
		case 'h':
			fputs(usage, stdout);
			return 0;
		default:
			fputs(usage, stderr);
			return 1;
		}
	}
	if (optind + 1 != argc) {
		fputs(usage, stderr);
		return 1;
	}
	libbpf_set_print(NULL);
	return run(&options, argv[optind]);
}
