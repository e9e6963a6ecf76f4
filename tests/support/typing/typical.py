"""Some sixty lines as users write them; tests/test_types.py has them checked."""

import numpy as np

import accountant as ac
from accountant import learn, sampling
from accountant.report import Deployment, statement

step = ac.PoissonSampled(ac.Gaussian(1.1), 0.01)
query = ac.Laplace(5.0)
run = 1000 * step
mixed = 10 * step + query
more = run + mixed + 3 * query
twice = mixed * 2
total = sum([step, query], start=1 * query)
epsilon = run.epsilon(1e-5)
epsilons = run.epsilon([1e-5, 1e-6])
bracket = mixed.epsilon_bounds(1e-5)
low, high = bracket
width = bracket.width
delta = mixed.delta(1.0)
deltas = mixed.delta(np.linspace(0.0, 1.0, 5))
group = step.group(3)
explanation = mixed.explain(1e-5)
both = ac.parallel(step, query)
relation = mixed.relation
first = ac.get_epsilon(0.01, 1.1, 1000, 1e-5)
many = ac.get_epsilon([0.01, 0.02], 1.1, 1000, 1e-5)
second = ac.get_delta(0.01, 1.1, 1000, 1.0)
third = ac.epsilon_bounds(0.01, 1.1, 1000, 1e-5)
sigma = ac.calibrate_sigma(3.0, 1e-5, q=0.01, steps=1000)
steps = ac.calibrate_steps(3.0, 1e-5, q=0.01, sigma=1.1)
q = ac.calibrate_q(3.0, 1e-5, sigma=1.1, steps=1000)
rdp = ac.get_rdp(0.01, 1.1, 1000, 8.0)
found = ac.calibrate(lambda s: 100 * ac.Gaussian(s), epsilon=3.0, delta=1e-5)
budget = ac.Budget(3.0, 1e-5)
ledger = ac.Accountant(budget)
planned = ledger.plan(step, 100)
ledger.compose(step, 10, label="training")
left = ledger.affordable(step)
spent = ledger.epsilon(1e-5)
curve = ledger.epsilon_over_steps(1e-5)
history = ledger.history
label = history[0].label
count = history[0].count
text = ledger.to_json()
again = ac.Accountant.from_json(text)
remaining = ledger.remaining()
made = statement(ledger, deployment=Deployment(unit="one visit"))
page = made.html()
number = made.headline.epsilon
comparison = ac.compare_samplers(
    dataset_size=1000,
    batch_size=100,
    epochs=1,
    noise_multiplier=1.0,
    delta=1e-5,
    samplers=["poisson"],
)
rows = comparison.rows
name = rows[0].sampler
sampler = sampling.PoissonSampler(dataset_size=1000, sampling_probability=0.1, steps=10)
best = ac.BestOfRuns(step, 0.5)
odometer = ac.Odometer(1e-6)
noisy = ac.ReportNoisyMax(1.0)
X = np.zeros((10, 2))
y = np.zeros(10)
model = learn.LogisticRegression(2)
result = learn.train_dp_sgd(
    model,
    X,
    y,
    batches=learn.Batches(2, steps=3),
    noise=learn.Noise(target_epsilon=3.0),
    clipping_norm=1.0,
    delta=1e-5,
)
weights = result.parameters
spent2 = result.epsilon
