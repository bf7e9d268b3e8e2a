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
 *
 * With --inline it writes .BTF.inline instead, also split BTF over the object's .BTF: where
 * functions were inlined, and where their parameters are there. A FUNC in it is the
 * source's function, with all its parameters.
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
	"Usage: btf_func [--inline] [--btf FILE] [--btf_base FILE] [--source_dir DIR]... ELF\n"
	"       btf_func [--inline] --verify [--btf_base FILE] ELF\n"
	"\n"
	"Write ELF.BTF.func or ELF.BTF.inline for vmlinux or a module, or check this section\n"
	"of ELF.\n"
	"\n"
	"  --inline         where functions were inlined, .BTF.inline\n"
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
static struct btf *new_btf(struct btf *base)
{
	LIBBPF_OPTS(btf_new_opts, opts, .base_btf = base, .add_layout = true);
	struct btf *btf = btf__new_empty_opts(&opts);

	if (!btf)
		fatal("no memory for BTF");
	return btf;
}

static const void *raw_data(const struct btf *btf, unsigned int *size)
{
	const void *data = btf__raw_data(btf, size);

	if (!data)
		fatal("no memory for BTF");
	return data;
}

struct options {
	const char *btf;
	const char *base;
	bool inlined;
	bool verify;
	bool without_index;
};

/* Return how many functions would be found with a wrong prototype. */
static int run_func(const struct options *options, struct object *obj, struct btf *btf,
		    struct functions *functions)
{
	bool read = options->verify && !options->without_index;
	struct btf *func_btf = read ? load_func_btf(obj, btf) : new_btf(btf);
	struct index index = {};
	struct types types;
	unsigned int size;
	const void *data;
	int wrong;

	types__init(&types, func_btf);
	if (read)
		index__read(&index, obj, func_btf);
	if (!options->verify) {
		generate(obj, functions, &types, &index);
		if (index__add_sections(&index, obj, func_btf, KIND_FUNC)) {
			data = raw_data(func_btf, &size);
			object__write(obj, ".BTF.func", data, size);
		}
	}
	wrong = verify(obj, functions, &types, &index, !options->without_index || verbose,
		       options->verify || verbose);
	types__free(&types);
	btf__free(func_btf);
	free(index.entries);
	return options->without_index ? 0 : wrong;
}

/* Return whether the section is another one than the debug information makes. */
static int run_inline(const struct options *options, struct object *obj, struct btf *btf,
		      struct functions *functions)
{
	struct btf *inline_btf = new_btf(btf);
	struct index index = {};
	unsigned int size = 0;
	const void *data = NULL;
	struct sites sites;
	struct types types;
	int wrong = 0;

	types__init(&types, inline_btf);
	sites__read(&sites, obj, functions);
	sites__generate(&sites, &types, &index);
	if (index__add_sections(&index, obj, inline_btf, KIND_INLINE))
		data = raw_data(inline_btf, &size);
	if (options->verify)
		wrong = verify_inline(obj, &sites, data, size);
	else if (data)
		object__write(obj, ".BTF.inline", data, size);
	if (options->verify || verbose)
		sites__print(&sites, obj);
	types__free(&types);
	btf__free(inline_btf);
	free(index.entries);
	sites__free(&sites);
	return wrong;
}

static int run(const struct options *options, const char *path)
{
	struct btf *base = options->base ? load_btf(options->base, NULL) : NULL;
	struct btf *btf = load_btf(options->btf ?: path, base);
	struct functions functions;
	struct object obj;
	int wrong;

	object__open(&obj, path);
	functions__read(&functions, &obj);
	if (options->inlined)
		wrong = run_inline(options, &obj, btf, &functions);
	else
		wrong = run_func(options, &obj, btf, &functions);
	functions__free(&functions);
	object__close(&obj);
	btf__free(btf);
	btf__free(base);
	return wrong;
}

int main(int argc, char **argv)
{
	static const struct option longopts[] = {
		{ "btf", required_argument, NULL, 'b' },
		{ "btf_base", required_argument, NULL, 'B' },
		{ "source_dir", required_argument, NULL, 's' },
		{ "inline", no_argument, NULL, 'i' },
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
		case 'i':
			options.inlined = true;
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
	return run(&options, argv[optind]) != 0;
}
