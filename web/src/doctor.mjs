// Checks the module where it runs: elementary functions beside stored truths, questions beside stored answers.

import { ELEMENTARY } from "./core.mjs";

const UNIT = 2 ** -53;
// What the certificates trust, in units of round-off: docs/theorems.md, Library functions.
const TRUSTED = { erfc: 16 };
export const trusted = (name) => TRUSTED[name] ?? 8;

// A double as C's %a writes it, or in digits.
export function number(text) {
  const found = /^(-?)0x([01])\.?([0-9a-f]*)p([+-]\d+)$/.exec(text);
  if (!found) return text === "nan" ? NaN : text === "inf" ? Infinity : text === "-inf" ? -Infinity : Number(text);
  let value = parseInt(found[2] + found[3], 16);
  let power = Number(found[4]) - 4 * found[3].length;
  for (; power > 0; power--) value *= 2;
  for (; power < 0; power++) value *= 0.5;
  return found[1] ? -value : value;
}

// truths: those of accountant/selftest/elementary.json. Returns the largest error of each function.
export function elementaryErrors(core, truths) {
  const found = [];
  for (const [name, rows] of Object.entries(truths)) {
    if (!ELEMENTARY.includes(name)) continue;
    const columns = rows.map((row) => row.slice(0, -1).map(number)), two = columns[0].length === 3;
    const values = core.elementary(name, columns.map((row) => row[0]), columns.map((row) => row[two ? 1 : 0]));
    let worst = 0;
    values.forEach((value, i) => {
      const nearest = columns[i].at(-1), rest = rows[i].at(-1);
      const error = Math.abs((value - nearest) / (UNIT * Math.abs(nearest)) - rest);
      if (!(error <= worst)) worst = error;
    });
    found.push({ name, rows: rows.length, worst, trusted: trusted(name), good: worst <= trusted(name) });
  }
  return found;
}

// --- Questions, as libaccountant/tests/cases.txt has them -------------------------------------------------------

function law(take, count) {
  const noShift = take(), weightError = take();
  const list = () => Array.from({ length: count }, take);
  return { noShift, weightError, shift: list(), weight: list() };
}

function parts(take) {
  return Array.from({ length: take() }, () => {
    const part = { q: take(), sigma: take(), steps: take() }, shifts = take();
    return shifts === 0 ? part : { ...part, shifts: law(take, shifts) };
  });
}

const plain = (count) => (take) => Array.from({ length: count }, take);
const mixed = (take) => {
  const [sigma, steps, given, direction, count] = plain(5)(take);
  return [law(take, count), sigma, steps, given, direction];
};
const ARGUMENTS = {
  epsilonBounds: plain(5), deltaBounds: plain(5), renyiBounds: plain(4), epsilonRenyiUpper: plain(4),
  gaussianEpsilonBounds: plain(2), gaussianDeltaBounds: plain(2),
  calibrateSigma: plain(4), calibrateSteps: plain(4), calibrateQ: plain(4),
  mixtureEpsilonBounds: mixed, mixtureDeltaBounds: mixed,
  compositionEpsilonBounds: (take) => ((given, direction) => [parts(take), given, direction])(take(), take()),
  compositionDeltaBounds: (take) => ((given, direction) => [parts(take), given, direction])(take(), take()),
};

const camel = (name) => name.replace(/_([a-z])/g, (_, letter) => letter.toUpperCase());

// Asks one line; returns whether the answer is the same doubles, and whether it is near: brackets overlap, and what
// was searched for differs by at most 1e-6 of itself or one step.
export function askLine(core, line) {
  const [words, expected] = line.trim().split(/\s*=\s*/).map((side) => side.split(/\s+/));
  const name = camel(words[0]), given = words.slice(1).map(number), stored = expected.map(number);
  let next = 0, found;
  const take = () => {
    if (next >= given.length) throw new Error(`the line ends early: ${line}`);
    return given[next++];
  };
  const list = ARGUMENTS[name](take);
  if (next !== given.length) throw new Error(`the line is too long: ${line}`);
  try {
    const answer = core[name](...list);
    found = [0, ...(typeof answer === "number" ? [answer] : Object.values(answer))];
  } catch (error) {
    if (error.status === undefined) throw error;
    found = [error.status];
  }
  const same = found.length === stored.length && found.every((x, i) => Object.is(x, stored[i]) || x === stored[i]);
  return { name, same, near: same || near(found, stored), found, stored };
}

function near(found, stored) {
  if (found[0] !== stored[0] || found.length !== stored.length) return false;
  if (found.length === 3 && found[1] <= found[2])
    return found[1] <= stored[2] && stored[1] <= found[2];
  return Math.abs(found[1] - stored[1]) <= Math.max(1e-6 * Math.abs(stored[1]), found[1] >= 1 ? 1 : 0);
}

export function questionsAsked(core, lines) {
  const kept = lines.filter((line) => line && !line.startsWith("#"));
  const answers = kept.map((line) => ({ line, ...askLine(core, line) }));
  return {
    asked: answers.length,
    same: answers.filter((answer) => answer.same).length,
    apart: answers.filter((answer) => !answer.near),
  };
}
