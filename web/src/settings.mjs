// What a person types, what a link carries, and what is wrong with either.

export const FIELDS = {
  records: { label: "Number of records", whole: true, least: 1, most: 1e12 },
  batch: { label: "Batch size", whole: true, least: 1, most: 1e12 },
  epochs: { label: "Epochs", whole: true, least: 1, most: 1e6 },
  delta: { label: "δ", least: 1e-100, most: 0.5 },
  noise: { label: "Noise multiplier", least: 0.02, most: 1e6 },
  epsilon: { label: "Target ε", least: 1e-3, most: 500 },
};

export const FIRST = { records: 60000, batch: 256, epochs: 60, delta: 1e-5, noise: 1.1 };

// Returns the number, or a sentence that says what is required.
function read(name, text) {
  const field = FIELDS[name], words = String(text).trim().replace(/[, _](?=\d{3})/g, "");
  const value = words === "" ? NaN : Number(words);
  const kind = field.whole ? "a whole number" : "a number";
  if (!(value >= field.least && value <= field.most) || (field.whole && !Number.isInteger(value)))
    return { wrong: `${field.label} must be ${kind} from ${field.least} to ${field.most}.` };
  return { value };
}

// texts: one for each field, and of noise and epsilon only the one that is known.
export function settingsOf(texts) {
  const settings = {}, wrong = {};
  for (const name of Object.keys(FIELDS)) {
    if (!(name in texts)) continue;
    const found = read(name, texts[name]);
    if ("wrong" in found) wrong[name] = found.wrong;
    else settings[name] = found.value;
  }
  if (settings.batch > settings.records)
    wrong.batch = `Batch size must be at most the number of records, ${settings.records}.`;
  return { settings, wrong };
}

export function linkOf(settings) {
  return "#" + Object.entries(settings).map(([name, value]) => `${name}=${value}`).join("&");
}

// The texts of a link; null where it has none that can be used as they are.
export function textsOf(link) {
  const given = Object.fromEntries(new URLSearchParams(link.replace(/^#/, "")));
  const names = ["records", "batch", "epochs", "delta", "epsilon" in given ? "epsilon" : "noise"];
  if (!names.every((name) => name in given)) return null;
  const texts = Object.fromEntries(names.map((name) => [name, given[name]]));
  return Object.keys(settingsOf(texts).wrong).length ? null : texts;
}
