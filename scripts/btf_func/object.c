// SPDX-License-Identifier: GPL-2.0
/*
 * The sections and the function symbols of vmlinux or of a module
 *
 * libdwfl gives each section of a module an address and relocates the debug
 * information for them. Only section and offset are kept.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "btf_func.h"

/* The debug information has to be in the file itself. */
static int no_debuginfo(Dwfl_Module *mod, void **userdata, const char *name, Dwarf_Addr base,
			const char *file, const char *link, GElf_Word crc, char **debuginfo)
{
	return -1;
}

static const Dwfl_Callbacks callbacks = {
	.section_address = dwfl_offline_section_address,
	.find_debuginfo = no_debuginfo,
};

int place__cmp(const struct place *a, const struct place *b)
{
	if (a->sec != b->sec)
		return a->sec < b->sec ? -1 : 1;
	if (a->offset != b->offset)
		return a->offset < b->offset ? -1 : 1;
	return 0;
}

static int symbol__cmp(const void *a, const void *b)
{
	const struct symbol *sa = a, *sb = b;

	return place__cmp(&sa->at, &sb->at) ?: strcmp(sa->name, sb->name);
}

/* Convert an address of the debug information. False: it is in no section. */
bool object__place(struct object *obj, Dwarf_Addr addr, struct place *place)
{
	Elf_Scn *scn;
	GElf_Addr bias;

	scn = dwfl_module_address_section(obj->mod, &addr, &bias);
	if (!scn)
		return false;
	place->sec = elf_ndxscn(scn);
	place->offset = addr;
	return true;
}

static GElf_Shdr section_header(struct object *obj, unsigned int sec)
{
	GElf_Shdr shdr;

	if (!gelf_getshdr(elf_getscn(obj->elf, sec), &shdr))
		fatal("%s: section %u: %s", obj->path, sec, elf_errmsg(-1));
	return shdr;
}

const char *object__section_name(struct object *obj, unsigned int sec)
{
	size_t strings;

	if (elf_getshdrstrndx(obj->elf, &strings))
		fatal("%s: %s", obj->path, elf_errmsg(-1));
	return elf_strptr(obj->elf, strings, section_header(obj, sec).sh_name);
}

unsigned int object__section_size(struct object *obj, unsigned int sec)
{
	return section_header(obj, sec).sh_size;
}

/* Return the content of a section, or NULL. */
void *object__section_data(struct object *obj, const char *name, size_t *size)
{
	Elf_Scn *scn = NULL;
	Elf_Data *data;

	while ((scn = elf_nextscn(obj->elf, scn))) {
		if (strcmp(object__section_name(obj, elf_ndxscn(scn)), name))
			continue;
		data = elf_rawdata(scn, NULL);
		if (!data)
			return NULL;
		*size = data->d_size;
		return data->d_buf;
	}
	return NULL;
}

static bool is_text(struct object *obj, size_t sec)
{
	Elf_Scn *scn = sec ? elf_getscn(obj->elf, sec) : NULL;

	return scn && section_header(obj, sec).sh_flags & SHF_EXECINSTR;
}

/* The bytes in front of a function, which CONFIG_CALL_PADDING asks for, have a name. */
static bool is_padding(const char *name)
{
	return !strncmp(name, "__pfx_", 6) || !strncmp(name, "__pi___pfx_", 11);
}

/* Keep what kallsyms may show as a function. */
static void add_symbol(struct object *obj, const GElf_Sym *sym, const char *name)
{
	int type = GELF_ST_TYPE(sym->st_info);
	unsigned int sec = sym->st_shndx;
	GElf_Addr start;

	if (!is_text(obj, sec) || !*name || (type != STT_FUNC && type != STT_NOTYPE) ||
	    is_padding(name))
		return;
	start = section_header(obj, sec).sh_addr;
	/* A module's are relative to their sections, which libdwfl has placed. */
	obj->symbols[obj->nr_symbols++] = (struct symbol){
		.name = name,
		.addr = obj->relocatable ? start + sym->st_value : sym->st_value,
		.at.sec = sec,
		.at.offset = obj->relocatable ? sym->st_value : sym->st_value - start,
	};
}

#define BTF_ID_FUNC	"__BTF_ID__func__"

/*
 * Does BTF_ID(func, NAME) put a function into a set of the kernel? The symbol that this makes
 * ends with a number, after two underscores.
 */
bool object__has_btf_id(struct object *obj, const char *name)
{
	size_t i, len = strlen(name);
	const char *id;

	for (i = 0; i < obj->nr_btf_ids; i++) {
		id = obj->btf_ids[i] + strlen(BTF_ID_FUNC);
		if (!strncmp(id, name, len) && !strncmp(id + len, "__", 2) &&
		    !id[len + 2 + strspn(id + len + 2, "0123456789")])
			return true;
	}
	return false;
}

static int symbol__cmp_name(const void *a, const void *b)
{
	const struct symbol *sa = *(struct symbol **)a, *sb = *(struct symbol **)b;

	return strcmp(sa->name, sb->name) ?: place__cmp(&sa->at, &sb->at);
}

static void mark_ambiguous(struct object *obj)
{
	struct symbol **sorted = xcalloc(obj->nr_symbols, sizeof(*sorted));
	size_t i;

	for (i = 0; i < obj->nr_symbols; i++)
		sorted[i] = &obj->symbols[i];
	qsort(sorted, obj->nr_symbols, sizeof(*sorted), symbol__cmp_name);
	for (i = 1; i < obj->nr_symbols; i++) {
		if (strcmp(sorted[i - 1]->name, sorted[i]->name) ||
		    !place__cmp(&sorted[i - 1]->at, &sorted[i]->at))
			continue;
		sorted[i - 1]->ambiguous = true;
		sorted[i]->ambiguous = true;
	}
	free(sorted);
}

static void read_symbols(struct object *obj)
{
	const char *name;
	Elf_Scn *scn = NULL;
	GElf_Shdr shdr = {};
	Elf_Data *data;
	GElf_Sym sym;
	size_t i, nr;

	while ((scn = elf_nextscn(obj->elf, scn))) {
		shdr = section_header(obj, elf_ndxscn(scn));
		if (shdr.sh_type == SHT_SYMTAB)
			break;
	}
	data = scn ? elf_getdata(scn, NULL) : NULL;
	if (!data)
		fatal("%s: no symbols", obj->path);
	nr = shdr.sh_size / shdr.sh_entsize;
	obj->symbols = xcalloc(nr, sizeof(*obj->symbols));
	obj->btf_ids = xcalloc(nr, sizeof(*obj->btf_ids));
	for (i = 0; i < nr; i++) {
		if (!gelf_getsym(data, i, &sym))
			fatal("%s: symbol %zu: %s", obj->path, i, elf_errmsg(-1));
		name = elf_strptr(obj->elf, shdr.sh_link, sym.st_name);
		if (!name)
			continue;
		add_symbol(obj, &sym, name);
		if (!strncmp(name, BTF_ID_FUNC, strlen(BTF_ID_FUNC)))
			obj->btf_ids[obj->nr_btf_ids++] = name;
	}
	qsort(obj->symbols, obj->nr_symbols, sizeof(*obj->symbols), symbol__cmp);
	mark_ambiguous(obj);
}

void object__open(struct object *obj, const char *path)
{
	GElf_Ehdr ehdr;
	int fd;

	*obj = (struct object){ .path = path };
	fd = open(path, O_RDONLY);
	if (fd < 0)
		fatal("%s: %s", path, strerror(errno));
	obj->dwfl = dwfl_begin(&callbacks);
	if (!obj->dwfl)
		fatal("%s: %s", path, dwfl_errmsg(-1));
	/* The file now belongs to libdwfl. */
	obj->mod = dwfl_report_offline(obj->dwfl, path, path, fd);
	if (!obj->mod || dwfl_report_end(obj->dwfl, NULL, NULL))
		fatal("%s: %s", path, dwfl_errmsg(-1));
	obj->elf = dwfl_module_getelf(obj->mod, &obj->bias);
	if (!obj->elf || !gelf_getehdr(obj->elf, &ehdr))
		fatal("%s: %s", path, dwfl_errmsg(-1));
	obj->relocatable = ehdr.e_type == ET_REL;
	obj->cfi = dwfl_module_dwarf_cfi(obj->mod, &obj->cfi_bias);
	read_symbols(obj);
}

void object__close(struct object *obj)
{
	free(obj->btf_ids);
	free(obj->symbols);
	dwfl_end(obj->dwfl);
}

/* Write a file for gen-btf.sh beside the object. */
void object__write(const struct object *obj, const char *suffix, const void *data, size_t size)
{
	char *path = xmalloc(strlen(obj->path) + strlen(suffix) + 1);
	FILE *file;

	sprintf(path, "%s%s", obj->path, suffix);
	file = fopen(path, "w");
	if (!file || fwrite(data, 1, size, file) != size || fclose(file))
		fatal("%s: %s", path, strerror(errno));
	free(path);
}
