// Answers the page's questions away from its thread. A message { id, settings } is answered in stages
// { id, stage, value }, the bracket first; { id, certify: { q, sigma, steps, delta } } asks for a certificate, { check } for the check of this
// browser.

import { load } from "./core.mjs";
import { attacksOf, comparedCurves, curvesOf, othersOf, runOf, samplersOf } from "./answers.mjs";
import { certificateOf } from "./certificate.mjs";
import { elementaryErrors, questionsAsked } from "./doctor.mjs";

let core = null, loading = null;

// The first call is compiled while it runs: asked before a person does.
function warmed(loaded) {
  loaded.epsilonBounds(0.004, 1.1, 14100, 1e-5);
  return loaded;
}

function staged(id, settings) {
  const say = (stage, value) => postMessage({ id, stage, value });
  const begun = performance.now();
  const run = runOf(core, settings);
  say("run", { ...run, version: core.version(), milliseconds: performance.now() - begun });
  say("curves", curvesOf(core, settings, run));
  say("attacks", attacksOf(core, run));
  const samplers = samplersOf(core, settings, run);
  say("samplers", samplers);
  say("others", { rows: othersOf(core, settings, run, samplers), curve: comparedCurves(core, settings, run) });
  say("done", null);
}

function certified(id, { q, sigma, steps, delta }) {
  try {
    postMessage({ id, stage: "certificate", value: certificateOf(core, q, sigma, steps, delta) });
  } catch (error) {
    postMessage({ id, stage: "certificate", value: { none: error.message } });
  }
}

function checked(id, { truths, questions }) {
  const began = performance.now();
  const functions = elementaryErrors(core, JSON.parse(truths)), asked = questionsAsked(core, questions.split("\n"));
  postMessage({ id, stage: "check", value: { functions, asked, milliseconds: performance.now() - began } });
}

onmessage = async ({ data }) => {
  try {
    if (data.module) loading = load(data.module).then(warmed);
    core = await loading;
    if (data.settings) staged(data.id, data.settings);
    if (data.certify) certified(data.id, data.certify);
    if (data.check) checked(data.id, data.check);
  } catch (error) {
    postMessage({ id: data.id, stage: "failed", value: error.message });
  }
};
