"""DP-SGD in Keras: a data set of Poisson batches, a model that clips and adds noise, a callback.

KERAS_BACKEND=jax python examples/loop_keras.py          (needs keras and jax)
"""

import os
import secrets
import sys

import numpy as np

from accountant import Accountant, Gaussian, PoissonSampled, UnsupportedError
from accountant.sampling import PoissonSampler

os.environ.setdefault("KERAS_BACKEND", "jax")
try:
    from keras.callbacks import Callback
except ImportError:  # the callback itself needs nothing of Keras
    Callback = object


class PrivacyCallback(Callback):
    """Records every step before it is taken; refuses batches that are no Poisson samples."""

    def __init__(self, batches, noise_multiplier, ledger):
        super().__init__()
        sampler = getattr(batches, "sampler", None)
        if not isinstance(sampler, PoissonSampler):
            raise UnsupportedError(
                f"batches must be drawn by a PoissonSampler; got a {type(sampler).__name__}."
                " fit(x, y, shuffle=True) is another mechanism"
            )
        self.ledger, self.noise_multiplier = ledger, noise_multiplier
        self.probability = sampler.sampling_probability
        if ledger.budget is not None and len(ledger) == 0:
            # The exact composition of all steps; when to stop stays free.
            ledger.plan(PoissonSampled(Gaussian(noise_multiplier), self.probability), sampler.steps)

    def on_train_batch_begin(self, batch, logs=None):
        """Charge the ledger."""
        self.ledger.step(
            noise_multiplier=self.noise_multiplier, sampling_probability=self.probability
        )


class PoissonBatches:
    """Batches of one epoch, padded to one shape; the weights mark the records that were drawn."""

    def __init__(self, sampler, x, y, size):
        self.sampler, self.x, self.y, self.size = sampler, x, y, size

    def __iter__(self):
        for batch in self.sampler.batches():
            if len(batch) > self.size:
                raise UnsupportedError(f"a batch of {len(batch)} does not fit; raise the size")
            rows = np.pad(batch, (0, self.size - len(batch)))
            weights = (np.arange(self.size) < len(batch)).astype(np.float32)
            yield self.x[rows], self.y[rows], weights


def main(steps=200, noise_multiplier=1.2, probability=0.05):
    import jax
    import jax.numpy as jnp
    import keras

    secret = jax.random.key(secrets.randbits(32))  # whoever knows it can subtract the noise

    class PrivateModel(keras.Sequential):
        """Clips each record's gradient to norm one and adds noise; JAX backend."""

        def train_step(self, state, data):
            trainable, rest, optimizer, metrics = state
            x, y, weights = data

            def loss(variables, x, y):
                z, _ = self.stateless_call(variables, rest, x[None], training=True)
                return keras.losses.sparse_categorical_crossentropy(y[None], z, True)[0]

            rows = jax.vmap(jax.grad(loss), (None, 0, 0))(trainable, x, y)
            norms = jnp.sqrt(sum((g.reshape(len(x), -1) ** 2).sum(1) for g in rows))
            factor = weights / jnp.maximum(norms, 1.0)
            seed = jax.random.fold_in(secret, optimizer[0].astype(int))
            gradients = [
                (
                    jnp.einsum("i,i...", factor, g)
                    + noise_multiplier * jax.random.normal(jax.random.fold_in(seed, i), g.shape[1:])
                )
                / (probability * records)
                for i, g in enumerate(rows)
            ]
            trainable, optimizer = self.optimizer.stateless_apply(optimizer, gradients, trainable)
            return {}, (trainable, rest, optimizer, metrics)

    keras.utils.set_random_seed(0)
    x = np.random.default_rng(0).normal(size=(2000, 10)).astype(np.float32)
    y = (x[:, 0] > 0).astype(np.int32)
    records = len(x)
    model = PrivateModel([keras.Input((10,)), keras.layers.Dense(2)])
    model.compile(keras.optimizers.SGD(1.0))
    batches = PoissonBatches(
        PoissonSampler(dataset_size=records, sampling_probability=probability, steps=steps),
        x,
        y,
        256,
    )
    ledger = Accountant()
    callback = PrivacyCallback(batches, noise_multiplier, ledger)
    model.fit(iter(batches), steps_per_epoch=steps, epochs=1, callbacks=[callback], verbose=0)
    accuracy = float((np.asarray(model(x)).argmax(1) == y).mean())
    print(
        f"{len(ledger)} steps, ε = {ledger.epsilon(1e-5):.4f} at δ = 1e-5, accuracy {accuracy:.2f}"
    )
    return ledger


if __name__ == "__main__":
    main(*(int(n) for n in sys.argv[1:2]))
