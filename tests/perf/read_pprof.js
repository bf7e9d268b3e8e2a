// SPDX-License-Identifier: GPL-2.0
// node read_pprof.js PACKAGE FILE: a profile as JSON, as the package pprof-format reads it.
"use strict";
const fs = require("fs");
const zlib = require("zlib");

const [, , pkg, file] = process.argv;
const {Profile} = require(pkg);
const profile = Profile.decode(zlib.gunzipSync(fs.readFileSync(file)));
// JSON has no integers of 64 bits: they are strings there.
process.stdout.write(JSON.stringify(profile, (_, value) =>
	typeof value === "bigint" ? String(value) : value));
