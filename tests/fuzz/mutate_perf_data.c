// SPDX-License-Identifier: GPL-2.0
/*
 * How libFuzzer changes a perf.data file: within one record or one header feature at a
 * time, so that perf reads all that is around it.
 *
 *	file:  header | attrs | record record ... | table | feature feature ...
 *	pipe:  header | record record ...
 *
 * libFuzzer's own mutations change the bytes of the piece. If it has another length then,
 * the rest moves, and the sizes and offsets of the file are set right. One change in 16 is
 * anywhere in the file, with nothing set right.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define MAGIC		0x32454c4946524550ULL	/* PERFILE2 */
#define FILE_HEADER	104
#define PIPE_HEADER	16
#define RECORD_HEADER	8
#define MAX_RECORD	0xfff8

/* Where a file header says the size of itself, where the data are, and its features. */
#define HEADER_SIZE_AT	8
#define DATA_AT		40
#define FEATURES_AT	72
#define FEATURE_WORDS	4

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed);

/* MMAP, COMM, MMAP2, KSYMBOL, BPF_EVENT, TEXT_POKE, and HEADER_ATTR, _FEATURE, BPF_METADATA */
static const uint32_t types[] = { 1, 3, 9, 10, 17, 18, 20, 64, 80, 84 };

struct file {
	uint8_t		*bytes;
	size_t		size, max;
	/* the records, and the table of the features, which begins where the records end */
	size_t		records, table;
	unsigned int	nr_features;
	bool		pipe;
};

struct piece {
	size_t at, size;
};

/* xorshift: libFuzzer wants the same change for the same seed */
static unsigned int random_below(unsigned int *seed, unsigned int below)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 17;
	*seed ^= *seed << 5;
	return below ? *seed % below : 0;
}

static uint64_t get(const struct file *file, size_t at)
{
	uint64_t value;

	memcpy(&value, file->bytes + at, sizeof(value));
	return value;
}

static void put(struct file *file, size_t at, uint64_t value)
{
	memcpy(file->bytes + at, &value, sizeof(value));
}

static bool file__init(struct file *file)
{
	if (file->size < PIPE_HEADER || get(file, 0) != MAGIC)
		return false;
	if (get(file, HEADER_SIZE_AT) == PIPE_HEADER) {
		file->pipe = true;
		file->records = PIPE_HEADER;
		file->table = file->size;
		return true;
	}
	if (file->size < FILE_HEADER || get(file, HEADER_SIZE_AT) != FILE_HEADER)
		return false;

	file->records = get(file, DATA_AT);
	file->table = file->records + get(file, DATA_AT + 8);
	for (int i = 0; i < FEATURE_WORDS; i++)
		file->nr_features += __builtin_popcountll(get(file, FEATURES_AT + i * 8));
	return file->records >= FILE_HEADER && file->records <= file->table &&
	       file->table <= file->size && (file->size - file->table) / 16 >= file->nr_features;
}

/* Find a record, the last one if there are not so many; size 0 if there is none. */
static struct piece file__record(const struct file *file, unsigned int number)
{
	struct piece record = { file->records, 0 };
	uint16_t size;

	for (size_t at = file->records; at + RECORD_HEADER <= file->table; at += size) {
		memcpy(&size, file->bytes + at + 6, sizeof(size));
		if (size < RECORD_HEADER || size > file->table - at)
			break;
		record = (struct piece){ at, size };
		if (!number--)
			break;
	}
	return record;
}

static unsigned int file__nr_records(const struct file *file)
{
	struct file rest = *file;
	unsigned int nr = 0;

	for (struct piece record; (record = file__record(&rest, 0)).size; nr++)
		rest.records = record.at + record.size;
	return nr;
}

/* Make a piece so much longer or shorter, and move what is behind it. */
static void file__resize(struct file *file, struct piece piece, size_t size)
{
	size_t end = piece.at + piece.size;
	uint64_t delta = size - piece.size;
	bool is_record = piece.at < file->table;

	memmove(file->bytes + piece.at + size, file->bytes + end, file->size - end);
	file->size += delta;
	if (is_record)
		file->table += delta;
	if (file->pipe)
		return;
	if (is_record)
		put(file, DATA_AT + 8, get(file, DATA_AT + 8) + delta);
	for (unsigned int i = 0; i < file->nr_features; i++) {
		size_t entry = file->table + i * 16;

		if (get(file, entry) >= end)
			put(file, entry, get(file, entry) + delta);
	}
}

static void change_record(struct file *file, struct piece record, unsigned int *seed)
{
	size_t body = record.size - RECORD_HEADER, max = MAX_RECORD - RECORD_HEADER, new;
	uint8_t buf[MAX_RECORD] = { 0 };
	uint16_t size;

	if (!random_below(seed, 8))
		memcpy(file->bytes + record.at,
		       &types[random_below(seed, sizeof(types) / sizeof(*types))], sizeof(*types));

	if (body > max)
		return;
	memcpy(buf, file->bytes + record.at + RECORD_HEADER, body);
	if (max > file->max - file->size + body)
		max = file->max - file->size + body;
	if (!max)
		return;
	new = LLVMFuzzerMutate(buf, body, max);
	if (random_below(seed, 16) && ((new + 7) & ~7UL) <= max)
		new = (new + 7) & ~7UL;

	size = new + RECORD_HEADER;
	file__resize(file, record, size);
	memcpy(file->bytes + record.at + RECORD_HEADER, buf, new);
	memcpy(file->bytes + record.at + 6, &size, sizeof(size));
}

/* Drop a record, or put a copy of it elsewhere. */
static void move_record(struct file *file, struct piece record, struct piece to,
			unsigned int *seed)
{
	uint8_t buf[0x10000];

	if (!random_below(seed, 3)) {
		file__resize(file, record, 0);
	} else if (record.size <= file->max - file->size) {
		memcpy(buf, file->bytes + record.at, record.size);
		file__resize(file, (struct piece){ to.at, 0 }, record.size);
		memcpy(file->bytes + to.at, buf, record.size);
	}
}

static void change_feature(struct file *file, unsigned int number)
{
	size_t entry = file->table + number * 16, max;
	struct piece feature = { get(file, entry), get(file, entry + 8) };
	static uint8_t buf[1 << 20];
	size_t size;

	if (feature.at < file->table + file->nr_features * 16 || feature.at > file->size ||
	    feature.size > file->size - feature.at || file->max > sizeof(buf))
		return;
	memcpy(buf, file->bytes + feature.at, feature.size);
	max = file->max - file->size + feature.size;
	if (!max)
		return;
	size = LLVMFuzzerMutate(buf, feature.size, max);
	file__resize(file, feature, size);
	memcpy(file->bytes + feature.at, buf, size);
	put(file, entry + 8, size);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
	struct file file = { .bytes = data, .size = size, .max = max_size };
	unsigned int nr_records, which;
	struct piece record;

	seed |= 1;
	if (size > max_size || !random_below(&seed, 16) || !file__init(&file))
		return LLVMFuzzerMutate(data, size, max_size);

	if (file.nr_features && !random_below(&seed, 2)) {
		change_feature(&file, random_below(&seed, file.nr_features));
		return file.size;
	}
	nr_records = file__nr_records(&file);
	record = file__record(&file, random_below(&seed, nr_records));
	which = random_below(&seed, 4);
	if (!record.size)
		return LLVMFuzzerMutate(data, size, max_size);
	if (which)
		change_record(&file, record, &seed);
	else
		move_record(&file, record, file__record(&file, random_below(&seed, nr_records)),
			    &seed);
	return file.size;
}
