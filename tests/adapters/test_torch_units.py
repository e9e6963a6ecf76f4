"""Units of privacy: a partition of the records, and loaders that sample units and not records."""

import math

import pytest

import accountant as ac

torch = pytest.importorskip("torch")

from accountant.adapters.torch_units import UnitLoader, Units  # noqa: E402
from accountant.sampling import FullBatch, PoissonSampler, RandomAllocation  # noqa: E402

DATA = [{"x": torch.tensor([float(k)])} for k in range(12)]
OWNERS = ["a", "b", "a", "c", "b", "a", "c", "c", "d", "d", "d", "d"]


def collate(rows):
    return {"x": torch.stack([row["x"] for row in rows])}


def test_records_of_one_owner_are_one_unit():
    units = Units.grouped(OWNERS, "user")
    assert units.records == ((0, 2, 5), (1, 4), (3, 6, 7), (8, 9, 10, 11))
    assert units.words == "one user, with all their records"
    assert len(units) == 4
    single = Units.single(3, "sequence")
    assert (single.records, single.words) == (((0,), (1,), (2,)), "one sequence")


@pytest.mark.parametrize(
    "owners", [[("a", "b"), "a"], [["a"], "b"], [{"a"}, "b"], [frozenset("a")]]
)
def test_records_of_several_owners_are_refused(owners):
    with pytest.raises(ac.UnsupportedError, match="must have one owner"):
        Units.grouped(owners, "user")


@pytest.mark.parametrize("records", [[], [[]], [[0], []], [[0, 1], [1]], [[0, 0]], [[-1]]])
def test_what_is_no_partition_is_refused(records):
    with pytest.raises(ac.DomainError, match="units must"):
        Units(records, "one user")


def test_a_batch_holds_every_unit_that_was_drawn_whole():
    units = Units.grouped(OWNERS, "user")
    sampler = FullBatch(dataset_size=4, steps=3)
    batches = list(UnitLoader(DATA, units, sampler, collate))
    assert [batch.number for batch in batches] == [0, 1, 2]
    assert len({id(batch.run) for batch in batches}) == 1
    for batch in batches:
        assert [unit["x"].flatten().tolist() for unit in batch] == [
            [0.0, 2.0, 5.0], [1.0, 4.0], [3.0, 6.0, 7.0], [8.0, 9.0, 10.0, 11.0],
        ]  # fmt: skip
        moved = batch.to("cpu")
        assert (moved.run, moved.number, len(moved)) == (batch.run, batch.number, 4)


def test_at_most_some_records_of_a_unit_are_drawn_anew_each_time():
    units = Units.grouped(OWNERS, "user", at_most=2)
    drawn = set()
    for batch in UnitLoader(DATA, units, FullBatch(dataset_size=4, steps=40), collate):
        found = [tuple(unit["x"].flatten().int().tolist()) for unit in batch]
        for chosen, all_of_it in zip(found, units.records, strict=True):
            assert len(set(chosen)) == 2
            assert set(chosen) <= set(all_of_it)
        drawn.add(found[3])
    assert drawn == {(8, 9), (8, 10), (8, 11), (9, 10), (9, 11), (10, 11)}


def test_units_are_sampled_and_empty_batches_kept():
    units = Units.single(12, "record")
    sampler = PoissonSampler(dataset_size=12, sampling_probability=0.05, steps=400)
    sizes = [len(batch) for batch in UnitLoader(DATA, units, sampler, collate)]
    assert len(sizes) == 400
    assert 0 in sizes
    assert abs(sum(sizes) - 240) < 6 * math.sqrt(240)
    allocation = RandomAllocation(dataset_size=12, steps_per_epoch=5)
    seen = [
        unit["x"].item() for batch in UnitLoader(DATA, units, allocation, collate) for unit in batch
    ]
    assert sorted(seen) == list(range(12))


def test_a_loader_of_other_units_is_refused():
    units = Units.grouped(OWNERS, "user")
    with pytest.raises(ac.DomainError, match="must be the number of units"):
        UnitLoader(DATA, units, FullBatch(dataset_size=12, steps=1), collate)
    with pytest.raises(ac.DomainError, match="must name records of the data set"):
        UnitLoader(DATA[:-1], units, FullBatch(dataset_size=4, steps=1), collate)
    with pytest.raises(ac.ArgumentTypeError, match="must be a Units"):
        UnitLoader(DATA, OWNERS, FullBatch(dataset_size=4, steps=1), collate)
