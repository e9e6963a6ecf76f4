"""Small private learners, written for record and replay: correct ones."""

import math

import numpy as np

import accountant as ac

RECORDS, FEATURES, CLASSES = 60, 3, 3
Q, SIGMA, CLIP, STEPS, RATE = 0.3, 2.0, 1.0, 6, 0.5


def public_data():
    """Return features in [-1, 1], with one outlier, and labels, one of which is rare."""
    generator = np.random.default_rng(5)
    x = generator.uniform(-1.0, 1.0, (RECORDS, FEATURES))
    x[7] = (1.0, -1.0, 1.0)
    y = generator.integers(2, size=RECORDS)
    y[7] = 2
    return x, y


# Of neighbours: the outlier that alone has its label, the first, the last, and two more.
REMOVED = (7, 0, RECORDS - 1, 20, 33)


class Sgd:
    """DP-SGD on a least-squares problem; each defect overrides one method."""

    q = Q

    def __call__(self, data, releases):
        self.x, self.y = self.prepared(*data)
        self.releases = releases
        self.weights = self.start()
        self.setup()
        for step in range(self.steps()):
            if self.step(step) == "stop":
                break
        return self.result()

    def prepared(self, x, y):
        return x, np.where(y == 1, 1.0, -1.0)

    def start(self):
        return 0.01 * self.releases.rng.standard_normal(FEATURES)

    def setup(self):
        pass

    def steps(self):
        return STEPS

    def gradients(self, rows):
        x = self.x[rows]
        return (x @ self.weights - self.y[rows])[:, None] * x

    def clipped(self, gradients):
        norms = np.linalg.norm(gradients, axis=1, keepdims=True)
        return gradients * np.minimum(1.0, CLIP / np.maximum(norms, 1e-30))

    def total(self, rows):
        return self.clipped(self.gradients(rows)).sum(axis=0)

    def batch_size(self, rows):
        return Q * RECORDS

    def released(self, rows):
        return self.releases.gaussian(self.total(rows), sensitivity=CLIP, scale=SIGMA * CLIP)

    def rate(self, step, rows):
        return RATE

    def moved(self, direction):
        self.weights = self.weights - direction

    def step(self, step):
        with self.releases.poisson(len(self.x), self.q) as rows:
            self.moved(self.rate(step, rows) * self.released(rows) / self.batch_size(rows))
        return

    def result(self):
        return self.weights


class FullBatch(Sgd):
    def step(self, step):
        self.moved(RATE * self.released(np.arange(len(self.x))) / RECORDS)


class Momentum(Sgd):
    velocity = 0.0

    def moved(self, direction):
        self.velocity = 0.9 * self.velocity + direction
        self.weights = self.weights - self.velocity

    def setup(self):
        self.velocity = 0.0


class Adam(Sgd):
    def setup(self):
        self.mean, self.square = np.zeros(FEATURES), np.zeros(FEATURES)

    def moved(self, direction):
        self.mean = 0.9 * self.mean + 0.1 * direction
        self.square = 0.99 * self.square + 0.01 * direction**2
        self.weights = self.weights - self.mean / (np.sqrt(self.square) + 1e-3)


class Schedule(Sgd):
    def rate(self, step, rows):
        return RATE / math.sqrt(1.0 + step)


class MeanOfIterates(Sgd):
    def setup(self):
        self.seen = []

    def moved(self, direction):
        super().moved(direction)
        self.seen.append(self.weights)

    def result(self):
        return np.mean(self.seen, axis=0)


class AdaptiveClipping(Sgd):
    norm = 1.0

    def setup(self):
        self.norm = 1.0

    def clipped(self, gradients):
        norms = np.linalg.norm(gradients, axis=1, keepdims=True)
        return gradients * np.minimum(1.0, self.norm / np.maximum(norms, 1e-30))

    def released(self, rows):
        gradients = self.gradients(rows)
        noisy = self.releases.gaussian(
            self.clipped(gradients).sum(axis=0), sensitivity=self.norm, scale=SIGMA * self.norm
        )
        below = np.sum(np.linalg.norm(gradients, axis=1) <= self.norm) - 0.5 * len(rows)
        share = self.releases.gaussian(below, sensitivity=0.5, scale=5.0, name="quantile")
        self.norm *= math.exp(-0.2 * share / (Q * RECORDS))
        return noisy


class GroupsOfParameters(Sgd):
    def clipped(self, gradients):
        parts = [gradients[:, :1], gradients[:, 1:]]
        bound = CLIP / math.sqrt(2.0)
        return np.hstack(
            [
                part
                * np.minimum(1.0, bound / np.maximum(np.linalg.norm(part, axis=1), 1e-30))[:, None]
                for part in parts
            ]
        )


class NormalisedGradients(Sgd):
    def clipped(self, gradients):
        return gradients / (np.linalg.norm(gradients, axis=1, keepdims=True) + 0.01)


class StopsByNoisyLoss(Sgd):
    def step(self, step):
        super().step(step)
        losses = np.minimum(1.0, (self.x @ self.weights - self.y) ** 2)
        loss = self.releases.laplace(losses.sum(), sensitivity=1.0, scale=3.0, name="loss")
        return "stop" if loss < 0.7 * RECORDS else None


class NoisyNumberOfRecords(Sgd):
    def setup(self):
        self.records = self.releases.laplace(
            len(self.x), sensitivity=1.0, scale=1.0, name="records"
        )

    def batch_size(self, rows):
        return max(1.0, Q * self.records)


class CorrelatedNoise(Sgd):
    """The noise of one step is partly taken back in the next (banded, two diagonals)."""

    def setup(self):
        self.before = 0.0

    def released(self, rows):
        # The decoder is applied to what was released: post-processing.
        noisy = super().released(rows)
        self.before, last = noisy, self.before
        return noisy - 0.3 * last


def ridge_by_moments(data, releases):
    x, y = data
    target = np.where(y == 1, 1.0, -1.0)
    square = releases.gaussian(x.T @ x, sensitivity=FEATURES, scale=FEATURES * SIGMA, name="xx")
    cross = releases.gaussian(
        x.T @ target, sensitivity=math.sqrt(FEATURES), scale=SIGMA * math.sqrt(FEATURES), name="xy"
    )
    return np.linalg.solve(square @ square.T + np.eye(FEATURES), cross)


def histogram(data, releases):
    counts = np.histogram(data[0][:, 0], bins=np.linspace(-1.0, 1.0, 9))[0]
    return np.maximum(0.0, releases.laplace(counts, sensitivity=1.0, scale=1.0))


def naive_bayes(data, releases):
    x, y = data
    counts = np.array(
        [[np.sum((x[:, j] > 0) & (y == c)) for c in range(CLASSES)] for j in range(FEATURES)]
    )
    counts = releases.laplace(counts, sensitivity=float(FEATURES), scale=3.0, name="cells")
    sizes = releases.laplace(np.bincount(y, minlength=CLASSES), sensitivity=1.0, scale=1.0)
    return counts / np.maximum(1.0, sizes)


def exponential_mechanism(data, releases):
    candidates = np.linspace(-1.0, 1.0, 21)
    scores = -np.abs((data[0][:, 0][:, None] < candidates).sum(axis=0) - 0.5 * len(data[0]))

    def drawn(values, rng):
        return int(np.argmax(0.5 * values + rng.gumbel(size=values.shape)))

    return candidates[
        releases.release(
            "median", scores, drawn, sensitivity=0.5, norm=math.inf,
            mechanism=ac.ExponentialMechanism(0.5),
        )
    ]  # fmt: skip


def k_means(data, releases):
    x, _ = data
    centres = releases.rng.uniform(-1.0, 1.0, (2, FEATURES))
    for _ in range(3):
        near = np.argmin(((x[:, None] - centres) ** 2).sum(axis=2), axis=1)
        for k in range(2):
            total = releases.gaussian(
                x[near == k].sum(axis=0), sensitivity=math.sqrt(FEATURES), scale=5.0, name="sum"
            )
            size = releases.gaussian(np.sum(near == k), sensitivity=1.0, scale=3.0, name="size")
            centres[k] = np.clip(total / max(1.0, size), -1.0, 1.0)
    return centres


def frank_wolfe(data, releases):
    x, y = data
    target, weights = np.where(y == 1, 1.0, -1.0), np.zeros(FEATURES)
    for step in range(STEPS):
        gradient = (np.clip(x @ weights - target, -1.0, 1.0)[:, None] * x).sum(axis=0)
        scores = np.concatenate([gradient, -gradient])
        noisy = releases.release(
            "vertex", scores, lambda v, rng: int(np.argmin(v + rng.laplace(0, 4.0, v.shape))),
            sensitivity=1.0, norm=math.inf, scale=4.0,
        )  # fmt: skip
        vertex = np.zeros(FEATURES)
        vertex[noisy % FEATURES] = 1.0 if noisy < FEATURES else -1.0
        weights += (vertex - weights) * 2.0 / (step + 2.0)
    return weights


def votes_of_teachers(data, releases):
    x, y = data
    answers = []
    for query in np.linspace(-1.0, 1.0, 4):
        votes = np.zeros(CLASSES)
        for shard in range(6):
            mine = np.abs(np.round(1e6 * x[:, 0])).astype(int) % 6 == shard  # by content, not place
            near = np.argsort(np.abs(x[mine, 1] - query))[:3]
            votes[np.bincount(y[mine][near], minlength=CLASSES).argmax()] += 1.0
        noisy = releases.gaussian(votes, sensitivity=math.sqrt(2.0), scale=3.0, name="votes")
        answers.append(int(noisy.argmax()))
    return answers


def mean_of_clipped(data, releases):
    total = releases.laplace(np.clip(data[0][:, 0], -0.5, 0.5).sum(), sensitivity=0.5, scale=1.0)
    return total / RECORDS


def warm_start_from_release(data, releases):
    first = mean_of_clipped(data, releases)
    again = np.clip(data[0][:, 0] - first, -0.2, 0.2).sum()
    return first + releases.laplace(again, sensitivity=0.2, scale=0.5) / RECORDS
