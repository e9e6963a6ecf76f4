"""What the package offers: every public name, so that none stays without a case unnoticed."""

import importlib
import inspect
import pkgutil

import accountant.learn
from accountant.adapters import sklearn

RANDOMNESS = {"rng", "generator", "source", "random_state", "secure"}

# Names that see no private record, or release nothing of one: what they are instead.
WITHOUT_RELEASES = {
    "a schedule, an optimiser or an average: functions of what was released": (
        "SGD AdaGrad Adam AdamW DPAdam RMSProp cosine inverse_square_root polynomial"
        " step_decay warmup LastIterate MeanOfLast MovingAverage"
    ),
    "settings, results, records of what was spent, and errors": (
        "Batches Noise Watch Checkpoint CheckpointError TrainingResult PrivateResult BlockResult"
        " SearchResult Selection PateResult Refusal DataDependentRelease MeanEstimate"
        " FrequencyEstimate Synthesis GanSynthesis MarginalSynthesis PateGanSynthesis"
        " UnpaidReleaseWarning UnsetBoundWarning"
    ),
    "a loss or a clipping rule, run by the cases of the trainers": (
        "Flat Logistic HuberHinge Huber BoundedPoisson Softmax Loss"
    ),
    "an abstract class": "Model",
    "mechanisms, calibration and bounds: public numbers in, public numbers out": (
        "ObjectivePerturbation calibrate_objective gibbs_posterior_mu last_iterate_mu"
        " minimum_sensitivity permutation_sgd_sensitivity ShuffledResponses shuffled_epsilon"
    ),
    "functions of released values": "estimate_mean draw_runs",
    "private bounds, which are documented as such and never released as they stand": (
        "data_dependent_rdp gaussian_data_dependent_rdp laplace_data_dependent_rdp"
        " log_probability_of_another"
    ),
}
# Public names of modules, used by what the rooms offer and covered through it.
WITHIN = {
    "accountant.learn.account.charged": "perturb_output",
    "accountant.learn.account.marked": "train_dp_sgd",
    "accountant.learn.convex.fit.NoiseSource": "perturb_output",
    "accountant.learn.convex.fit.Fit": "perturb_output",
    "accountant.learn.generation.dp_gan.Generator": "train_dp_gan",
    "accountant.learn.generation.dp_gan.GeneratorSynthesis": "train_dp_gan",
    "accountant.learn.generation.pate_gan.Teachers": "train_pate_gan",
    "accountant.learn.pate.ensemble.assign_shards": "TeacherEnsemble",
    "accountant.learn.models.base.public_rows": "train_dp_sgd",
    "accountant.learn.models.base.rearranged": "train_dp_sgd",
    "accountant.learn.release.release_fraction": "train_dp_sgd",
    "accountant.learn.run.Run": "train_dp_sgd",
    "accountant.learn.run.draw_batch": "train_dp_sgd",
    "accountant.learn.selection.noisy_max.generator_of": "report_noisy_max",
}


def offered():
    """Return what the rooms under ``accountant.learn`` and the estimators' module offer."""
    found = {}
    for module in _modules():
        if hasattr(module, "__all__"):
            for name in module.__all__:
                found[f"{module.__name__}.{name}"] = getattr(module, name)
    return found


def drawing():
    """Return every public name of a module that takes randomness: what releases takes some."""
    found = {}
    for module in _modules():
        for name, value in vars(module).items():
            own = callable(value) and getattr(value, "__module__", "") == module.__name__
            if own and not name.startswith("_") and RANDOMNESS & set(_parameters(value)):
                found[f"{module.__name__}.{name}"] = value
    return found


def unaccounted(covers):
    """Return the names that no case covers and no list explains."""
    cased = {id(resolve(name)) for name in covers}
    explained = {word for words in WITHOUT_RELEASES.values() for word in words.split()}
    missing = [
        name
        for name, value in offered().items()
        if id(value) not in cased and name.rpartition(".")[2] not in explained
    ]
    known = cased | {id(v) for n, v in offered().items() if n.rpartition(".")[2] in explained}
    return missing + [
        name for name, value in drawing().items() if id(value) not in known and name not in WITHIN
    ]


def resolve(name):
    """Return the object of a dotted name."""
    module, _, last = name.rpartition(".")
    return getattr(importlib.import_module(module), last)


def _modules():
    yield accountant.learn
    for entry in pkgutil.walk_packages(accountant.learn.__path__, "accountant.learn."):
        yield importlib.import_module(entry.name)
    yield sklearn


def _parameters(value):
    try:
        return list(inspect.signature(value).parameters)
    except (TypeError, ValueError):
        return []
