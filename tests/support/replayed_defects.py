"""The learners of ``replayed_trainers`` with one defect each, which nobody pays for."""

import math

import numpy as np

from support import replayed_trainers as own


class DividesByTheBatch(own.Sgd):
    def batch_size(self, rows):
        return max(1, len(rows))


class DividesByTheRecords(own.Sgd):
    def batch_size(self, rows):
        return own.Q * len(self.x)


class RateOfSampling(own.Sgd):
    """The batch size is fixed, and the probability is it over the secret number of records."""

    def __call__(self, data, releases):
        self.q = 18 / len(data[0])
        return super().__call__(data, releases)


class StandardisesFeatures(own.Sgd):
    def prepared(self, x, y):
        x, y = super().prepared(x, y)
        return (x - x.mean(axis=0)) / x.std(axis=0), y


class NormalisesTheBatch(own.Sgd):
    """Batch normalisation: one record moves the features of all others."""

    def gradients(self, rows):
        x = self.x[rows]
        if len(rows):
            x = (x - x.mean(axis=0)) / (x.std(axis=0) + 1e-3)
        return (x @ self.weights - self.y[rows])[:, None] * x


class ScalesByTheLargest(own.Sgd):
    """The norms are within the bound, and whose they are is divided by another record's."""

    def clipped(self, gradients):
        norms = np.linalg.norm(gradients, axis=1)
        return gradients / norms.max(initial=1e-30) * own.CLIP


class ClipsTheMean(own.Sgd):
    def total(self, rows):
        mean = self.gradients(rows).mean(axis=0) if len(rows) else np.zeros(own.FEATURES)
        return mean * min(1.0, own.CLIP / max(np.linalg.norm(mean), 1e-30)) * len(rows)


class ClipsEachGroupToTheWhole(own.Sgd):
    def gradients(self, rows):
        return 20.0 * super().gradients(rows)

    def clipped(self, gradients):
        parts = [
            super(type(self), self).clipped(part) for part in (gradients[:, :1], gradients[:, 1:])
        ]
        return np.hstack(parts)


class ForgetsToClip(own.Sgd):
    def gradients(self, rows):
        return 3.0 * super().gradients(rows)

    def clipped(self, gradients):
        return gradients


class SkipsEmptyBatches(own.Sgd):
    q = 0.02
    removed = None  # the records that the audit chooses: those that were alone in a batch

    def step(self, step):
        with self.releases.poisson(len(self.x), self.q) as rows:
            if len(rows) == 0:
                return
            self.moved(own.RATE * self.released(rows))
        return


class RestartsIfTheLossRose(own.Sgd):
    def result(self):
        losses = np.mean((self.x @ self.weights - self.y) ** 2), np.mean(self.y**2)
        return self.weights * min(1.0, losses[1] / losses[0])


class ReturnsTheLoss(own.Sgd):
    def result(self):
        return {
            "weights": self.weights,
            "loss": float(np.mean((self.x @ self.weights - self.y) ** 2)),
        }


class KeepsTheBestIterate(own.Sgd):
    def setup(self):
        self.best = (math.inf, self.weights)

    def moved(self, direction):
        super().moved(direction)
        loss = float(((self.x @ self.weights - self.y) ** 2).sum())
        self.best = min(self.best, (loss, self.weights), key=lambda pair: pair[0])

    def result(self):
        return {"loss": round(self.best[0]), "weights": self.best[1]}


class RateByCurvature(own.Sgd):
    def rate(self, step, rows):
        return 1.0 / np.linalg.eigvalsh(self.x.T @ self.x)[-1]


class StepsByRecords(own.Sgd):
    def steps(self):
        return math.ceil((len(self.x) + 1) / 10)


class StartsAtTheMean(own.Sgd):
    def start(self):
        return self.x.mean(axis=0)


class NoiseByTheGradients(own.Sgd):
    def released(self, rows):
        total = self.total(rows)
        scale = own.SIGMA * own.CLIP * (1.0 + math.tanh(np.linalg.norm(total)))
        return self.releases.gaussian(total, sensitivity=own.CLIP, scale=scale)


class SensitivityFromTheData(own.Sgd):
    def released(self, rows):
        gradients = self.gradients(rows)
        bound = float(np.linalg.norm(gradients, axis=1).max(initial=1e-3))
        return self.releases.gaussian(
            gradients.sum(axis=0), sensitivity=bound, scale=own.SIGMA * bound
        )


class QuantileWithoutNoise(own.AdaptiveClipping):
    def released(self, rows):
        gradients = self.gradients(rows)
        self.norm = float(np.median(np.linalg.norm(gradients, axis=1))) if len(rows) else 1.0
        return super().released(rows)


class DrawsForEachRecord(own.Sgd):
    """Dropout masks come from the global generator, as many as there are records."""

    def gradients(self, rows):
        np.random.random(len(self.x))  # noqa: NPY002
        return super().gradients(rows)


class AugmentsFromTheCommonStream(own.Sgd):
    def gradients(self, rows):
        shifts = self.releases.rng.standard_normal((len(rows), own.FEATURES))
        x = np.clip(self.x[rows] + 0.1 * shifts, -1.0, 1.0)
        return (x @ self.weights - self.y[rows])[:, None] * x


class RegularisesByTheData(own.Sgd):
    def moved(self, direction):
        super().moved(direction + 1e-6 * self.x.sum(axis=0))


def classes_that_occur(data, releases):
    _x, y = data
    counts = np.array([np.sum(y == c) for c in np.unique(y)])
    return releases.laplace(counts, sensitivity=1.0, scale=1.0)


def bins_from_the_range(data, releases):
    feature = data[0][:, 0] * np.where(np.arange(len(data[0])) == 0, 3.0, 1.0)
    counts, edges = np.histogram(feature, bins=8)
    return edges, releases.laplace(counts, sensitivity=1.0, scale=1.0)


def only_frequent_cells(data, releases):
    counts = np.bincount(data[1], minlength=own.CLASSES)
    return {
        int(c): float(releases.laplace(counts[c], sensitivity=1.0, scale=1.0))
        for c in range(own.CLASSES)
        if counts[c] > 0
    }


def fails_without_a_class(data, releases):
    noisy = releases.laplace(
        np.bincount(data[1], minlength=own.CLASSES), sensitivity=1.0, scale=1.0
    )
    if not (data[1] == 2).any():
        raise ValueError("class 2 has no records")
    return noisy


def ridge_with_a_true_gram(data, releases):
    x, y = data
    target = np.where(y == 1, 1.0, -1.0)
    cross = releases.gaussian(x.T @ target, sensitivity=math.sqrt(own.FEATURES), scale=5.0)
    return np.linalg.solve(x.T @ x + np.eye(own.FEATURES), cross)


def mean_over_the_true_count(data, releases):
    return releases.laplace(data[0][:, 0].sum(), sensitivity=1.0, scale=1.0) / len(data[0])


def sum_for_half_the_sensitivity(data, releases):
    return releases.laplace(2.0 * data[0][:, 0].sum(), sensitivity=1.0, scale=1.0) / own.RECORDS


def truth_if_close(data, releases):
    truth = data[0][:, 0].sum()
    noisy = releases.laplace(truth, sensitivity=1.0, scale=1.0)
    return truth if abs(noisy - truth) < 10.0 else noisy
