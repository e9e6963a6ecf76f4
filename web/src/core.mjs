// The native core in WebAssembly: every function of accountant.h under its name in camel case.
//
//     import { load } from "./accountant.mjs";
//     const core = await load(bytesOfAccountantWasm);
//     core.epsilonBounds(0.01, 1.1, 1000, 1e-5);  // { lower: 1.81…, upper: 1.81… }
//
// Units, ranges and guarantees are those of the header. A status that is not OK is thrown as a CoreError.

export const REMOVE = 0, ADD = 1, EITHER = 2;

// In the order of accountant/_core/src/elementary.h.
export const ELEMENTARY = ["exp", "expm1", "log", "log1p", "sin", "cos", "atan2", "erf", "erfc", "pow",
  "core exp", "core expm1", "core log1p", "core sin", "core cos"];

export class CoreError extends Error {
  constructor(status, message) {
    super(message);
    this.name = "CoreError";
    this.status = status;
  }
}

class Memory {
  constructor(native) {
    this.native = native;
    this.taken = [];
  }

  take(bytes) {
    const place = this.native.malloc(Math.max(bytes, 8));
    if (place === 0) throw new CoreError(-2, "there is no memory for the question");
    this.taken.push(place);
    return place;
  }

  numbers(values) {
    const place = this.take(8 * values.length);
    new Float64Array(this.native.memory.buffer, place, values.length).set(values);
    return place;
  }

  read(place, count) {
    return Array.from(new Float64Array(this.native.memory.buffer, place, count));
  }

  // struct accountant_shifts: count, shift, weight, (padding), no_shift, weight_error
  shifts(law) {
    if (law.shift.length !== law.weight.length) throw new CoreError(-1, "every shift needs a weight");
    const shift = this.numbers(law.shift), weight = this.numbers(law.weight), place = this.take(32);
    const view = new DataView(this.native.memory.buffer);
    [law.shift.length, shift, weight, 0].forEach((word, i) => view.setUint32(place + 4 * i, word, true));
    view.setFloat64(place + 16, law.noShift ?? 0, true);
    view.setFloat64(place + 24, law.weightError ?? 0, true);
    return place;
  }

  // struct accountant_part: q, sigma, steps, shifts (and padding)
  parts(list) {
    const laws = list.map((part) => (part.shifts ? this.shifts(part.shifts) : 0));
    const place = this.take(32 * list.length), view = new DataView(this.native.memory.buffer);
    list.forEach((part, i) => {
      [part.q ?? 0, part.sigma, part.steps].forEach((x, j) => view.setFloat64(place + 32 * i + 8 * j, x, true));
      view.setUint32(place + 32 * i + 24, laws[i], true);
    });
    return place;
  }

  release() {
    this.taken.splice(0).forEach((place) => this.native.free(place));
  }
}

// Returns the functions of a module whose bytes are given.
export async function load(bytes) {
  const imports = {
    env: { emscripten_notify_memory_growth() {} },
    wasi_snapshot_preview1: { proc_exit() { throw new Error("the native core stopped"); } },
  };
  const { instance } = await WebAssembly.instantiate(bytes, imports);
  const native = instance.exports;
  native._initialize?.();
  return functions(native);
}

function functions(native) {
  const text = (place) => {
    const all = new Uint8Array(native.memory.buffer);
    return String.fromCharCode(...all.subarray(place, all.indexOf(0, place)));
  };
  const message = (status) => text(native.accountant_status_message(status));
  // Runs a question with `count` numbers as its answer; the last argument of the native function is their place.
  const ask = (question, count) => {
    const memory = new Memory(native);
    try {
      const out = memory.take(8 * count), status = question(out, memory);
      if (status !== 0) throw new CoreError(status, message(status));
      return memory.read(out, count);
    } finally {
      memory.release();
    }
  };
  const bracket = (question) => {
    const [lower, upper] = ask(question, 2);
    return { lower, upper };
  };
  const one = (question) => ask(question, 1)[0];
  return {
    version: () => text(native.accountant_version()),
    statusMessage: message,
    memoryBytes: () => native.memory.buffer.byteLength,
    ...equalSteps(native, bracket, ask),
    ...otherLaws(native, bracket),
    ...calibrations(native, one),
    ...pageQuestions(native, one, ask),
  };
}

function equalSteps(native, bracket, ask) {
  return {
    epsilonBounds: (q, sigma, steps, delta, direction = EITHER) =>
      bracket((out) => native.accountant_epsilon_bounds(q, sigma, steps, delta, direction, out)),
    deltaBounds: (q, sigma, steps, epsilon, direction = EITHER) =>
      bracket((out) => native.accountant_delta_bounds(q, sigma, steps, epsilon, direction, out)),
    renyiBounds: (q, sigma, order, direction = EITHER) =>
      bracket((out) => native.accountant_renyi_bounds(q, sigma, order, direction, out)),
    gaussianEpsilonBounds: (sigma, delta) =>
      bracket((out) => native.accountant_gaussian_epsilon_bounds(sigma, delta, out)),
    gaussianDeltaBounds: (sigma, epsilon) =>
      bracket((out) => native.accountant_gaussian_delta_bounds(sigma, epsilon, out)),
    epsilonRenyiUpper(q, sigma, steps, delta) {
      const [epsilon, order] = ask(
        (out) => native.accountant_epsilon_renyi_upper(q, sigma, steps, delta, out, out + 8), 2);
      return { epsilon, order };
    },
  };
}

// A law is { shift: [...], weight: [...], noShift, weightError }; a part { q, sigma, steps, shifts }.
function otherLaws(native, bracket) {
  const mixed = (name) => (law, sigma, steps, given, direction = EITHER) =>
    bracket((out, memory) => native[name](memory.shifts(law), sigma, steps, given, direction, out));
  const composed = (name) => (parts, given, direction = EITHER) =>
    bracket((out, memory) => native[name](memory.parts(parts), parts.length, given, direction, out));
  return {
    mixtureEpsilonBounds: mixed("accountant_mixture_epsilon_bounds"),
    mixtureDeltaBounds: mixed("accountant_mixture_delta_bounds"),
    compositionEpsilonBounds: composed("accountant_composition_epsilon_bounds"),
    compositionDeltaBounds: composed("accountant_composition_delta_bounds"),
  };
}

function calibrations(native, one) {
  const calibrated = (name) => (targetEpsilon, delta, first, second) =>
    one((out) => native[name](targetEpsilon, delta, first, second, out));
  return {
    calibrateSigma: calibrated("accountant_calibrate_sigma"), // q, steps
    calibrateSteps: calibrated("accountant_calibrate_steps"), // q, sigma
    calibrateQ: calibrated("accountant_calibrate_q"), // sigma, steps
  };
}

// What the page asks beside that: web/native/page.h.
function pageQuestions(native, one, ask) {
  return {
    ratioUp: (numerator, denominator) => native.page_ratio_up(numerator, denominator),
    epsilonCurve(q, sigma, steps, delta) {
      const found = ask((out, memory) => native.page_epsilon_curve(
        q, sigma, memory.numbers(steps), memory.numbers(delta), steps.length, out), 2 * steps.length);
      return steps.map((_, i) => ({ lower: found[2 * i], upper: found[2 * i + 1] }));
    },
    attackRate: (q, sigma, steps, falsePositives) =>
      one((out) => native.page_attack_rate(q, sigma, steps, falsePositives, out)),
    shuffledEpsilonLower: (sigma, steps, epochs, delta) =>
      one((out) => native.page_shuffled_epsilon_lower(sigma, steps, epochs, delta, out)),
    allocationRenyiUpper: (sigma, steps, order, direction) =>
      one((out) => native.page_allocation_renyi_upper(sigma, steps, order, direction, out)),
    allocationEpsilonUpper: (sigma, steps, epochs, delta) =>
      one((out) => native.page_allocation_epsilon_upper(sigma, steps, epochs, delta, out)),
    elementary: (name, x, y = x) => ask((out, memory) => native.page_elementary(
      ELEMENTARY.indexOf(name), memory.numbers(x), memory.numbers(y), x.length, out), x.length),
  };
}
