// SPDX-License-Identifier: GPL-2.0
/*
 * The features of BPF programs, in parts: they may be longer than a record, and programs may
 * be loaded while perf records. See perf.data-file-format.txt.
 */
#include <errno.h>
#include <byteswap.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/kernel.h>
#include <linux/zalloc.h>
#include <internal/lib.h>
#include <perf/event.h>
#include "bpf-event.h"
#include "bpf-sideband.h"
#include "compress.h"
#include "data.h"
#include "debug.h"
#include "env.h"
#include "header.h"
#include "session.h"
#include "synthetic-events.h"
#include "tool.h"

#ifdef HAVE_LIBBPF_SUPPORT
/* Newer versions of perf may count more, and older ones less. */
static int perf_env__read_bpf_counts(struct perf_env *env, const union perf_event *event,
				     bool needs_swap)
{
	const struct perf_record_bpf_counts *from = (const void *)event;
	u64 nr, *to;

	if (event->header.size < sizeof(*from))
		return 0;

	nr = needs_swap ? bswap_64(from->nr) : from->nr;
	nr = min(nr, (u64)(event->header.size - sizeof(*from)) / sizeof(u64));
	if (!env->bpf_progs.counts)
		env->bpf_progs.counts = zalloc(sizeof(*env->bpf_progs.counts));
	if (!env->bpf_progs.counts)
		return -ENOMEM;
	to = env->bpf_progs.counts->nr;
	for (u64 i = 0; i < min_t(u64, nr, BPF_NR_COUNTS); i++)
		to[i] = needs_swap ? bswap_64(from->counts[i]) : from->counts[i];
	return 0;
}
#else
static int perf_env__read_bpf_counts(struct perf_env *env __maybe_unused,
				     const union perf_event *event __maybe_unused,
				     bool needs_swap __maybe_unused)
{
	return 0;
}
#endif

/* All of its parts are there: read the feature. It may be damaged. */
static void perf_session__process_whole_feature(struct perf_session *session)
{
	typeof(session->feature_part) *whole = &session->feature_part;
	struct feat_fd ff = { .ph = &session->header, };
	void *content = NULL;
	int err = 0;

	ff.buf = whole->data;
	ff.size = whole->size;
	if (whole->type == PERF_EVENT_UPDATE__ZSTD_FEATURE_PART) {
		err = zstd_decompress_frame(whole->data, whole->size, &content, &ff.size);
		ff.buf = content;
	}
	if (err) {
		pr_warning_once("Cannot decompress %s: %s. Some BPF programs cannot be annotated.\n",
				feat_ops[whole->feat_id].name, strerror(-err));
	} else {
		feat_ops[whole->feat_id].process(&ff, NULL);
		whole->seen |= 1ULL << whole->feat_id;
	}
	free(content);
	zfree(&whole->data);
	if (whole->feat_id == HEADER_BPF_PROG_INFO)
		machine__link_late_bpf(&session->machines.host);
}

/**
 * perf_session__process_feature_part - assemble a feature and process it
 * @session: keeps the parts of the feature until it is complete
 * @event: a PERF_RECORD_EVENT_UPDATE, as long as its header says
 *
 * A part that does not follow the previous one causes a warning, and its feature is
 * dropped.
 *
 * Return: 0, also if @event is not a part, or -ENOMEM.
 */
int perf_session__process_feature_part(struct perf_session *session,
				       union perf_event *event)
{
	struct perf_record_feature_part *part = (void *)event;
	typeof(session->feature_part) *whole = &session->feature_part;
	u64 type = event->event_update.type, feat, size, offset, len;
	const bool needs_swap = session->header.needs_swap;
	char *data;

	if (type == PERF_EVENT_UPDATE__BPF_COUNTS)
		return perf_env__read_bpf_counts(perf_session__env(session), event, needs_swap);
	if ((type != PERF_EVENT_UPDATE__FEATURE_PART &&
	     type != PERF_EVENT_UPDATE__ZSTD_FEATURE_PART) ||
	    event->header.size <= sizeof(*part))
		return 0;

	feat = needs_swap ? bswap_64(part->feat_id) : part->feat_id;
	if (feat != HEADER_BPF_PROG_INFO && feat != HEADER_BPF_BTF)
		return 0;
	/* the file is complete: it has the whole feature */
	if (!perf_data__is_pipe(session->data) && perf_header__has_feat(&session->header, feat))
		return 0;

	size = needs_swap ? bswap_64(part->size) : part->size;
	offset = needs_swap ? bswap_64(part->offset) : part->offset;

	if (!offset && whole->filled == whole->size) {
		whole->feat_id = feat;
		whole->type = type;
		whole->size = size;
		whole->filled = 0;
	}

	if (whole->feat_id != feat || whole->type != type || whole->size != size ||
	    whole->filled != offset || whole->filled >= whole->size) {
		pr_warning("Part of %s at %" PRIu64 " of %" PRIu64 " is out of order: %s\n",
			   feat_ops[feat].name, offset, size,
			   "some BPF programs cannot be annotated");
		/* start again with the next first part */
		whole->size = 0;
		whole->filled = 0;
		if (offset || !size)
			return 0;
		whole->feat_id = feat;
		whole->type = type;
		whole->size = size;
	}

	len = event->header.size - sizeof(*part);
	len = min(len, whole->size - whole->filled);
	data = realloc(whole->data, whole->filled + len);
	if (!data)
		return -ENOMEM;
	memcpy(data + whole->filled, part->data, len);
	whole->data = data;
	whole->filled += len;
	if (whole->filled == whole->size)
		perf_session__process_whole_feature(session);
	return 0;
}

/**
 * perf_session__print_feature_parts - print the features that came in parts
 * @session: of a pipe that was read to its end, as parts may come until then
 *
 * perf_event__process_feature() prints the other features, as its tool requests.
 */
void perf_session__print_feature_parts(struct perf_session *session)
{
	enum show_feature_header show = session->tool->show_feat_hdr;
	struct feat_fd ff = { .ph = &session->header, };
	int feat;

	for (feat = 0; show && feat < HEADER_LAST_FEATURE; feat++) {
		if (!(session->feature_part.seen & (1ULL << feat)))
			continue;
		if (show >= SHOW_FEAT_HEADER_FULL_INFO)
			feat_ops[feat].print(&ff, stdout);
		else
			printf("# %s info available, use -I to display\n", feat_ops[feat].name);
	}
}

#ifdef HAVE_LIBBPF_SUPPORT
/* Split a feature over as many records as it needs. */
static int synthesize_feature_parts(const struct perf_tool *tool, u64 feat, u64 type,
				    const void *data, size_t size, perf_event__handler_t process)
{
	struct perf_record_feature_part *part;
	const size_t max_len = PERF_ALIGN(UINT16_MAX, sizeof(u64)) - sizeof(u64) - sizeof(*part);
	size_t offset, len;
	int err = 0;

	part = malloc(sizeof(*part) + max_len);
	if (!part)
		return -ENOMEM;

	for (offset = 0; !err && offset < size; offset += len) {
		len = min(max_len, size - offset);
		*part = (struct perf_record_feature_part) {
			.header = {
				.type = PERF_RECORD_EVENT_UPDATE,
				.size = sizeof(*part) + PERF_ALIGN(len, sizeof(u64)),
			},
			.type = type,
			.feat_id = feat,
			.size = size,
			.offset = offset,
		};
		memcpy(part->data, data + offset, len);
		memset(part->data + len, 0, PERF_ALIGN(len, sizeof(u64)) - len);
		err = process(tool, (union perf_event *)part, NULL, NULL);
	}

	free(part);
	return err;
}

static int synthesize_bpf_feature(const struct perf_tool *tool, const struct feat_fd *ff, u64 feat,
				  bool compress, perf_event__handler_t process)
{
	size_t size;
	void *frame;
	int err;

	if (!compress || zstd_compress_frame(ff->buf, ff->offset, &frame, &size))
		return synthesize_feature_parts(tool, feat, PERF_EVENT_UPDATE__FEATURE_PART,
						ff->buf, ff->offset, process);

	err = synthesize_feature_parts(tool, feat, PERF_EVENT_UPDATE__ZSTD_FEATURE_PART,
				       frame, size, process);
	free(frame);
	return err;
}

/**
 * perf_event__synthesize_bpf_features - write new BPF programs and BTFs as records
 * @session: with its tool, the programs and the BTFs
 * @since: what was added up to then is skipped, see perf_env; set for the next call
 * @compress: with zstd, if perf has it
 * @process: writes a record
 *
 * A pipe has no other features, and is for any reader. A file has all of them again at its
 * end, where other versions of perf look for them.
 *
 * Return: 0, -errno, or the error of @process.
 */
int perf_event__synthesize_bpf_features(struct perf_session *session, u32 *since, bool compress,
					perf_event__handler_t process)
{
	static const int feats[] = { HEADER_BPF_BTF, HEADER_BPF_PROG_INFO };
	struct perf_env *env = perf_session__env(session);
	struct feat_fd ff = {
		.ph = &session->header,
		.size = page_size,
		.unlimited = true,
		.since = *since,
	};
	/* another thread may be adding some: these are written again in the next call */
	u32 added = READ_ONCE(env->bpf_progs.added);
	int err = 0;

	if (added == *since)
		return 0;

	ff.buf = malloc(ff.size);
	if (!ff.buf)
		return -ENOMEM;

	for (size_t i = 0; !err && i < ARRAY_SIZE(feats); i++) {
		ff.offset = 0;
		err = feat_ops[feats[i]].write(&ff, session->evlist);
		/* the data begins with the number of programs or BTFs */
		if (!err && *(u32 *)ff.buf)
			err = synthesize_bpf_feature(session->tool, &ff, feats[i],
						     compress, process);
	}

	free(ff.buf);
	perf_event__synthesize_bpf_metadata(session, *since, process);
	*since = added;
	return err;
}
#endif
