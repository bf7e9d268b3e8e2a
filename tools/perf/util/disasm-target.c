// SPDX-License-Identifier: GPL-2.0
/*
 * Which function does an instruction refer to? The maps are those at the end of the
 * recording: for code that was generated and may be gone by then, an address in them is
 * no answer. No name is better than a wrong one.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "bpf-code.h"
#include "bpf-event.h"
#include "bpf-loads.h"
#include "disasm.h"
#include "dso.h"
#include "machine.h"
#include "map.h"
#include "map_symbol.h"
#include "maps.h"
#include "symbol.h"
#include "thread.h"

static bool map__is_live_bpf_image(struct map *map)
{
	struct map *now = maps__find(map__kmaps(map), map__start(map));
	bool live = __map__is_bpf_image(map) && RC_CHK_EQUAL(now, map);

	map__put(now);
	return live;
}

/* Was @target the text at its address when @map was? See map__bpf_target_name(). */
static bool map__is_valid_target(struct map *map, const struct map *target)
{
	return map__is_live_bpf_image(map) ||
	       (!__map__is_bpf_prog(target) && !__map__is_bpf_image(target));
}

char *code_name_at(const char *name, u64 offset)
{
	char *at;

	if (offset == 0)
		return strdup(name);
	return asprintf(&at, "%s+%#" PRIx64, name, offset) < 0 ? NULL : at;
}

/*
 * The maps are those at the end of the recording. By then the program may be unloaded,
 * and another one may have its address. So the names of its own functions come from its
 * program info, and a target in another program has no name. Helpers and kfuncs stay
 * where they are, and the maps have their names.
 *
 * If the map of an image still exists, the programs that it calls are still loaded.
 */
char *map__bpf_target_name(struct map *map, u64 addr)
{
	char *name = dso__bpf_func_name(map__dso(map), addr);
	struct map *target = NULL;
	struct symbol *sym;
	u64 offset;

	if (name)
		return name;

	sym = maps__find_symbol(map__kmaps(map), addr, &target);
	if (sym && map__is_valid_target(map, target)) {
		offset = map__map_ip(target, addr) - sym->start;
		name = code_name_at(sym->name, offset);
	}
	map__put(target);
	return name;
}

static bool map_symbol__find_kernel_target(const struct map_symbol *ms, u64 addr,
					   struct map_symbol *target)
{
	if (dso__is_generated(map__dso(ms->map)) && map__find_bpf_callee(ms->map, addr, target))
		return true;

	target->sym = maps__find_symbol(map__kmaps(ms->map), addr, &target->map);
	if (!target->sym)
		return false;
	if (RC_CHK_EQUAL(target->map, ms->map))
		return true;
	return map__is_valid_target(ms->map, target->map) &&
	       (!dso__is_generated(map__dso(ms->map)) ||
		map__map_ip(target->map, addr) == target->sym->start);
}

static bool map_symbol__find_user_target(const struct map_symbol *ms, u64 addr,
					 struct map_symbol *target)
{
	struct addr_map_symbol ams = {
		.ms = { .map = map__get(ms->map), },
		.addr = addr,
	};
	bool found = maps__find_ams(thread__maps(ms->thread), &ams) == 0;

	*target = ams.ms;
	return found;
}

bool map_symbol__find_target(const struct map_symbol *ms, u64 addr, struct map_symbol *target)
{
	u64 mem = map__objdump_2mem(ms->map, addr);
	bool found;

	if (dso__kernel(map__dso(ms->map)) == DSO_SPACE__USER)
		found = map_symbol__find_user_target(ms, mem, target);
	else
		found = map_symbol__find_kernel_target(ms, mem, target);

	if (found && !dso__is_generated(map__dso(ms->map)))
		found = map__rip_2objdump(target->map, map__map_ip(target->map, mem)) == addr;
	if (!found) {
		map_symbol__exit(target);
		*target = (struct map_symbol) {};
	}
	return found;
}
