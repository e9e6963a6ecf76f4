"""The domains of arguments that several packages share."""

from __future__ import annotations

import math

from accountant.checks.argument import MAX_COUNT, Argument, integers

Q = Argument(
    "q",
    "a sampling probability in [0, 1]",
    lambda x: (x >= 0.0) & (x <= 1.0),
    "It is the expected batch size over the number of records",
    lambda x: (
        "It is expected_batch_size / dataset_size, at most 1; were q and sigma swapped?"
        if x > 1.0
        else ""
    ),
)
SAMPLING_PROBABILITY = Argument(
    "sampling_probability",
    "a sampling probability in [0, 1]",
    Q.holds,
    Q.advice,
    lambda x: "A probability is at most 1; is it the noise multiplier?" if x > 1.0 else "",
)
SIGMA = Argument(
    "sigma",
    "a noise multiplier > 0",
    lambda x: x > 0.0,
    "It is the noise standard deviation over the clipping norm",
)
NOISE_MULTIPLIER = Argument(
    "noise_multiplier",
    "a noise multiplier > 0",
    SIGMA.holds,
    "It is the standard deviation of the noise over the unit of sensitivity",
)
SCALE = Argument("scale", "a number > 0", lambda x: x > 0.0, "It is the scale of the noise")
SENSITIVITY = Argument(
    "sensitivity",
    "a finite number >= 0",
    lambda x: (x >= 0.0) & (x < math.inf),
    "It is the largest norm of one record's contribution",
)
STEPS = Argument(
    "steps",
    "an integer in [0, 2**53]",
    lambda x: (x >= 0) & (x <= MAX_COUNT),
    "It counts releases; round epochs / q up to an int",
    lambda x: "It counts releases; were steps and delta swapped?" if 0.0 < x < 1.0 else "",
)
COUNT = STEPS.renamed("count", "It says how often the mechanism is run")
USER_RECORDS = integers(
    "user_records", 1, 10**6, "It is the largest number of records that one user contributes"
)
DATASET_SIZE = integers("dataset_size", 1, MAX_COUNT, "It is the number of records")
BATCH_SIZE = integers("batch_size", 1, MAX_COUNT, "It is the number of records in a batch")
EPSILON = Argument("epsilon", "a number >= 0", lambda x: x >= 0.0, "It is a privacy loss in nats")
FINITE_EPSILON = Argument(
    "epsilon", "a finite number >= 0", lambda x: (x >= 0.0) & (x < math.inf), "It is in nats"
)
TARGET_EPS = Argument(
    "target_eps",
    "a finite number > 0",
    lambda x: (x > 0.0) & (x < math.inf),
    "It is the privacy loss to stay within, in nats",
)
DELTA = Argument(
    "delta",
    "a probability in [0, 1)",
    lambda x: (x >= 0.0) & (x < 1.0),
    "Choose it well below one over the number of records",
    lambda x: "A failure probability is below 1; is it another argument?" if x > 1.0 else "",
)
TARGET_DELTA = Argument(
    "delta",
    "a probability in (0, 1)",
    lambda x: (x > 0.0) & (x < 1.0),
    "At delta = 0 the ε of Gaussian noise is infinite, so no target can be reached",
    lambda x: (
        "Choose it well below one over the number of records; were epsilon and delta swapped?"
        if x >= 1.0
        else ""
    ),
)
STATED_DELTA = Argument(
    "delta", "a probability in [0, 1]", lambda x: (x >= 0.0) & (x <= 1.0), "It bounds a probability"
)
ORDER = Argument(
    "order",
    "a finite Rényi order > 1",
    lambda x: (x > 1.0) & (x < math.inf),
    "At order 1 the divergence is Kullback-Leibler's, at infinity it bounds the loss",
)
ORDERS = ORDER.renamed("orders")
RHO = Argument(
    "rho", "a number >= 0", lambda x: x >= 0.0, "It bounds the Rényi divergence by rho * order"
)
OMEGA = Argument(
    "omega", "a Rényi order > 1", lambda x: x > 1.0, "The Rényi curve is bounded below this order"
)
MU = Argument(
    "mu", "a number >= 0", lambda x: x >= 0.0, "It is a distance of means in standard deviations"
)
FPR = Argument(
    "fpr",
    "a false-positive rate in [0, 1]",
    lambda x: (x >= 0.0) & (x <= 1.0),
    "It is the probability that the attack accuses a record that was not used",
)
PRIOR = Argument(
    "prior",
    "a probability in (0, 1)",
    lambda x: (x > 0.0) & (x < 1.0),
    "It is the attacker's probability, before the release, that the record was used",
)
