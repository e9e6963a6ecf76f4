"""A budget: an (ε, δ) that must not be exceeded, and the filter that enforces it."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, fields
from typing import Any

from accountant import checks
from accountant.analyses import renyi_conversion
from accountant.composition.composition import same_relation
from accountant.environment import to_nearest
from accountant.errors import DomainError
from accountant.ledger import evaluation, filters
from accountant.ledger.kinds import noise_levels, packets_for
from accountant.ledger.meters import CANDIDATES, LEVELS, ORDER, Limits, default_orders
from accountant.mechanisms.base import Mechanism
from accountant.mechanisms.fields import mechanism_of

FILTERS = ("moments", "renyi", "gaussian", "approximate", "kinds", "non-adaptive", "pure")
# What each filter that has a share does without one given.
_SHARES = {"moments": 0.0625, "renyi": 0.0, "approximate": 0.5}

# The filters that add up at Rényi orders.
_BY_ORDERS = ("moments", "renyi")
# What belongs to some filters alone.
_OWNERS: dict[str, Collection[str]] = {
    "share": _SHARES,
    "orders": _BY_ORDERS,
    "kinds": ("kinds",),
    "packets": ("kinds",),
}

# Every kind is tried in every unit of a budget.
MOST_KINDS = 64

_SHARE = checks.Argument("share", "in [0, 1 - 1e-6]", lambda x: (x >= 0.0) & (x <= 1.0 - 1e-6), "")
_PACKET = checks.integers("packets", 1, 2**20, "They are numbers of releases and of units")
_DELTA = checks.Argument(
    "delta", "0, or in [1e-300, 1)", lambda x: (x == 0.0) | ((x >= 1e-300) & (x < 1.0)), ""
)
_LEVEL = checks.positive("level", "It is the ρ or the μ to stay within")


@dataclass(frozen=True)
class Budget(Limits):
    """An (ε, δ) not to be exceeded, even by mechanisms chosen after seeing earlier releases.

    Parameters
    ----------
    epsilon : float
        In nats, finite and > 0.
    delta : float
        In [1e-300, 1), or 0 for a pure budget, which takes pure mechanisms alone.
    filter : {"moments", "renyi", "gaussian", "approximate", "kinds", "non-adaptive", "pure"}
        What is added up; left out, ``"moments"``, and ``"pure"`` where δ is 0. What basic
        composition allows, the sum of the largest losses, every filter allows (L18). ``"pure"``:
        this sum alone. ``"moments"``: exponential moments of the losses up to an end, and the
        masses beyond it, for any mechanism with a Rényi curve. ``"renyi"``: Rényi divergences, as
        filters were before.
        ``"gaussian"``: μ², for Gaussian mechanisms without subsampling; loses nothing for them.
        ``"approximate"``: ε² and δ of pure and approximate mechanisms. ``"kinds"``: any number
        of releases of ``kinds`` fixed in advance, in any order. ``"non-adaptive"``: the exact
        composition itself, *valid only if all parameters were fixed in advance*.
    orders : float or sequence of float, optional
        For ``"moments"`` and ``"renyi"``, the orders, fixed in advance. By the first they are mixed
        with equal weights; by the second they share ``delta`` equally, and the best of them
        decides. None chooses three, which serve Gaussian noise and DP-SGD alike; where the
        mechanism is known, :meth:`suited_to` finds the one order that is best for it.
    share : float, optional
        For ``"moments"``, ``"renyi"`` and ``"approximate"``, the part of ``delta`` set aside for
        the releases' own deltas and, by the first, for losses beyond an end; in [0, 1). By
        default 1/16, 0 (which takes no release that has a delta) and 1/2.
    kinds : sequence of Mechanism, optional
        For ``"kinds"``: what may be released, at most 64. Poisson-subsampled and plain Gaussian
        steps with more noise or a smaller sampling probability than one of them may be, too.
        :meth:`for_noise` makes them for a range of noise.
    packets : sequence of (int, int), optional
        For ``"kinds"``: how many releases of each are paid at a time, and in how many units. Chosen
        when left out; a file keeps them, because the guarantee is that of one choice.
    level : float, optional
        What :meth:`rho` and :meth:`mu` set; ε and δ are nan then.

    Raises
    ------
    DomainError, ArgumentTypeError
        An argument is outside its domain, of the wrong type, or belongs to another filter; or no
        order leaves anything to spend.

    Notes
    -----
    *Guarantee.* Attached to an :class:`~accountant.ledger.Accountant` before its first record, the
    whole interaction is (ε, δ)-differentially private under the mechanisms' relation, where each
    mechanism, its parameters and whether to stop may depend on all earlier outputs
    (docs/theorems_ledger.md: L17 for ``"moments"``, L3 and L4 ``"renyi"``, L5 ``"gaussian"``, L7
    ``"approximate"``, L13 ``"kinds"``, L18 ``"pure"``). A number that has at most 15 digits, here
    and in ``PureDP`` and other claims, is the decimal that was written (L18).
    For ``"non-adaptive"`` the mechanisms may depend on earlier outputs but their privacy
    parameters and their order may not (L1).

    *Source.* Feldman, Zrnic 2021; Lécuyer 2021; Smith, Thakurta 2022; Koskela, Tobaben, Honkela
    2023; Whitehouse, Ramdas, Rogers, Wu 2023.

    Examples
    --------
    >>> Budget(3.0, 1e-5)
    Budget(3.0, 1e-05)
    >>> Budget(3.0, 1e-5, orders=[8, 16]).orders
    (8.0, 16.0)
    >>> Budget(1.0).filter, Budget.rho(0.5)
    ('pure', Budget.rho(0.5))
    """

    @to_nearest
    def __post_init__(self) -> None:
        if self.level is not None or self.filter in LEVELS:
            self._check_level()
            return
        self._set("epsilon", checks.number(checks.TARGET_EPS.renamed("epsilon"), self.epsilon))
        self._set("delta", checks.number(_DELTA, self.delta))
        if self.filter == "":
            self._set("filter", "moments" if self.delta else "pure")
        checks.choice("filter", self.filter, FILTERS)
        if (self.filter == "pure") != (self.delta == 0.0):
            own = self.filter, self.delta
            raise DomainError(f'filter must be "pure" if and only if delta is 0; got {own}')
        for name, owners in _OWNERS.items():
            if getattr(self, name) is not None and self.filter not in owners:
                raise DomainError(f"{name} belong to {', '.join(owners)}; leave them out")
        self._set("share", self._resolved_share())
        self._set("orders", self._resolved_orders())
        self._set("kinds", self._resolved_kinds())
        self._set("packets", self._resolved_packets())

    @classmethod
    def rho(cls, rho: float) -> Budget:
        """Return a budget of ρ: the whole interaction is ρ-zCDP, and the sum of ρ is the account.

        Every release needs a ρ, which noise without a sample, pure mechanisms and ``ZCDP`` have
        (docs/theorems_ledger.md, L19). ``zcdp_to_epsilon`` says what ε that is at a δ.
        """
        return cls(math.nan, math.nan, "zcdp", level=rho)

    @classmethod
    def mu(cls, mu: float) -> Budget:
        """Return a budget of μ: the whole interaction is μ-GDP, and the sum of μ² the account.

        Every release needs a μ, which Gaussian noise, pure mechanisms and ``GDP`` have
        (docs/theorems_ledger.md, L5 and L19). ``GDP(mu).epsilon(delta)`` says what ε that is.
        """
        return cls(math.nan, math.nan, "gdp", level=mu)

    @classmethod
    @to_nearest
    def suited_to(
        cls, mechanism: Mechanism, epsilon: float, delta: float, *, share: float | None = None
    ) -> Budget:
        """Return the budget whose single Rényi order allows most releases of ``mechanism``.

        Parameters
        ----------
        mechanism : Mechanism
            What will be released most. Anything else may be released, too.
        epsilon, delta, share
            As for the class. Choose them, and the mechanism, before the first release.
        """
        trial = cls(epsilon, delta, share=share)
        if trial.filter == "pure":
            return trial  # it has no orders

        def allowed(order: float) -> int:
            if not renyi_conversion.capacity_lower(order, trial.epsilon, trial.losses_delta) > 0.0:
                return 0
            one = cls(epsilon, delta, orders=order, share=share)
            return filters.meter(one).affordable(mechanism)

        # Coarse, then fine: the count is a smooth function of the order but for its steps.
        coarse = CANDIDATES[::8]
        best = max(range(len(coarse)), key=lambda k: allowed(coarse[k]))
        near = CANDIDATES[max(8 * best - 8, 0) : 8 * best + 9]
        order = max(near, key=allowed)
        # Where not one release is allowed, the default orders are as good.
        return cls(epsilon, delta, orders=order, share=share) if allowed(order) else trial

    @classmethod
    @to_nearest
    def for_noise(
        cls,
        epsilon: float,
        delta: float,
        *,
        sampling_probability: float,
        noise_multipliers: tuple[float, float],
    ) -> Budget:
        """Return a budget for DP-SGD steps at one rate whose noise is chosen as one goes.

        Parameters
        ----------
        epsilon, delta : float
            As for the class.
        sampling_probability : float
            In (0, 1]; steps at a smaller one are charged as at this one.
        noise_multipliers : (float, float)
            The least and the largest noise multiplier of interest. Less noise is refused. Other
            noise is charged as the next smaller of at most 24 levels; where a schedule has levels
            of its own, give them as ``kinds``.
        """
        q = checks.number(checks.SAMPLING_PROBABILITY, sampling_probability)
        pair = checks.sequence("noise_multipliers", noise_multipliers)
        if len(pair) != 2 or not pair[0] <= pair[1]:
            raise DomainError(f"noise_multipliers must be two, the least first; got {pair!r}")
        low, high = (checks.number(checks.NOISE_MULTIPLIER, value) for value in pair)
        kinds = tuple(evaluation.dp_sgd_step(level, q) for level in noise_levels(low, high))
        return cls(epsilon, delta, "kinds", kinds=kinds)

    def __repr__(self) -> str:
        if self.level is not None:
            return f"Budget.{'rho' if self.filter == 'zcdp' else 'mu'}({self.level!r})"
        parts = [repr(self.epsilon), *([repr(self.delta)] if self.delta else [])]
        if self.filter not in ("moments", "pure"):
            parts.append(f"filter={self.filter!r}")
            parts += [f"kinds={self.kinds!r}"] if self.kinds else []
        own = self.orders
        if own is not None and own != default_orders(self.epsilon, self.losses_delta):
            parts.append(f"orders={self.orders!r}")
        if self.share != _SHARES.get(self.filter):
            parts.append(f"share={self.share!r}")
        return f"Budget({', '.join(parts)})"

    def __reduce__(self) -> tuple[Any, ...]:
        # Built anew: of ρ or μ, a copied nan would be equal to no other.
        return type(self), tuple(getattr(self, each.name) for each in fields(self))

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    def _check_level(self) -> None:
        others = (self.orders, self.share, self.kinds, self.packets)
        if self.filter not in LEVELS or any(other is not None for other in others):
            raise DomainError("level belongs to Budget.rho and Budget.mu; leave it out")
        name = "rho" if self.filter == "zcdp" else "mu"
        self._set("level", checks.number(_LEVEL.renamed(name), self.level))
        # One object: nan is equal to itself alone.
        self._set("epsilon", math.nan)
        self._set("delta", math.nan)

    def _resolved_share(self) -> float | None:
        if self.share is None or self.filter not in _SHARES:
            return _SHARES.get(self.filter)
        return checks.number(_SHARE, self.share)

    def _resolved_kinds(self) -> tuple[Mechanism, ...] | None:
        if self.filter != "kinds":
            return None
        given = checks.sequence("kinds", self.kinds if self.kinds is not None else ())
        kinds = tuple(dict.fromkeys(mechanism_of(each) for each in given))
        if not 1 <= len(kinds) <= MOST_KINDS:
            raise DomainError(f"kinds must be 1 to {MOST_KINDS} mechanisms; got {len(kinds)}")
        same_relation(kinds)
        return kinds

    def _resolved_packets(self) -> tuple[tuple[int, int], ...] | None:
        kinds: Any = self.kinds
        if kinds is None:
            return None
        if self.packets is None:
            return packets_for(kinds, self.epsilon, self.delta)
        rows = [checks.sequence("packets", row) for row in checks.sequence("packets", self.packets)]
        if len(rows) != len(kinds) or any(len(row) != 2 for row in rows):
            raise DomainError(f"packets must have two numbers for each kind; got {rows!r}")
        return tuple((checks.whole(_PACKET, n), checks.whole(_PACKET, units)) for n, units in rows)

    def _resolved_orders(self) -> tuple[float, ...] | None:
        if self.filter not in _BY_ORDERS:
            return None
        if self.orders is None:
            return default_orders(self.epsilon, self.losses_delta)
        given: Any = checks.real(ORDER, self.orders)
        orders = (given,) if isinstance(given, float) else tuple(map(float, given.ravel()))
        if len(set(orders)) != len(orders) or not orders:
            raise DomainError(f"orders must be distinct, at least one; got {self.orders!r}")
        self._set("orders", orders)
        if not max(self.renyi_capacities()[1]) > 0.0:
            raise DomainError(f"orders must leave something to spend; got {orders}")
        return orders
