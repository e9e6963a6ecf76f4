"""Ten mistakes that a type checker must report, one a line that ends in "typo"."""

import accountant as ac
from accountant.report import Deployment, statement

step = ac.PoissonSampled(ac.Gaussian(1.1), 0.01)
ledger = ac.Accountant()

ac.Gausian(1.1)  # typo
ac.get_epsilon(0.01, sigm=1.1, steps=1000, delta=1e-5)  # typo
(10 * step + ac.Laplace(2.0)).epsilonn(1e-5)  # typo
ledger.compse(step)  # typo
ledger.compose(step, "10")  # typo
trainer = ac.learn.train_dpsgd  # typo
upper = (3 * step).epsilon_bounds(1e-5).uper  # typo
Deployment(recods=10)  # typo
statement(ledger).htm()  # typo
label = ledger.history[0].lable  # typo
