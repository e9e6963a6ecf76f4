"""Documents that a checker of certificates must accept or refuse, and why.

Nearly all are about one run, or one step, of which the truth is known: ε(1e-5) = 1.82823666… for
1,000 steps at q = 0.01, σ = 1. The false claims lower ε and bend the evidence in every way that
would make the computed bound smaller if some term were left out of it.
"""

import copy
import json

import accountant as ac

STEP = ac.PoissonSampled(ac.Gaussian(1.0), 0.01)


def scaled(document, way, key, factor):
    """Scale a number of the line, or of all its rules."""
    evidence = document["evidence"][way]
    places = [evidence] if key in evidence else [r for r in evidence.get("rules", ()) if r]
    for place in places:
        if key in place:
            value = place[key] * factor
            place[key] = max(round(value), 1) if key in ("orders", "nodes") else value
    return document


def one_way(run, delta, remove):
    """A certificate for one direction at the least ε of that direction."""
    from accountant.certificates.claim import evidence_of, statement_of

    steps, way = statement_of(run)[0], "remove" if remove else "add"
    solver = run.profile().solvers()[0 if remove else -1]
    epsilon = float(solver.epsilon_bounds(delta * (1 - 3e-9)).upper)
    claim = {"relation": "add-or-remove", "direction": way, "epsilon": epsilon, "delta": delta}
    claim["parts"] = [step.listed() for step in steps]
    evidence = {way: evidence_of(steps, epsilon, delta, remove=remove)}
    return {"format": "dp-certificate", "version": 1, "claim": claim, "evidence": evidence}


def bent(document, way):
    """Yield the document with its evidence bent in many ways."""
    for key in ("orders", "nodes", "step", "distance", "rise", "spacing", "first"):
        for factor in (0.02, 0.1, 0.3, 0.6, 0.9, 1.1, 1.5, 3.0, 10.0):
            yield scaled(copy.deepcopy(document), way, key, factor)
    for share in (0.2, 0.3, 0.36, 0.4, 0.43, 0.46, 0.5):
        for upper in (False, True):
            less = copy.deepcopy(document)
            for each in less["evidence"][way].get("rules", ()):
                cut = round(share * each["nodes"])
                each["nodes"] -= cut
                each["first"] += 0.0 if upper else cut * each["spacing"]
                each.pop("decay", None)
            yield less
    for wider in (2, 3, 5, 8, 12):  # few nodes, at four offsets: their sums err to both sides
        for offset in (0.0, 0.25, 0.5, 0.75):
            less = copy.deepcopy(document)
            for each in less["evidence"][way].get("rules", ()):
                each["first"] += offset * wider * each["spacing"]
                each["spacing"] *= wider
                each["nodes"] = each["nodes"] // wider + 1
                each.pop("decay", None)
            yield less
    less = copy.deepcopy(document)
    less["evidence"][way]["kind"] = "chernoff"
    for key in ("orders", "step"):
        less["evidence"][way].pop(key, None)
    yield less


def beside(remove):
    """Return a false claim whose window leaves out nearly all noise, on the side below it."""
    rule = {"rise": 0.1, "spacing": 0.02, "first": 2.01, "nodes": 600}
    evidence = {"kind": "chernoff", "distance": 0.5, "rules": [rule]}
    way = "remove" if remove else "add"
    part = {"sigma": 1.0, "shifts": [1.0], "weights": [0.3], "count": 2}
    claim = {"relation": "add-or-remove", "direction": way, "epsilon": 0, "delta": 0.15}
    claim["parts"] = [part]
    document = {"format": "dp-certificate", "version": 1, "claim": claim}
    return document | {"evidence": {way: evidence}}


def above_the_zeros():
    """Yield false claims whose path is above the first zero of e^L, near which much noise is."""
    for q in (0.3, 0.5):
        document = one_way(2 * ac.PoissonSampled(ac.Gaussian(1.0), q), 0.1, remove=True)
        for less in (0.98, 0.7):
            for rise in (2.0, 3.4):  # the zero is at the height pi
                false = copy.deepcopy(document)
                false["claim"]["epsilon"] *= less
                for rule in false["evidence"]["remove"]["rules"]:
                    rule["rise"] = rise
                yield false


def labelled():
    """Yield false claims about rare events, with labels that leave most to one term of K3."""
    run = 380 * ac.PoissonSampled(ac.Gaussian(0.594), 3.77e-5)
    document = one_way(run, 1e-17, remove=True)
    document["claim"]["epsilon"] *= 0.999
    for labels, more in (
        ({}, {}),
        ({"upper": 5.0}, {}),
        ({"upper": 5.0}, {"reverse": 20.0}),
        ({"lower": 7.9}, {}),
    ):
        bent = copy.deepcopy(document)
        bent["evidence"]["remove"] |= more
        bent["evidence"]["remove"]["rules"][0]["labels"] |= labels
        yield bent


def gridded():
    """Yield (document, whether it must pass): laws on knots, and false claims on bent ones."""
    sample = ac.PoissonSampled(ac.Laplace(1.0), 0.2)
    runs = (
        (40 * ac.RandomizedResponse(0.3, k=3), 1e-3),
        (3 * sample, 1e-2),
        (2 * ac.PoissonSampled(ac.DiscreteGaussian(1.5), 0.5), 1e-3),
        (9 * ac.DiscreteLaplace(2.0, sensitivity=2), 1e-3),
        (2 * ac.PoissonSampled(ac.Gaussian(0.7077), 4.29e-7), 2.68e-8),
        (3 * ac.ApproximateDP(0.5, delta=1e-3), 0.01),
    )
    for run, delta in runs:
        honest = json.loads(ac.certificate(run, delta).text)
        yield honest, True
        for less in (0.999, 0.7):
            false = copy.deepcopy(honest)
            false["claim"]["epsilon"] *= less
            for key in ("low", "high", "spacing", "bits"):
                for factor in (0.1, 0.5, 0.8, 1.0, 1.3):
                    bent = copy.deepcopy(false)
                    for evidence in bent["evidence"].values():
                        if key in evidence:
                            value = evidence[key] * factor
                            evidence[key] = value if key == "spacing" else round(value)
                    yield bent, False


def incomplete():
    """Yield false claims that forget outcomes: infinite losses, or those that are not listed."""
    run = 3 * ac.ApproximateDP(0.5, delta=1e-3)
    document = json.loads(ac.certificate(run, 0.01).text)
    document["claim"] |= {"epsilon": 1.6, "delta": 2.9e-3}  # infinite losses: 2.997e-3
    yield document
    document = json.loads(ac.certificate(run, 0.01).text)
    half = {"p": [0.25, 0.25], "q": [0.25, 0.25], "count": 3}
    document["claim"] |= {"epsilon": 0.1, "delta": 0.01, "parts": [half]}
    yield document


def coarse():
    """Yield false claims whose nodes are so far apart that sums err, with orders enough for it."""
    for remove, wider in ((True, 6), (False, 8)):
        way = "remove" if remove else "add"
        document = one_way(2 * ac.PoissonSampled(ac.Gaussian(1.0), 0.3), 1e-5, remove)
        document["claim"]["epsilon"] *= 0.999
        for offset in (0.0, 0.25, 0.5, 0.75):
            less = scaled(copy.deepcopy(document), way, "orders", 20)
            for each in less["evidence"][way]["rules"]:
                each["first"] += offset * wider * each["spacing"]
                each["spacing"] *= wider
                each["nodes"] = each["nodes"] // wider + 1
                each.pop("decay", None)
            yield less


def probes():
    """Yield (text, whether it must pass)."""
    for each in (*incomplete(), *coarse(), *above_the_zeros(), *labelled()):
        yield json.dumps(each), False
    for each, passes in gridded():
        yield json.dumps(each), passes
    runs = ((1000 * STEP, 1e-5), (2 * ac.PoissonSampled(ac.Gaussian(1.0), 0.3), 1e-5))
    for run, delta in runs:
        for remove in (True, False):
            way = "remove" if remove else "add"
            honest = one_way(run, delta, remove)
            yield json.dumps(honest), True
            for less in (0.999, 0.98, 0.8):
                false = copy.deepcopy(honest)
                false["claim"]["epsilon"] *= less
                yield json.dumps(false), False
                for each in bent(false, way):
                    yield json.dumps(each), False
            more = copy.deepcopy(honest)
            part = more["claim"]["parts"][0]
            part["count"] = round(part["count"] * 1.01) + 1
            yield json.dumps(more), False
    for remove in (True, False):
        yield json.dumps(beside(remove)), False
        honest = one_way(STEP, 1e-5, remove)
        yield json.dumps(honest), True
        for moved in (-0.1, 0.1):
            false = copy.deepcopy(honest)
            false["claim"]["epsilon"] *= 0.999
            (evidence,) = false["evidence"].values()
            if "threshold" in evidence:
                evidence["threshold"] += moved
            yield json.dumps(false), False
