// SPDX-License-Identifier: GPL-2.0
// node read_speedscope.js PACKAGE FILE: the stacks that speedscope imports, as JSON.
//
// The package is one script for a web page. It runs here without a page, far enough for
// its importer, which is the function that loadFileFromBase64() calls.
"use strict";
const fs = require("fs");
const path = require("path");
const vm = require("vm");

const [, , pkg, file] = process.argv;
const release = path.join(pkg, "dist/release");
const name = fs.readdirSync(release).find(entry => /^speedscope-.*\.js$/.test(entry));
let code = fs.readFileSync(path.join(release, name), "utf8");
const call = /loadFileFromBase64:\((\w+),(\w+)\)=>\{this\.loadProfile\(\(\)=>(\w+)\(\1,\2\)\)/;
const importer = call.exec(code)[3];
code = code.replace("(()=>{", `(()=>{globalThis.importer=(...args)=>${importer}(...args);`);

// All that the script wants of a page.
const page = new Proxy(function () {}, {
	get: (_, key) => key === Symbol.toPrimitive ? () => "" : page,
	set: () => true,
	apply: () => page,
	construct: () => page,
});
const silent = {log() {}, warn() {}, error() {}};
const global = {document: page, navigator: page, location: page, localStorage: page,
		HTMLElement: page, console: silent, atob, btoa, TextDecoder, TextEncoder,
		performance, setTimeout, addEventListener() {}, requestAnimationFrame() {}};
global.window = global.self = global.globalThis = global;
try {
	vm.runInNewContext(code, global);
} catch (error) {
	// It draws last, for which it needs a page. The importer is there by then.
}

// The frames of a sample, the outermost first.
function stack(node)
{
	if (!node || node.isRoot())
		return [];
	const {name, file, line} = node.frame;
	return [...stack(node.parent), {name, file, line}];
}

const contents = fs.readFileSync(file).toString("base64");
global.importer(path.basename(file), contents).then(group => {
	const profiles = group.profiles.map(profile => ({
		name: profile.getName(),
		stacks: profile.samples.map(stack),
	}));
	process.stdout.write(JSON.stringify(profiles));
});
