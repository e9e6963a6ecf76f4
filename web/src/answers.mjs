// Every question of the page, put to the native core. Bounds are the core's; what is computed here are only other
// people's formulas, which are no bounds of ours.

export const RATES = [0.001, 0.01, 0.1];
const POINTS = 200, FEW = 25;

// The run: sampling probability rounded up, steps, and the noise, which a target asks for.
export function runOf(core, settings) {
  const q = Math.min(core.ratioUp(settings.batch, settings.records), 1);
  const perEpoch = Math.ceil(settings.records / settings.batch);
  const steps = settings.epochs * perEpoch;
  const sigma = settings.noise ?? core.calibrateSigma(settings.epsilon, settings.delta, q, steps);
  return { q, perEpoch, steps, sigma, epsilon: core.epsilonBounds(q, sigma, steps, settings.delta) };
}

function spread(count, at) {
  return Array.from({ length: count }, (_, i) => at(i / (count - 1)));
}

export function curvesOf(core, settings, run) {
  const steps = [...new Set(spread(POINTS, (x) => Math.max(1, Math.round(run.steps * x))))];
  // Six powers of ten around the δ that was asked for.
  const low = Math.log10(settings.delta) - 4, high = Math.min(Math.log10(settings.delta) + 2, -0.4);
  const deltas = spread(POINTS, (x) => 10 ** (low + (high - low) * x));
  const overSteps = core.epsilonCurve(run.q, run.sigma, steps, steps.map(() => settings.delta));
  const overDelta = core.epsilonCurve(run.q, run.sigma, deltas.map(() => run.steps), deltas);
  return {
    overSteps: steps.map((x, i) => ({ steps: x, ...overSteps[i] })),
    overDelta: deltas.map((delta, i) => ({ delta, ...overDelta[i] })),
  };
}

// The same curve by two other accounts, at fewer steps.
export function comparedCurves(core, settings, run) {
  const steps = [...new Set(spread(FEW, (x) => Math.max(1, Math.round(run.steps * x))))];
  return steps.map((x) => ({
    steps: x,
    renyi: core.epsilonRenyiUpper(run.q, run.sigma, x, settings.delta).epsilon,
    limit: centralLimit(core, run.q, run.sigma, x, settings.delta),
  }));
}

// What no attacker can exceed who decides whether one record was used.
export function attacksOf(core, run) {
  const rows = RATES.map((alarms) => ({ alarms, hits: core.attackRate(run.q, run.sigma, run.steps, alarms) }));
  const advantage = core.deltaBounds(run.q, run.sigma, run.steps, 0).upper;
  return { rows, advantage, accuracy: Math.min(0.5 + 0.5 * advantage, 1) };
}

// The same batch size, epochs and noise under other samplers. lower and upper are null where there is no bound.
export function samplersOf(core, settings, run) {
  const { sigma, perEpoch } = run, { epochs, delta } = settings;
  const full = core.epsilonBounds(1, sigma, epochs, delta);
  return {
    poisson: { ...run.epsilon },
    allocation: { lower: null, upper: core.allocationEpsilonUpper(sigma, perEpoch, epochs, delta) },
    full,
    shuffled: { lower: core.shuffledEpsilonLower(sigma, perEpoch, epochs, delta), upper: full.upper },
  };
}

// --- Other accounts -------------------------------------------------------------------------------------------

// Gaussian differential privacy by the central limit theorem (Bu, Dong, Long, Su 2020): μ = q √(T(e^{1/σ²} − 1)).
function centralLimit(core, q, sigma, steps, delta) {
  const mu = q * Math.sqrt(steps * Math.expm1(1 / (sigma * sigma)));
  if (!(mu < 1e3)) return Infinity;
  return mu > 0 ? core.gaussianEpsilonBounds(1 / mu, delta).upper : 0;
}

// The classical formula √(2 log(1.25/δ))/σ for a step, the amplification lemma, and advanced composition (Dwork,
// Rothblum, Vadhan 2010); half of δ goes to each.
function advanced(q, sigma, steps, delta) {
  const step = Math.sqrt(2 * Math.log((1.25 * 2 * q * steps) / delta)) / sigma;
  const sampled = Math.log1p(q * Math.expm1(step));
  return {
    epsilon: sampled * Math.sqrt(2 * steps * Math.log(2 / delta)) + steps * sampled * Math.expm1(sampled),
    classical: step <= 1,
  };
}

// Other accounts of the same run. `claim`: whether the method proves its number for this run.
export function othersOf(core, settings, run, samplers) {
  const { q, sigma, steps, epsilon } = run, { delta } = settings;
  const composed = advanced(q, sigma, steps, delta);
  const rows = [
    { name: "moments", epsilon: core.epsilonRenyiUpper(q, sigma, steps, delta).epsilon, claim: true },
    { name: "limit", epsilon: centralLimit(core, q, sigma, steps, delta), claim: false },
    { name: "advanced", epsilon: composed.epsilon, claim: composed.classical },
    { name: "unsampled", epsilon: core.epsilonBounds(1, sigma, steps, delta).upper, claim: true },
    { name: "rule", epsilon: (q * Math.sqrt(steps * Math.log(1 / delta))) / sigma, claim: false },
  ].map((row) => ({ ...row, verdict: verdict(row.epsilon, epsilon) }));
  const short = epsilon.upper < samplers.shuffled.lower;
  return [...rows, { name: "shuffled", epsilon: epsilon.upper, claim: false, truth: samplers.shuffled.lower,
    verdict: short ? "low" : "unknown" }];
}

// Whether a number is below the exact value, above it, or as good as it.
function verdict(claimed, { lower, upper }) {
  if (claimed < lower) return "low";
  return claimed > upper * 1.0005 ? "high" : "close";
}
