// Certificates (docs/certificates.md) of a DP-SGD run: documents that another program, dp-verify, checks in ball
// arithmetic. What is here is a search in plain floating point. It proves nothing, and need not: a wrong document is
// refused. Theorem numbers refer to docs/theorems_certificates.md.

import { EITHER } from "./core.mjs";

const SLACK = 3e-9, SHARE = 2e-11, OUTSIDE = Math.log(1e-12), LARGER = [1e-4, 1e-3];
const MOST_ORDERS = 60000, MOST_PRODUCTS = 4e7, MOST_NODES = 8000;
const LARGE = 500, FARTHEST = 300, ROOM = 45;
const GRID = Array.from({ length: 161 }, (_, i) => 10 ** (-7 + i / 10));

export class NoCertificate extends Error {}

const few = (value, digits) => Number(value.toPrecision(digits));
const spaced = (low, high, count) => Float64Array.from({ length: count }, (_, i) => low + ((high - low) * i) / (count - 1));
const largest = (list) => list.reduce((a, b) => Math.max(a, b), -Infinity);
const logAdd = (a, b) => (a === -Infinity ? b : Math.max(a, b) + Math.log1p(Math.exp(-Math.abs(a - b))));

// The first place of a sorted list at which it is not below a value.
function placeOf(list, value) {
  let low = 0, high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (list[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

function interpolated(at, xs, ys) {
  const k = Math.min(Math.max(placeOf(xs, at), 1), xs.length - 1);
  return ys[k - 1] + ((ys[k] - ys[k - 1]) * (at - xs[k - 1])) / (xs[k] - xs[k - 1]);
}

// log Φ(x)
function logNormal(core, x) {
  if (x > -6) return Math.log(0.5 * core.elementary("erfc", [-x * Math.SQRT1_2])[0]);
  const s = 1 / (x * x);
  return -0.5 * x * x - Math.log(-x * Math.sqrt(2 * Math.PI)) + Math.log1p(s * (-1 + s * (3 - s * (15 - 105 * s))));
}

// A z with log Φ(−z) at most a given number below −1.
function quantile(core, logShare) {
  let low = 0, high = Math.sqrt(-2 * logShare) + 1;
  for (let i = 0; i < 60; i++) {
    const middle = 0.5 * (low + high);
    if (logNormal(core, -middle) <= logShare) high = middle;
    else low = middle;
  }
  return high;
}

// One step: N(0, σ²) whose mean moves by 1 with probability q.
class Step {
  constructor(core, q, sigma, count) {
    Object.assign(this, { core, q, sigma, count, density: Math.log(sigma * Math.sqrt(2 * Math.PI)) });
  }

  loss(x) {
    const u = (2 * x - 1) / (2 * this.sigma ** 2);
    return u < LARGE ? Math.log1p(this.q * Math.expm1(u)) : u + Math.log(this.q + (1 - this.q) * Math.exp(-u));
  }

  // real and imaginary part at x + iy
  complexLoss(x, y) {
    const u = (2 * x - 1) / (2 * this.sigma ** 2), turn = y / this.sigma ** 2, { q } = this;
    if (u < LARGE) {
      const power = q * Math.exp(u), real = power * Math.cos(turn) - q, imaginary = power * Math.sin(turn);
      return [0.5 * Math.log1p(2 * real + real * real + imaginary * imaginary), Math.atan2(imaginary, 1 + real)];
    }
    const real = q * Math.cos(turn) + (1 - q) * Math.exp(-u), imaginary = q * Math.sin(turn);
    return [u + Math.log(Math.hypot(real, imaginary)), Math.atan2(imaginary, real)];
  }

  // the posterior probability that the mean moved
  moved(x) {
    const u = (2 * x - 1) / (2 * this.sigma ** 2);
    return u > 0 ? this.q / (this.q + (1 - this.q) * Math.exp(-u))
      : (this.q * Math.exp(u)) / (this.q * Math.exp(u) + 1 - this.q);
  }

  logDensity(x) {
    return -(x * x) / (2 * this.sigma ** 2) - this.density;
  }

  logMassAbove(x) {
    const still = Math.log(1 - this.q) + logNormal(this.core, -x / this.sigma);
    return logAdd(still, Math.log(this.q) + logNormal(this.core, (1 - x) / this.sigma));
  }

  window(logShare, moved) {
    const low = -this.sigma * quantile(this.core, logShare - ROOM);
    if (!moved) return [low, this.sigma * quantile(this.core, logShare)];
    let below = 0, above = 1 + this.sigma * quantile(this.core, logShare);
    for (let i = 0; i < 60; i++) {
      const middle = 0.5 * (below + above);
      if (this.logMassAbove(middle) <= logShare) above = middle;
      else below = middle;
    }
    return [low, above];
  }

  inverseLoss(loss) {
    const reach = 60 * this.sigma + 2 + Math.abs(loss) * this.sigma ** 2;
    let low = -reach, high = reach;
    for (let i = 0; i < 200; i++) {
      const middle = 0.5 * (low + high);
      if (this.loss(middle) <= loss) low = middle;
      else high = middle;
    }
    return low;
  }

  // log A(c) on the windows that end at each of the points
  logMoments(c, x, loss, noise) {
    const space = Math.log(x[1] - x[0]), found = new Float64Array(x.length);
    const plain = !(c * (c > 0 ? largest(loss) : -largest(loss.map((v) => -v))) > LARGE) && !(largest(loss) > LARGE);
    let sum = plain ? 0 : -Infinity;
    for (let i = 0; i < x.length; i++) {
      if (plain) {
        sum += Math.exp(noise[i] + space) * (Math.expm1(c * loss[i]) - c * Math.expm1(loss[i]));
        found[i] = Math.log1p(Math.max(sum, -0.9));
      } else found[i] = sum = logAdd(sum, noise[i] + c * loss[i] + space);
    }
    return found;
  }
}

// How fast the transform of one step falls off on a line, by both ways of Theorem K2.
class Decay {
  constructor(search, c) {
    const { step, low, high } = search;
    Object.assign(this, { search, step, c });
    const path = search.path(c), top = largest(path.logWeight);
    this.weight = path.logWeight.map((w) => Math.exp(w - top));
    this.angle = path.angle;
    this.mass = this.weight.reduce((sum, w, i) => sum + w * Math.cos(path.phase[i]), 0);
    this.logMass = top + Math.log(this.mass);
    this.x = spaced(low, high, 1500);
    this.loss = this.x.map((x) => step.loss(x));
    const tilted = this.x.map((x, i) => step.logDensity(x) + c * this.loss[i]), most = largest(tilted);
    let total = 0, mean = 0, square = 0;
    tilted.forEach((t, i) => {
      const mass = Math.exp(t - most);
      total += mass;
      mean += mass * this.loss[i];
    });
    mean /= total;
    tilted.forEach((t, i) => (square += Math.exp(t - most) * (this.loss[i] - mean) ** 2));
    this.spread = Math.sqrt(square / total);
    this.mode = this.loss[tilted.indexOf(most)];
  }

  // the logarithm of a bound on |A(c + iy')| / A(c) for y' >= y, and its knots
  logBound(y) {
    const sum = this.weight.reduce((all, w, i) => all + w * Math.exp(-y * this.angle[i]), 0);
    let best = Math.min(Math.log(sum / this.mass), 0), knots = [];
    if (best < -5) return [best, knots];
    for (const width of [1.5 / y, 2.5 / y, 4 / y, 6 / y, 10 / y, 2 * this.spread, 3 * this.spread]) {
      const [drop, at] = this.drop(y, width), below = Math.log1p(-Math.min(drop, 1 - 1e-12));
      if (drop > 0 && below < best) [best, knots] = [below, at];
    }
    return [best, knots];
  }

  drop(y, width) {
    const x = [], { step, c } = this, last = this.loss.length - 1;
    for (let k = -40; k <= 40; k++) {
      const loss = this.mode + width * (k + 0.5);
      if (loss > this.loss[0] && loss < this.loss[last]) x.push(interpolated(loss, this.loss, this.x));
    }
    const gains = x.slice(1).map((right, i) => {
      const left = x[i], length = step.loss(right) - step.loss(left);
      let ends = [step.loss(left), step.loss(right)];
      if (c >= 0) {
        const middle = 0.5 * (left + right), slope = step.moved(middle) / step.sigma ** 2;
        ends = [left, right].map((end) => step.loss(middle) + slope * (end - middle));
      }
      const least = Math.min(step.logDensity(left) + c * ends[0], step.logDensity(right) + c * ends[1]);
      const height = (Math.exp(least - this.logMass) * step.sigma ** 2) / step.moved(right), t = 0.5 * y * length;
      const sinc = t > 4.6 ? 1 / t : t < 3 ? Math.max(Math.sin(t) / t, 0.2173) : 0.2173;
      return Math.max(height * length * (1 - sinc), 0);
    });
    const total = gains.reduce((a, b) => a + b, 0), used = gains.map((gain) => gain > 1e-4 * total);
    const first = used.indexOf(true), end = used.lastIndexOf(true) + 1;
    if (first < 0) return [0, []];
    return [gains.slice(first, end).reduce((a, b) => a + b, 0) * (1 - 1e-6), x.slice(first, end + 1)];
  }
}

// One direction at one ε: the window of the noise, the line's distance, its path and its orders.
class Search {
  constructor(step, epsilon, delta, remove, share) {
    Object.assign(this, { step, epsilon, remove, logDelta: Math.log(delta), share: Math.log(share), known: new Map() });
    [this.low, this.high] = step.window(OUTSIDE + this.logDelta - Math.log(step.count), remove);
  }

  order(b) {
    return this.remove ? 1 + b : -b;
  }

  // the logarithm of F(c) e^(−bε) and a window's end that is negligible there; null where there is none
  at(b) {
    if (!this.known.has(b)) this.known.set(b, this.computedAt(b));
    return this.known.get(b);
  }

  computedAt(b) {
    const { step, low, high } = this, c = this.order(b);
    const far = c < FARTHEST ? Math.max(high, Math.max(c, 0) + 0.9 * (high + 1 - low)) : 1.5 * high;
    const x = spaced(low, far, Math.trunc(Math.min(Math.max(400, (8 * (far - low)) / step.sigma), 6000)));
    const loss = x.map((v) => step.loss(v)), noise = x.map((v) => step.logDensity(v));
    const moments = step.logMoments(c, x, loss, noise).map((m) => step.count * m);
    const start = placeOf(x, high), base = -b * this.epsilon;
    const size = base + moments[Math.min(start, x.length - 1)];
    const room = this.share + this.logDelta - Math.log(step.count / Math.min(b, 1)) - 20;
    const height = (k) => noise[k] + c * loss[k] + Math.log(step.sigma);
    if (!(height(0) < room - size)) return null;
    for (let k = start; k < x.length; k++) {
      if (!(height(k) < room - base - moments[k])) continue;
      const found = base + moments[k];
      return Number.isFinite(found) ? { size: found, end: Math.max(x[k], high) } : null;
    }
    return null;
  }

  // the logarithm of Theorem 5's bound
  bound(b) {
    const found = this.at(b);
    return found ? found.size + b * Math.log(b / (1 + b)) - Math.log1p(b) : Infinity;
  }

  distance() {
    const target = this.logDelta + this.share, sizes = GRID.map((b) => this.at(b)?.size ?? Infinity);
    const bound = GRID.map((b) => this.bound(b));
    let best = [Infinity, 0, 0];
    for (let k = 2; k < GRID.length - 2; k++) {
      const b = GRID[k];
      if (!(sizes[k] < this.logDelta + 400)) continue;
      let below = -target / b, above = Infinity;
      for (let j = 0; j < k; j++) below = Math.min(below, (Math.min(bound[j], 0) - target) / (b - GRID[j]));
      for (let j = k + 1; j < GRID.length; j++) above = Math.min(above, (bound[j] - target) / (GRID[j] - b));
      const period = Math.max(below, above, 0) * 1.02, cost = period * Math.sqrt(Math.max(sizes[k] - target, 1));
      if (cost < best[0]) best = [cost, b, period];
    }
    if (!(best[2] > 0 && best[2] < Infinity)) throw new NoCertificate();
    return [best[1], best[2]];
  }

  // Fixes window and path for a distance; returns the logarithm of F(c) e^(−bε).
  settle(b, needed) {
    const found = this.at(b);
    if (!found) throw new NoCertificate();
    this.high = found.end;
    const size = needed === null ? found.size : this.logDelta + this.share + needed;
    this.setPath(this.order(b), size - this.logDelta - this.share + Math.log(2 / Math.min(b, 1)) + Math.log(this.step.count));
    return found.size;
  }

  // rise and spacing for an aliasing error of e^−needed of the transform
  setPath(c, needed) {
    const scale = this.step.sigma ** 2;
    let most = Math.min(0.48 * Math.PI * scale, 2.5 * this.step.sigma), best = Infinity;
    if (c < 0) most = Math.min(most, 0.24 * Math.PI * scale);
    for (const part of [1, 0.8, 0.6, 0.45, 0.3, 0.2, 0.1, 0.05, 0.02, 0.01, 0.004]) {
      const rise = most * part, cost = needed + (2 * rise * rise) / scale + this.growth(c, rise);
      const nodes = ((this.high - this.low) * cost) / (2 * Math.PI * rise);
      if (nodes < best) [best, this.rise] = [nodes, rise];
    }
    this.nodes = Math.ceil(best);
    if (!(this.nodes <= MOST_NODES)) throw new NoCertificate();
    this.spacing = (this.high - this.low) / this.nodes;
  }

  growth(c, rise) {
    const { step } = this, scale = step.sigma ** 2;
    const shift = c < 0 ? scale * Math.log(Math.cos((2 * rise) / scale)) : 0;
    let above = -Infinity, plain = -Infinity;
    for (const x of spaced(this.low, this.high, 200)) {
      above = logAdd(above, step.logDensity(x) + c * step.loss(x + shift));
      plain = logAdd(plain, step.logDensity(x) + c * step.loss(x));
    }
    return above - plain + 2;
  }

  // the logarithms of the weights' moduli, their phases and Im L at the nodes
  path(c) {
    const { step, rise } = this, logWeight = [], phase = [], angle = [];
    for (let k = 0; k < this.nodes; k++) {
      const x = this.low + this.spacing * (k + 0.5), [real, imaginary] = step.complexLoss(x, rise);
      logWeight.push(-(x * x - rise * rise) / (2 * step.sigma ** 2) - step.density + c * real + Math.log(this.spacing));
      phase.push((-x * rise) / step.sigma ** 2 + c * imaginary);
      angle.push(imaginary);
    }
    return { logWeight, phase, angle };
  }

  // the number of orders after which the rest is negligible, and the knots
  orders(b, period, size) {
    const step = (2 * Math.PI) / period, decay = new Decay(this, this.order(b));
    const rest = (y) => size + this.step.count * decay.logBound(y)[0] + Math.log(step / y ** 2 + 1 / y) -
      this.logDelta - this.share;
    let low = 0, high = step;
    while (rest(high) > 0) {
      [low, high] = [high, 2 * high];
      if (high > MOST_ORDERS * step) throw new NoCertificate();
    }
    for (let i = 0; i < 6; i++) {
      const middle = 0.5 * (low + high);
      if (rest(middle) > 0) low = middle;
      else high = middle;
    }
    const count = Math.max(Math.ceil(high / step), 1);
    return [count, decay.logBound(count * step)[1]];
  }

  chernoff() {
    const coarse = GRID.filter((_, k) => k % 4 === 0);
    let best = coarse.find((b) => this.bound(b) < this.logDelta - 1);
    best ??= coarse.reduce((a, b) => (this.bound(b) < this.bound(a) ? b : a));
    if (!(this.bound(best) < this.logDelta - 0.02)) return null;
    this.settle(best, 12);
    return { kind: "chernoff", distance: few(best, 6), rules: [this.rule([])] };
  }

  line() {
    const [near, period] = this.distance(), b = few(near, 6);
    const size = this.settle(b, null), [orders, knots] = this.orders(b, period, size);
    if (orders * this.nodes > MOST_PRODUCTS) throw new NoCertificate();
    return { kind: "line", distance: b, step: (2 * Math.PI) / period, orders, rules: [this.rule(knots)] };
  }

  rule(knots) {
    const given = { rise: few(this.rise, 6), spacing: this.spacing, first: this.low + 0.5 * this.spacing, nodes: this.nodes };
    return knots.length ? { ...given, decay: knots.map((x) => few(x, 9)) } : given;
  }
}

function evidenceOf(step, epsilon, delta, remove, share) {
  if (step.q === 1) return { kind: "plain" };
  const stays = step.count * Math.log1p(-step.q);
  if (-Math.expm1(stays) <= delta || (!remove && epsilon >= -stays)) return { kind: "never_moved" };
  if (step.count === 1) {
    const loss = epsilon * (1 - 1e-12);
    return { kind: "one_step", threshold: step.inverseLoss(remove ? loss : -loss) + (remove ? 0 : 1e-9 * step.sigma) };
  }
  const search = new Search(step, epsilon, delta, remove, share);
  return search.chernoff() ?? search.line();
}

// Returns { epsilon, larger, text } for so many steps; throws NoCertificate where no evidence is found, as where
// rare events decide.
export function certificateOf(core, q, sigma, steps, delta) {
  const least = core.epsilonBounds(q, sigma, steps, delta * (1 - SLACK)).upper;
  const step = new Step(core, q, sigma, steps);
  for (const larger of [0, ...LARGER]) {
    const epsilon = least > 0 ? least * (1 + larger) : larger;
    const given = core.deltaBounds(q, sigma, steps, epsilon, EITHER).upper;
    const share = larger ? Math.max(SHARE, 0.02 * (1 - given / delta)) : SHARE;
    try {
      const evidence = {
        remove: evidenceOf(step, epsilon, delta, true, share), add: evidenceOf(step, epsilon, delta, false, share),
      };
      return { epsilon, larger, text: written(q, sigma, steps, delta, epsilon, larger, evidence) };
    } catch (error) {
      if (!(error instanceof NoCertificate)) throw error;
    }
  }
  throw new NoCertificate("no certificate of the largest size was found; the Python package searches further");
}

function written(q, sigma, steps, delta, epsilon, larger, evidence) {
  const parts = [{ sigma, shifts: [1], weights: [q], count: steps }];
  const claim = { relation: "add-or-remove", direction: "both", epsilon, delta, parts };
  const note = larger ? { note: `epsilon is larger than the accountant's by ${larger} of it` } : {};
  return JSON.stringify({ format: "dp-certificate", version: 1, claim, evidence, ...note }) + "\n";
}
