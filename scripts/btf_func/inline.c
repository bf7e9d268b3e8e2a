// SPDX-License-Identifier: GPL-2.0
/*
 * Where functions were inlined, and where their parameters are there
 *
 * The DIE of a function that was inlined has no address, and parameters without locations.
 * Where it was inlined, there is a DIE that refers to it, with the address of the first
 * instruction and with those parameters of which something is known. So each place has its
 * own LOC_PROTO. The FUNC is the source's: that of .BTF, or a new one if .BTF has none, or has
 * another function of this name.
 */
#include <string.h>

#include "btf_func.h"

/* What the debug information says of the source's function */
static void origin_of(Dwarf_Die *die, Dwarf_Die *origin)
{
	Dwarf_Attribute attr;

	*origin = *die;
	while (dwarf_attr(origin, DW_AT_abstract_origin, &attr) &&
	       dwarf_formref_die(&attr, origin))
		;
}

/* Code that is gone when somebody asks for it, or that cannot be told from its section's */
static bool is_kept(struct object *obj, const struct place *at)
{
	const char *section = object__section_name(obj, at->sec);

	return strcmp(section, ".init.text") && strcmp(section, ".exit.text");
}

static void add_site(struct sites *sites, const struct site *site)
{
	/* A power of two is full. */
	if (!(sites->nr & (sites->nr - 1)))
		sites->all = xrealloc(sites->all, (sites->nr ? sites->nr * 2 : 1) *
				      sizeof(*sites->all));
	sites->all[sites->nr++] = *site;
}

/*
 * The compiler may split a function, and inline the second part into the first. That is in the
 * debug information as a call of the function by itself, from the line where it is declared. A
 * real call of itself is on another line.
 */
static bool is_own_part(Dwarf_Die *die, Dwarf_Die *inside)
{
	Dwarf_Word line = die__udata(die, DW_AT_call_line, 0);
	Dwarf_Die origin, outer;

	origin_of(die, &origin);
	origin_of(inside, &outer);
	return line && dwarf_dieoffset(&origin) == dwarf_dieoffset(&outer) &&
	       line == die__udata(&origin, DW_AT_decl_line, 0) &&
	       die__udata(die, DW_AT_call_file, 0) == die__udata(&origin, DW_AT_decl_file, 0);
}

static void read_site(struct sites *sites, struct object *obj, struct function *func,
		      Dwarf_Die *die)
{
	struct site site = { .obj = obj, .func = &func->die, .die = *die };

	if (dwarf_entrypc(die, &site.pc) || !object__place(obj, site.pc, &site.at)) {
		sites->nr_without_address++;
		return;
	}
	origin_of(die, &site.origin);
	if (is_kept(obj, &site.at) && dwarf_diename(&site.origin))
		add_site(sites, &site);
}

/*
 * What was inlined may have been inlined into what was inlined.
 * @inside: the function, also an inlined one, whose code @parent is
 */
static void read_sites(struct sites *sites, struct object *obj, struct function *func,
		       Dwarf_Die *parent, Dwarf_Die *inside)
{
	Dwarf_Die child;

	if (dwarf_child(parent, &child))
		return;
	do {
		switch (dwarf_tag(&child)) {
		case DW_TAG_inlined_subroutine:
			if (!is_own_part(&child, inside))
				read_site(sites, obj, func, &child);
			read_sites(sites, obj, func, &child, &child);
			break;
		case DW_TAG_lexical_block:
			read_sites(sites, obj, func, &child, inside);
			break;
		}
	} while (!dwarf_siblingof(&child, &child));
}

static int die__cmp(const Dwarf_Die *a, const Dwarf_Die *b)
{
	Dwarf_Off oa = dwarf_dieoffset((Dwarf_Die *)a), ob = dwarf_dieoffset((Dwarf_Die *)b);

	return oa < ob ? -1 : oa > ob;
}

/* Those of one function are next to each other, and always in the same order. */
static int site__cmp(const void *a, const void *b)
{
	const struct site *sa = a, *sb = b;

	return die__cmp(&sa->origin, &sb->origin) ?: place__cmp(&sa->at, &sb->at) ?:
	       die__cmp(&sa->die, &sb->die);
}

void sites__read(struct sites *sites, struct object *obj, struct functions *functions)
{
	size_t i;

	*sites = (struct sites){};
	for (i = 0; i < functions->nr_code; i++)
		read_sites(sites, obj, &functions->all[i], &functions->all[i].die,
			   &functions->all[i].die);
	qsort(sites->all, sites->nr, sizeof(*sites->all), site__cmp);
}

/* The FUNC of a function, which is added if BTF does not have this one */
static unsigned int func_of(struct types *types, Dwarf_Die *origin)
{
	const char *name = dwarf_diename(origin);
	struct proto proto = {};
	unsigned int id;

	proto__read_source(&proto, origin);
	id = types__find_func(types, &proto, name) ?:
	     types__add_func(types, &proto, name, NULL);
	proto__free(&proto);
	return id;
}

/* Find what is known of a parameter of the source's function where that was inlined. */
static bool find_param(Dwarf_Die *site, Dwarf_Die *want, Dwarf_Die *param)
{
	Dwarf_Die origin;

	for_each_child(site, param, DW_TAG_formal_parameter) {
		origin_of(param, &origin);
		if (dwarf_dieoffset(&origin) == dwarf_dieoffset(want))
			return true;
	}
	return false;
}

static unsigned int locations_of(struct sites *sites, struct types *types, struct site *site)
{
	unsigned int nr = 0, known = 0;
	Dwarf_Die want, die;
	struct param param;
	int ids[MAX_PARAMS];

	if (die__count(&site->origin, DW_TAG_formal_parameter) >= MAX_PARAMS)
		return 0;
	for_each_child(&site->origin, &want, DW_TAG_formal_parameter) {
		ids[nr] = 0;
		if (find_param(&site->die, &want, &die) && param__at(&param, site, &die)) {
			ids[nr] = types__add_param(types, &param);
			known++;
		}
		nr++;
	}
	sites->nr_params += nr;
	sites->nr_known += known;
	if (known == nr)
		sites->nr_all++;
	else if (!known)
		sites->nr_none++;
	if (die__count(&site->origin, DW_TAG_unspecified_parameters))
		ids[nr++] = 0;
	return types__add_loc_proto(types, ids, nr);
}

/* Make the entries of all sites, in the order of a LOCSEC. */
void sites__generate(struct sites *sites, struct types *types, struct index *index)
{
	unsigned int func = 0;
	struct site *site;

	for (site = sites->all; site < sites->all + sites->nr; site++) {
		if (site == sites->all || die__cmp(&site->origin, &site[-1].origin))
			func = func_of(types, &site->origin);
		index__add(index, &site->at, func, locations_of(sites, types, site));
	}
	index__sort(index);
}

void sites__free(struct sites *sites)
{
	free(sites->all);
}

void sites__print(const struct sites *sites, const struct object *obj)
{
	printf("%s: %zu places where a function was inlined; all parameters known: %zu, none: %zu; "
	       "parameters: %zu, known: %zu; without an address: %zu\n", obj->path, sites->nr,
	       sites->nr_all, sites->nr_none, sites->nr_params, sites->nr_known,
	       sites->nr_without_address);
}
