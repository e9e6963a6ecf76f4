// The form, its link, and the worker that answers.

import { $, showAttacks, showCertificate, showCheck, showCurves, showOthers, showRun, showSamplers } from "./show.mjs";
import { FIELDS, FIRST, linkOf, settingsOf, textsOf } from "./settings.mjs";
import { sentence } from "./text.mjs";

const embedded = (id) => $(id).textContent;
const bytes = (text) => Uint8Array.from(atob(text.trim()), (c) => c.charCodeAt(0));

const state = { asked: 0, busy: false, waiting: null, settings: null, answers: {} };

const worker = new Worker(URL.createObjectURL(new Blob([embedded("worker")], { type: "text/javascript" })));
worker.postMessage({ module: bytes(embedded("module")) });

function typed() {
  const known = document.querySelector("input[name=known]:checked").value;
  const names = ["records", "batch", "epochs", "delta", known];
  return Object.fromEntries(names.map((name) => [name, $(name).value]));
}

function showKnown() {
  const known = document.querySelector("input[name=known]:checked").value;
  for (const name of ["noise", "epsilon"]) $(`${name}-field`).hidden = name !== known;
}

function complain(wrong) {
  for (const name of Object.keys(FIELDS)) {
    const message = wrong[name] ?? "";
    $(`${name}-wrong`).textContent = message;
    if (message) $(name).setAttribute("aria-invalid", "true");
    else $(name).removeAttribute("aria-invalid");
  }
}

// Asks anew; while an answer is on its way only the last question waits.
function ask() {
  const { settings, wrong } = settingsOf(typed());
  complain(wrong);
  if (Object.keys(wrong).length) {
    state.waiting = null;
    $("results").hidden = true;
    $("status").textContent = "";
    return;
  }
  history.replaceState(null, "", linkOf(settings));
  if (state.busy) state.waiting = settings;
  else send(settings);
}

function send(settings) {
  Object.assign(state, { busy: true, waiting: null, settings, answers: {}, asked: state.asked + 1 });
  showCertificate(null);
  $("results").setAttribute("aria-busy", "true");
  $("status").textContent = "Computing …";
  worker.postMessage({ id: state.asked, settings });
}

const SHOW = {
  run(value) {
    showRun(state.settings, value);
    $("results").hidden = false;
  },
  curves: (value) => showCurves(state.settings, state.answers.run, value, null),
  attacks: showAttacks,
  samplers: (value) => showSamplers(state.settings, state.answers.run, value),
  others(value) {
    showOthers(state.answers.run, value.rows);
    showCurves(state.settings, state.answers.run, state.answers.curves, value.curve);
  },
  done: finish,
  failed(value) {
    $("results").hidden = true;
    finish();
    $("status").textContent = `There is no answer: ${value}. Try other values.`;
  },
  certificate(value) {
    showCertificate(value);
    $("certify").disabled = false;
  },
  check(value) {
    showCheck(value);
    $("check").disabled = false;
  },
};

function finish() {
  state.busy = false;
  $("results").setAttribute("aria-busy", "false");
  $("status").textContent = "";
  if (state.waiting) send(state.waiting);
}

worker.onmessage = ({ data }) => {
  // A certificate of an earlier question is not shown beside a later one.
  if (data.stage === "certificate" && data.id !== state.asked) data.value = null;
  state.answers[data.stage] = data.value;
  SHOW[data.stage](data.value);
};

worker.onerror = (event) => SHOW.failed(event.message || "this browser does not run the native core");

// --- What can be taken along ---------------------------------------------------------------------------------

function save(name, text, type) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

function results() {
  const { run, curves, attacks, samplers, others } = state.answers;
  const shown = {
    program: "accountant", version: run.version, relation: "add-or-remove", sampler: "Poisson",
    settings: state.settings, q: run.q, steps: run.steps, noise_multiplier: run.sigma, epsilon: run.epsilon,
    curves, attacks, samplers, others: others?.rows, sentence: sentence(state.settings, run, run.version),
    guarantee: "lower <= exact value <= upper; docs/theorems.md",
  };
  // JSON has no infinities.
  return JSON.stringify(shown, (_, value) => (value === Infinity ? "inf" : value), 1) + "\n";
}

async function copy(text, words) {
  try {
    await navigator.clipboard.writeText(text);
    $("taken").textContent = words;
  } catch {
    $("taken").textContent = "This browser does not let a page copy. Select the text and copy it.";
  }
}

function begin() {
  const texts = textsOf(location.hash) ?? Object.fromEntries(Object.entries(FIRST).map(([k, v]) => [k, String(v)]));
  for (const [name, text] of Object.entries(texts)) $(name).value = text;
  $("epsilon" in texts ? "know-epsilon" : "know-noise").checked = true;
  showKnown();
  ask();
}

let timer = 0;
$("form").addEventListener("input", () => {
  showKnown();
  clearTimeout(timer);
  timer = setTimeout(ask, 150);
});
$("form").addEventListener("submit", (event) => {
  event.preventDefault();
  ask();
});
window.addEventListener("hashchange", begin);
$("save-json").addEventListener("click", () => save("privacy.json", results(), "application/json"));
$("copy-link").addEventListener("click", () => copy(location.href, "The link was copied."));
$("copy-sentence").addEventListener("click", () => copy($("sentence").textContent, "The sentence was copied."));
$("certify").addEventListener("click", () => {
  const { run } = state.answers, { delta } = state.settings;
  $("certify").disabled = true;
  $("certificate-words").textContent = "Searching …";
  worker.postMessage({ id: state.asked, certify: { q: run.q, sigma: run.sigma, steps: run.steps, delta } });
});
$("save-certificate").addEventListener("click", () =>
  save("certificate.json", $("certificate").textContent, "application/json"));
$("print").addEventListener("click", () => window.print());
$("check").addEventListener("click", () => {
  $("check").disabled = true;
  worker.postMessage({ check: { truths: embedded("truths"), questions: embedded("questions") } });
});
begin();
