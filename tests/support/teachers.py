"""A model for examples with teachers, in a module that their processes can import."""

import numpy as np

__all__ = ["Nearest"]


class Nearest:
    """A teacher or student with nothing to learn slowly: the nearest of the classes' means."""

    def fit(self, X, y):  # noqa: N803
        self.means = {label: X[y == label].mean(axis=0) for label in np.unique(y)}
        return self

    def predict(self, X):  # noqa: N803
        labels = np.array(list(self.means))
        apart = [((X - self.means[label]) ** 2).sum(axis=1) for label in labels]
        return labels[np.argmin(apart, axis=0)]
