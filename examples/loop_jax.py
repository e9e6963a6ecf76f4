"""DP-SGD in JAX: the generator below hands out batches, and charges the ledger for each.

python examples/loop_jax.py [STEPS] [poisson|allocation]          (needs jax)
"""

import secrets
import sys

import numpy as np

from accountant import Accountant, BudgetExceeded, Gaussian, PoissonSampled, UnsupportedError
from accountant.learn.account import unaffordable
from accountant.sampling import PoissonSampler, RandomAllocation


def accounted(sampler, noise_multiplier, ledger):
    """Yield the sampler's batches, each recorded before it can be used.

    With random allocation every record picks one step of each epoch, so the ledger is charged for
    all epochs before the first batch.
    """
    if isinstance(sampler, RandomAllocation):
        ledger.compose(sampler.mechanism(noise_multiplier))
        yield from sampler.batches()
        return
    if not isinstance(sampler, PoissonSampler):
        raise UnsupportedError(
            f"batches must come from a PoissonSampler; got a {type(sampler).__name__}. Another"
            " sampler of accountant.sampling has a mechanism of its own: compose that instead"
        )
    if ledger.budget is not None and len(ledger) == 0:
        # The exact composition of all steps; when to stop stays free.
        step = PoissonSampled(Gaussian(noise_multiplier), sampler.sampling_probability)
        try:
            ledger.plan(step, sampler.steps)
        except BudgetExceeded as refusal:
            # What the run costs, what is left, and which noise, rate or number of steps would fit.
            told = unaffordable(
                ledger, "gaussian", noise_multiplier, sampler.sampling_probability, None,
                sampler.steps,
            )  # fmt: skip
            raise BudgetExceeded(told) from refusal
    for batch in sampler.batches():
        ledger.step(
            noise_multiplier=noise_multiplier,
            sampling_probability=sampler.sampling_probability,
        )
        yield batch


def padded(batch, size):
    """Return indices of a fixed shape, which JAX compiles once, and a mask of the real ones.

    A batch that does not fit would have to be cut, which is another mechanism.
    """
    if len(batch) > size:
        raise UnsupportedError(f"a batch of {len(batch)} does not fit into {size}; raise the size")
    return np.pad(batch, (0, size - len(batch))), np.arange(size) < len(batch)


def main(steps=200, kind="poisson", noise_multiplier=1.2, probability=0.05):
    import jax
    import jax.numpy as jnp

    x = jax.random.normal(jax.random.key(0), (2000, 10))
    y = (x[:, 0] > 0).astype(jnp.float32)

    def loss(w, x, y):
        z = x @ w[:-1] + w[-1]
        return jnp.logaddexp(0.0, z) - y * z

    @jax.jit
    def step(w, rows, mask, key):
        gradients = jax.vmap(jax.grad(loss), in_axes=(None, 0, 0))(w, x[rows], y[rows])
        norms = jnp.linalg.norm(gradients, axis=1, keepdims=True)
        clipped = gradients / jnp.maximum(norms, 1.0) * mask[:, None]
        noise = noise_multiplier * jax.random.normal(key, w.shape)
        return w - (clipped.sum(0) + noise) / (probability * len(x))

    ledger, w = Accountant(), jnp.zeros(11)
    key = jax.random.key(secrets.randbits(32))  # whoever knows it can subtract the noise
    if kind == "allocation":
        each = min(round(1.0 / probability), steps)
        sampler = RandomAllocation(
            dataset_size=len(x), steps_per_epoch=each, epochs=max(steps // each, 1)
        )
    else:
        sampler = PoissonSampler(dataset_size=len(x), sampling_probability=probability, steps=steps)
    for batch in accounted(sampler, noise_multiplier, ledger):
        key, fresh = jax.random.split(key)
        w = step(w, *padded(batch, 256), fresh)
    accuracy = float((((x @ w[:-1] + w[-1]) > 0) == (y > 0)).mean())
    print(
        f"{sampler.steps} steps, ε = {ledger.epsilon(1e-5):.4f} at δ = 1e-5,"
        f" accuracy {accuracy:.2f}"
    )
    return ledger


if __name__ == "__main__":
    main(*(int(n) for n in sys.argv[1:2]), *sys.argv[2:3])
