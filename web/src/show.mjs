// Puts answers into the page.

import { chart, some } from "./charts.mjs";
import { count, down, exact, grade, percentUp, sentence, up } from "./text.mjs";

export const $ = (id) => document.getElementById(id);

function cell(row, text, kind = "td", name = "") {
  const made = document.createElement(kind);
  if (kind === "th") made.scope = "row";
  if (name) made.className = name;
  made.textContent = text;
  row.append(made);
}

// rows of texts; the first of each is its heading. `numbers` are the columns set to the right.
function fill(table, rows, numbers = []) {
  const body = $(table).tBodies[0];
  body.replaceChildren(...rows.map((texts) => {
    const row = document.createElement("tr");
    texts.forEach((text, i) => cell(row, text, i ? "td" : "th", numbers.includes(i) ? "n" : ""));
    return row;
  }));
}

const range = (low, high) => `${down(low)} to ${up(high)}`;

export function showRun(settings, run) {
  const word = grade(run.epsilon.upper), wanted = settings.epsilon !== undefined;
  $("headline").className = `headline grade-${word.level}`;
  $("answer").textContent = `ε ≤ ${up(run.epsilon.upper)} at δ = ${exact(settings.delta)}`;
  $("noise-answer").textContent = wanted ? `Noise multiplier ${exact(run.sigma)}` : "";
  $("grade").textContent = word.words;
  $("bracket").textContent = `${down(run.epsilon.lower, 10)} ≤ ε ≤ ${up(run.epsilon.upper, 10)}`;
  $("run").textContent = `${count(run.steps)} steps; in each, every record is drawn with probability ` +
    `${exact(run.q)}, independently of all others, and gets noise of ${exact(run.sigma)} times the clipping norm.`;
  $("milliseconds").textContent = `Computed here in ${run.milliseconds.toFixed(1)} milliseconds.`;
  $("sentence").textContent = sentence(settings, run, run.version);
}

export function showCurves(settings, run, { overSteps, overDelta }, others) {
  const lines = [{ name: "exact", kind: "first", points: overSteps.map((p) => [p.steps, p.upper]) }];
  if (others) {
    lines.push({ name: "Rényi", kind: "second", points: others.map((p) => [p.steps, p.renyi]) });
    lines.push({ name: "limit", kind: "third", points: others.map((p) => [p.steps, p.limit]) });
  }
  const last = overSteps.at(-1);
  $("steps-chart").innerHTML = chart({
    title: `ε grows from ${up(overSteps[0].upper, 3)} after ${count(overSteps[0].steps)} steps to ` +
      `${up(last.upper, 3)} after ${count(last.steps)}, at δ = ${exact(settings.delta)}`,
    xLabel: "steps", yLabel: "ε", lines, mark: [run.steps, run.epsilon.upper],
  });
  $("delta-chart").innerHTML = chart({
    title: `ε falls from ${up(overDelta[0].upper, 3)} at δ = ${exact(overDelta[0].delta)} to ` +
      `${up(overDelta.at(-1).upper, 3)} at δ = ${exact(overDelta.at(-1).delta)}`,
    xLabel: "δ", yLabel: "ε", logarithmic: true, mark: [settings.delta, run.epsilon.upper],
    lines: [{ name: "exact", kind: "first", points: overDelta.map((p) => [p.delta, p.upper]) }],
  });
  fill("steps-table", some(overSteps, 11).map((p) => [count(p.steps), down(p.lower), up(p.upper)]), [0, 1, 2]);
  fill("delta-table", some(overDelta, 11).map((p) => [p.delta.toPrecision(3), down(p.lower), up(p.upper)]), [0, 1, 2]);
}

export function showAttacks({ rows, advantage, accuracy }) {
  fill("attack-table", rows.map((row) => {
    const share = `${100 * row.alarms} %`;
    return [share, percentUp(row.hits), share];
  }), [0, 1, 2]);
  const main = rows.find((row) => row.alarms === 0.01);
  $("attack-words").textContent = `Of the people whose record was used, an attacker who accuses 1 % of all others ` +
    `wrongly finds at most ${percentUp(main.hits)}. Whoever guesses whether a record was used, and would be right in ` +
    `half of all cases without the model, is right in at most ${percentUp(accuracy)} with it ` +
    `(advantage: at most ${percentUp(advantage)}).`;
}

export function showSamplers(settings, run, samplers) {
  const { epochs } = settings;
  const rows = [
    ["Poisson samples", "every record enters every batch with probability q", range(samplers.poisson.lower, samplers.poisson.upper)],
    ["Random allocation", "every record picks one step of every epoch at random", `at most ${up(samplers.allocation.upper)}`],
    ["Full batch", `all records in every step, ${count(epochs)} steps; also fixed batches in a fixed order`, range(samplers.full.lower, samplers.full.upper)],
    ["Shuffled", "records are shuffled in every epoch, and batches taken in order", `at least ${down(samplers.shuffled.lower)}; proved: ${up(samplers.shuffled.upper)}`],
  ];
  fill("sampler-table", rows, [2]);
  const gap = samplers.shuffled.lower > run.epsilon.upper;
  $("shuffled-words").textContent = gap
    ? `Who shuffles and reports the ε of Poisson samples says ${up(run.epsilon.upper)}, and spends at least ` +
      `${down(samplers.shuffled.lower)}: there are data for which an attacker sees that much.`
    : "For this run no data are known for which shuffling spends more than Poisson samples; a proof that it does not is missing too.";
}

const NAMES = {
  moments: ["Moments accountant (Rényi)", "a proved bound, at the best real order"],
  limit: ["Central limit (Gaussian DP)", "an approximation without a bound on its error"],
  advanced: ["Classical formula, amplification, advanced composition", "√(2 log(1.25/δ))/σ is proved for ε ≤ 1 in each step only"],
  unsampled: ["No amplification by sampling", "a proved bound that forgets that batches are random"],
  rule: ["Rule of thumb q √(T log(1/δ))/σ", "an order of magnitude, whose constant was dropped"],
  shuffled: ["Poisson's ε for a shuffled loader", "no proof: the batches are not independent"],
};

function verdictOf(row, exactly) {
  if (row.name === "shuffled")
    return row.verdict === "low" ? `too low: a shuffled run spends at least ${down(row.truth)}` : "not proved";
  if (row.verdict === "low") return `too low by ${up(100 * (1 - row.epsilon / exactly.lower), 2)} %`;
  if (row.verdict === "close") return "agrees";
  const times = row.epsilon / exactly.upper;
  return times > 2 ? `${up(times, 2)} times too high` : `too high by ${up(100 * (times - 1), 2)} %`;
}

export function showOthers(run, rows) {
  const moments = rows.find((row) => row.name === "moments");
  $("allocation-words").textContent = "The bound of random allocation is one by Rényi divergences, by which Poisson " +
    `samples have ${up(moments.epsilon)}. The Python package brackets its exact ε, which is lower.`;
  fill("other-table", rows.map((row) => [
    NAMES[row.name][0], row.claim ? up(row.epsilon) : `${Number(row.epsilon.toPrecision(5))}`,
    verdictOf(row, run.epsilon), NAMES[row.name][1],
  ]), [1]);
}

export function showCheck({ functions, asked, milliseconds }) {
  const bad = functions.filter((row) => !row.good);
  fill("check-table", functions.map((row) => [row.name, String(row.rows), row.worst.toFixed(2), String(row.trusted)]), [1, 2, 3]);
  const words = `${asked.asked} stored questions: ${asked.same} answers are the same doubles, ` +
    `${asked.asked - asked.same - asked.apart.length} are brackets that overlap, ${asked.apart.length} are apart.`;
  $("check-words").textContent = (bad.length || asked.apart.length ? "This browser computes wrongly. " : "All is well. ") +
    words + ` It took ${(milliseconds / 1000).toFixed(1)} seconds.`;
  $("check-result").hidden = false;
}

// Shows a certificate, or why there is none; without either, takes away the last one.
export function showCertificate(found) {
  $("certificate").hidden = $("save-certificate").hidden = !found?.text;
  $("certificate").textContent = found?.text ?? "";
  if (!found) $("certificate-words").textContent = "";
  else if (found.none) $("certificate-words").textContent = `There is none: ${found.none}.`;
  else
    $("certificate-words").textContent = `It claims ε = ${exact(found.epsilon)}` +
      (found.larger ? `, which is larger by ${100 * found.larger} % than the ε above. ` : ". ") +
      `It has ${found.text.length} characters. Check it with: dp-verify certificate.json`;
}
