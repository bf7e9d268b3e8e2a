// SPDX-License-Identifier: GPL-2.0
/*
 * The BPF programs of samples in CTF.
 *
 * CTF of perf.data has addresses. Those of BPF functions mean nothing without the
 * recording, so a sample also has, if the recording has BPF programs:
 *
 *	perf_bpf = { prog_id = 1, prog = "meter", tag = "1111111111111111",
 *		     func = "bpf_prog_1211111111111111_hash", srcline = "src/flow.c:22" }
 *	perf_bpf_callchain_size = 2
 *	perf_bpf_callchain = [ { index = 1, prog_id = 1, ... }, { index = 2, ... } ]
 *
 * perf_bpf is of perf_ip, with prog_id 0 and empty strings if that is not in a BPF
 * program: CTF has no optional fields. perf_bpf_callchain has the frames that are,
 * each with its place in perf_callchain.
 */
#include "ctf-bpf.h"
#include "bpf-lines.h"
#include "bpf-prog.h"
#include "data.h"
#include "debug.h"
#include "dso.h"
#include "env.h"
#include "evsel.h"
#include "machine.h"
#include "map.h"
#include "maps.h"
#include "sample.h"
#include "session.h"
#include "string2.h"
#include "symbol.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <babeltrace2-ctf-writer/event.h>
#include <babeltrace2-ctf-writer/event-fields.h>
#include <babeltrace2-ctf-writer/event-types.h>

static const char * const string_fields[] = { "prog", "tag", "func", "srcline" };

/**
 * ctf_bpf__is_needed - is anything to be told of BPF programs?
 * @session: what is converted
 *
 * Of a pipe it is not known when the types are written, which are then there.
 */
bool ctf_bpf__is_needed(struct perf_session *session)
{
	return perf_data__is_pipe(session->data) ||
	       perf_session__env(session)->bpf_progs.infos_cnt;
}

/* 0 or -ENOMEM. Takes the reference to @type, which may be NULL. */
static int add_field_type(struct bt_ctf_field_type *parent, struct bt_ctf_field_type *type,
			  const char *name)
{
	int ret = type ? bt_ctf_field_type_structure_add_field(parent, type, name) : -1;

	bt_ctf_field_type_put(type);
	return ret ? -ENOMEM : 0;
}

/* The type of perf_bpf, or of an element of perf_bpf_callchain. NULL: no memory. */
static struct bt_ctf_field_type *create_frame_type(bool has_index)
{
	struct bt_ctf_field_type *type = bt_ctf_field_type_structure_create();
	int ret = type ? 0 : -ENOMEM;

	if (!ret && has_index)
		ret = add_field_type(type, bt_ctf_field_type_integer_create(32), "index");
	if (!ret)
		ret = add_field_type(type, bt_ctf_field_type_integer_create(32), "prog_id");
	for (size_t i = 0; i < ARRAY_SIZE(string_fields) && !ret; i++)
		ret = add_field_type(type, bt_ctf_field_type_string_create(), string_fields[i]);
	if (ret) {
		bt_ctf_field_type_put(type);
		return NULL;
	}
	return type;
}

/* 0 or -ENOMEM. Takes the reference to @type, which may be NULL. */
static int add_payload_type(struct bt_ctf_event_class *event_class,
			    struct bt_ctf_field_type *type, const char *name)
{
	int ret = type ? bt_ctf_event_class_add_field(event_class, type, name) : -1;

	bt_ctf_field_type_put(type);
	return ret ? -ENOMEM : 0;
}

/**
 * ctf_bpf__add_types - declare the fields of an event
 * @event_class: of the event
 * @has_callchain: its samples have call chains
 *
 * Return: 0 or -ENOMEM.
 */
int ctf_bpf__add_types(struct bt_ctf_event_class *event_class, bool has_callchain)
{
	struct bt_ctf_field_type *frame, *sequence;
	int ret = add_payload_type(event_class, create_frame_type(false), "perf_bpf");

	if (ret || !has_callchain)
		return ret;

	ret = add_payload_type(event_class, bt_ctf_field_type_integer_create(32),
			       "perf_bpf_callchain_size");
	if (ret)
		return ret;

	frame = create_frame_type(true);
	if (!frame)
		return -ENOMEM;
	sequence = bt_ctf_field_type_sequence_create(frame, "perf_bpf_callchain_size");
	bt_ctf_field_type_put(frame);
	return add_payload_type(event_class, sequence, "perf_bpf_callchain");
}

/* Takes the reference to @field. */
static int set_integer(struct bt_ctf_field *field, u32 value)
{
	int ret = field ? bt_ctf_field_integer_unsigned_set_value(field, value) : -1;

	bt_ctf_field_put(field);
	return ret ? -ENOMEM : 0;
}

/* The same. @string comes from a file, which may be crafted. */
static int set_string(struct bt_ctf_field *field, const char *string)
{
	char *copy = strdup(string);
	int ret = -1;

	if (field && copy)
		ret = bt_ctf_field_string_set_value(field, strreplace_controls(copy));
	free(copy);
	bt_ctf_field_put(field);
	return ret ? -ENOMEM : 0;
}

static struct bt_ctf_field *member(struct bt_ctf_field *frame, const char *name)
{
	return bt_ctf_field_structure_get_field_by_name(frame, name);
}

/* What is known of an address: @map is that of a function of a known program. */
static int set_frame(struct bt_ctf_field *frame, struct map *map, u64 addr)
{
	struct dso *dso = map__dso(map);
	const struct bpf_line *line = dso__bpf_line(dso, addr);
	struct symbol *sym = map__find_symbol(map, map__map_ip(map, addr));
	char name[BPF_PROG_NAME_SIZE], tag[BPF_PROG_TAG_SIZE];
	char *srcline = NULL;
	struct bpf_prog prog;
	int ret;

	if (!dso__find_bpf_prog(dso, &prog) ||
	    (line && asprintf(&srcline, "%s:%u", line->file, line->line) < 0))
		return -ENOMEM;

	dso__get_bpf_prog_name(dso, name, sizeof(name));
	bpf_prog__get_tag(&prog, tag);
	ret = set_integer(member(frame, "prog_id"), prog.id) ?:
	      set_string(member(frame, "prog"), name) ?:
	      set_string(member(frame, "tag"), tag) ?:
	      set_string(member(frame, "func"), sym ? sym->name : "") ?:
	      set_string(member(frame, "srcline"), srcline ?: "");
	free(srcline);
	return ret;
}

static int set_no_frame(struct bt_ctf_field *frame)
{
	int ret = set_integer(member(frame, "prog_id"), 0);

	for (size_t i = 0; i < ARRAY_SIZE(string_fields) && !ret; i++)
		ret = set_string(member(frame, string_fields[i]), "");
	return ret;
}

/* Return: the map of a function of a known program, or NULL; map__put() it. */
static struct map *find_bpf_map(struct machine *machine, u64 addr)
{
	struct map *map = maps__find(machine__kernel_maps(machine), addr);
	struct bpf_prog prog;

	if (map && !dso__find_bpf_prog(map__dso(map), &prog)) {
		map__put(map);
		map = NULL;
	}
	return map;
}

static struct bt_ctf_field *create_payload(struct bt_ctf_event_class *event_class,
					   const char *name)
{
	struct bt_ctf_field_type *type = bt_ctf_event_class_get_field_by_name(event_class, name);
	struct bt_ctf_field *field = type ? bt_ctf_field_create(type) : NULL;

	bt_ctf_field_type_put(type);
	return field;
}

static int add_leaf(struct bt_ctf_event_class *event_class, struct bt_ctf_event *event,
		    struct perf_sample *sample, struct machine *machine)
{
	struct bt_ctf_field *frame = create_payload(event_class, "perf_bpf");
	struct map *map = NULL;
	int ret = -ENOMEM;

	if (sample->cpumode == PERF_RECORD_MISC_KERNEL)
		map = find_bpf_map(machine, sample->ip);
	if (frame)
		ret = map ? set_frame(frame, map, sample->ip) : set_no_frame(frame);
	if (!ret && bt_ctf_event_set_payload(event, "perf_bpf", frame))
		ret = -ENOMEM;
	map__put(map);
	bt_ctf_field_put(frame);
	return ret;
}

/*
 * Set the BPF frames of a call chain, or count them if @sequence is NULL.
 *
 * An address is where a call returns to, the line is that of the call, but for the
 * first, which is the sampled one.
 */
static int set_bpf_frames(struct ip_callchain *chain, struct machine *machine,
			  struct bt_ctf_field *sequence)
{
	bool is_kernel = false, is_leaf = true;
	int ret = 0, count = 0;

	for (u64 i = 0; chain && i < chain->nr && !ret; i++) {
		u64 addr = chain->ips[i];
		struct bt_ctf_field *frame;
		struct map *map;

		if (addr >= PERF_CONTEXT_MAX) {
			is_kernel = addr == PERF_CONTEXT_KERNEL;
			continue;
		}
		if (!is_leaf)
			addr--;
		is_leaf = false;
		map = is_kernel ? find_bpf_map(machine, addr) : NULL;
		if (!map)
			continue;
		if (sequence) {
			frame = bt_ctf_field_sequence_get_field(sequence, count);
			ret = !frame ? -ENOMEM : set_integer(member(frame, "index"), i) ?:
						 set_frame(frame, map, addr);
			bt_ctf_field_put(frame);
		}
		count++;
		map__put(map);
	}
	return ret ?: count;
}

static int add_callchain(struct bt_ctf_event_class *event_class, struct bt_ctf_event *event,
			 struct perf_sample *sample, struct machine *machine)
{
	struct bt_ctf_field *size = create_payload(event_class, "perf_bpf_callchain_size");
	struct bt_ctf_field *sequence = create_payload(event_class, "perf_bpf_callchain");
	int ret = set_bpf_frames(sample->callchain, machine, NULL);

	if (!size || !sequence || bt_ctf_field_integer_unsigned_set_value(size, ret) ||
	    bt_ctf_event_set_payload(event, "perf_bpf_callchain_size", size) ||
	    bt_ctf_field_sequence_set_length(sequence, size))
		ret = -ENOMEM;
	if (ret >= 0)
		ret = set_bpf_frames(sample->callchain, machine, sequence);
	if (ret >= 0 && bt_ctf_event_set_payload(event, "perf_bpf_callchain", sequence))
		ret = -ENOMEM;
	bt_ctf_field_put(sequence);
	bt_ctf_field_put(size);
	return ret < 0 ? ret : 0;
}

/**
 * ctf_bpf__add_values - set the fields of a sample
 * @event_class: for which ctf_bpf__add_types() was called
 * @event: gets the fields
 * @sample: the sample
 * @machine: that was recorded
 *
 * Return: 0 or -ENOMEM, with a message.
 */
int ctf_bpf__add_values(struct bt_ctf_event_class *event_class, struct bt_ctf_event *event,
			struct perf_sample *sample, struct machine *machine)
{
	int ret = add_leaf(event_class, event, sample, machine);

	if (!ret && (sample->evsel->core.attr.sample_type & PERF_SAMPLE_CALLCHAIN))
		ret = add_callchain(event_class, event, sample, machine);
	if (ret)
		pr_err("Failed to add the BPF programs of a sample: %s\n", strerror(-ret));
	return ret;
}
