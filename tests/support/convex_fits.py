"""Every convex fit with ordinary settings, by name: what all of them must do is asked of each."""

from accountant.learn import convex

FIT = {"epsilon": 1.0, "delta": 1e-5}
ROWS = FIT | {"data_norm": 1.0}
OF_X_AND_Y = {
    "perturb_objective": ROWS,
    "perturb_output": ROWS | {"regularization": 1.0},
    "gibbs_posterior": ROWS | {"regularization": 1.0},
    "exponential_mechanism": {"epsilon": 1.0, "data_norm": 1.0, "radius": 1.0, "points": 5},
    "noisy_gradient_descent": ROWS | {"steps": 2, "step_size": 0.1},
    "bolt_on_sgd": ROWS | {"batch_size": 1, "passes": 1},
    "private_ridge": ROWS | {"target_bound": 1.0},
    "ada_ssp": ROWS | {"target_bound": 1.0},
}
OF_X = {"private_mean": FIT | {"bound": 1.0}, "private_covariance": FIT | {"bound": 1.0}}


def fitted(name):
    """Return a call of a fit by its records, their labels, and other settings."""

    def fit(x, y, **given):
        if name == "private_quantile":
            settings = {"epsilon": 1.0, "lower": -1.0, "upper": 1.0}
            return convex.private_quantile(y, 0.5, **settings, **given)
        if name in OF_X:
            return getattr(convex, name)(x, **OF_X[name] | given)
        return getattr(convex, name)(x, y, **OF_X_AND_Y[name] | given)

    return fit


FITS = {name: fitted(name) for name in (*OF_X_AND_Y, *OF_X, "private_quantile")}
