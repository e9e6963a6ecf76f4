// Puts questions to the module under Node: `node ask.mjs MODULE.wasm`, with a JSON list of [name, ...arguments] on
// standard input. Prints the list of answers; a status that was thrown is { status }. JSON has no infinities: they
// and NaN are texts. `node ask.mjs MODULE.wasm FILE` asks the lines of a file of cases instead.

import { readFileSync } from "node:fs";
import * as answers from "../src/answers.mjs";
import * as certificates from "../src/certificate.mjs";
import * as charts from "../src/charts.mjs";
import { load } from "../src/core.mjs";
import * as doctor from "../src/doctor.mjs";
import * as settings from "../src/settings.mjs";
import * as text from "../src/text.mjs";

const core = await load(readFileSync(process.argv[2]));
// The functions of the scripts take the core where they ask it.
const asking = Object.fromEntries(["runOf", "curvesOf", "comparedCurves", "attacksOf", "samplersOf", "othersOf",
  "elementaryErrors", "questionsAsked", "certificateOf"].map((name) => {
  const found = { ...answers, ...doctor, ...certificates }[name];
  return [name, (...given) => found(core, ...given)];
}));
const timed = {
  // The least of so many times, in milliseconds.
  timeOf(times, name, ...given) {
    let least = Infinity;
    for (let i = 0; i < times; i++) {
      const begun = performance.now();
      core[name](...given);
      least = Math.min(least, performance.now() - begun);
    }
    return least;
  },
  // Memory of the module after the same question was asked so many times.
  memoryAfter(times, name, ...given) {
    for (let i = 0; i < times; i++) core[name](...given);
    return core.memoryBytes();
  },
};
const known = { ...text, ...settings, ...charts, ...timed, ...core, ...asking };

const WORDS = { inf: Infinity, "-inf": -Infinity, nan: NaN };
const revived = (_, value) => (typeof value === "string" && value in WORDS ? WORDS[value] : value);
const written = (_, value) => {
  if (typeof value !== "number" || Number.isFinite(value)) return value;
  return Number.isNaN(value) ? "nan" : value > 0 ? "inf" : "-inf";
};

function answered([name, ...given]) {
  try {
    return known[name](...given);
  } catch (error) {
    if (error instanceof certificates.NoCertificate) return { none: error.message };
    if (error.status === undefined) throw error;
    return { status: error.status };
  }
}

if (process.argv[3]) {
  const found = doctor.questionsAsked(core, readFileSync(process.argv[3], "utf8").split("\n"));
  console.log(JSON.stringify({ ...found, apart: found.apart.map((one) => one.line) }));
} else {
  const questions = JSON.parse(readFileSync(0, "utf8"), revived);
  console.log(JSON.stringify(questions.map(answered), written));
}
