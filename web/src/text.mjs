// Numbers as text that stays on the safe side, and the words that go with them.

// Writes `value` with at most `digits` significant digits, rounded up (`way` 1) or down (-1), never to nearest.
function rounded(value, digits, way) {
  if (!Number.isFinite(value)) return value > 0 ? "∞" : String(value);
  if (value === 0) return "0";
  // 100 digits are the double itself, or so near that what follows does not matter to the first few.
  const [all, exponent] = Math.abs(value).toExponential(100).split("e");
  const figures = all.replace(".", "");
  let whole = BigInt(figures.slice(0, digits)), power = Number(exponent) - digits + 1;
  const away = way > 0 === value > 0;
  if (away && /[1-9]/.test(figures.slice(digits))) whole += 1n;
  let text = String(whole);
  power += text.length - digits;
  while (text.length > 1 && text.endsWith("0")) text = text.slice(0, -1);
  return (value < 0 ? "−" : "") + placed(text, power + digits - 1);
}

// Puts the point into digits whose first stands at 10^exponent.
function placed(text, exponent) {
  if (exponent < -5 || exponent > 14)
    return text[0] + (text.length > 1 ? "." + text.slice(1) : "") + "e" + exponent;
  if (exponent < 0) return "0." + "0".repeat(-exponent - 1) + text;
  const integer = text.slice(0, exponent + 1).padEnd(exponent + 1, "0");
  return text.length > exponent + 1 ? integer + "." + text.slice(exponent + 1) : integer;
}

export const up = (value, digits = 5) => rounded(value, digits, 1);
export const down = (value, digits = 5) => rounded(value, digits, -1);
export const percentUp = (share, digits = 3) => up(100 * share * (1 + 2 ** -51), digits) + " %";
export const count = (value) => value.toLocaleString("en-US", { maximumFractionDigits: 0 });
// The shortest text that is this number and no other; 1e-5, not 0.00001.
export const exact = (value) => {
  if (value === Infinity) return "∞";
  return (value !== 0 && Math.abs(value) < 1e-3 ? value.toExponential() : String(value)).replace("e+", "e");
};
// For axes.
export const tick = (value) => exact(Number(value.toPrecision(4)));

// A reader who hears one number for ε needs a word with it; the grades are those of the privacy statement.
export function grade(epsilon) {
  if (epsilon <= 1) return { level: 1, words: "strong: an attacker learns next to nothing about one record" };
  if (epsilon <= 3) return { level: 2, words: "moderate: usual for a trained model, and it hides one record well" };
  if (epsilon <= 10) return { level: 3, words: "weak: the worst case allows an attacker to learn much" };
  return { level: 4, words: "nearly none: the worst case gives one record away" };
}

// What to write in a paper. Numbers are rounded to the safe side, the noise multiplier is as it was used.
export function sentence(settings, run, version) {
  const noise = `noise multiplier ${exact(run.sigma)}`;
  return `We trained for ${count(settings.epochs)} epochs (${count(run.steps)} steps) with DP-SGD: Gaussian noise of ` +
    `${noise} on Poisson samples of ${count(settings.records)} records, each drawn with probability ` +
    `${exact(run.q)} in every step (expected batch size ${count(settings.batch)}). This is ` +
    `(ε, δ)-differentially private with ε = ${up(run.epsilon.upper)} and δ = ${exact(settings.delta)} under ` +
    "addition or removal of one record. The value is a certified upper bound on the exact privacy loss, which is " +
    `at least ${down(run.epsilon.lower)}; numerical error is included (accountant ${version}).`;
}
