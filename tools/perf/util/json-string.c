// SPDX-License-Identifier: GPL-2.0
/* Strings in JSON, see RFC 8259. */
#include "json-string.h"

#include <string.h>
#include <linux/types.h>

/* Return: how many bytes the UTF-8 character at @s has, 0 if it is none. */
static size_t utf8_len(const char *s)
{
	static const u32 smallest[] = { 0, 0, 0x80, 0x800, 0x10000 };
	const u8 *byte = (const u8 *)s;
	size_t len = byte[0] < 0x80 ? 1 : byte[0] >> 5 == 0x6 ? 2 : byte[0] >> 4 == 0xe ? 3 :
		     byte[0] >> 3 == 0x1e ? 4 : 0;
	u32 character;

	if (len < 2)
		return len;
	character = byte[0] & (0x7f >> len);
	for (size_t i = 1; i < len; i++) {
		if ((byte[i] & 0xc0) != 0x80)
			return 0;
		character = character << 6 | (byte[i] & 0x3f);
	}
	/* a longer way to write it, half of a surrogate pair, or beyond the last one */
	if (character < smallest[len] || character >> 11 == 0xd800 >> 11 || character > 0x10ffff)
		return 0;
	return len;
}

/* A terminal takes them for the start of a control sequence, as it does \x1b. @s: two bytes */
static bool is_c1_control(const char *s)
{
	return (u8)s[0] == 0xc2 && (u8)s[1] < 0xa0;
}

/**
 * fprintf_json_string - print a string in JSON
 * @fp: where to
 * @s: any bytes; NULL is printed as ""
 *
 * Names of tasks and files need not be UTF-8, which JSON is: what is not becomes U+FFFD,
 * the replacement character. Control characters are escaped, as JSON may be printed.
 */
void fprintf_json_string(FILE *fp, const char *s)
{
	static const char special[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
	size_t len;

	fputc('"', fp);
	for (; s && *s; s += len ?: 1) {
		const char *found = strchr(special, *s);

		len = utf8_len(s);
		if (found)
			fprintf(fp, "\\%c", letters[found - special]);
		else if (!len)
			fputs("\\ufffd", fp);
		else if (len == 1 && (*s <= 0x1f || *s == 0x7f))
			fprintf(fp, "\\u%04x", *s);
		else if (len == 2 && is_c1_control(s))
			fprintf(fp, "\\u00%02x", (u8)s[1]);
		else
			fwrite(s, len, 1, fp);
	}
	fputc('"', fp);
}
