"""A little fuzzing in every run; tests/support/hardening/fuzz.py does as much as one likes."""

import itertools
import random
import time

import pytest

from support.hardening import entries

# Cheap targets see more inputs; the numbers are fixed, so that a red run can be run again.
INPUTS = {
    "quick": 40,
    "calibration": 6,
    "conversion": 300,
    "mechanisms": 60,
    "ledgers": 4,
    "bytes_of_ledgers": 300,
    "trees_of_ledgers": 800,
    "checkpoints": 60,
    "command_line": 40,
}

# What the fuzzer once found, kept as it found it.
FOUND = {
    "a mixture of a number": ("mechanisms", "d84b78cb91faba9829da7e3e1fb03751fc51061c6de6d92faa08"),
    "parallel of an array": ("mechanisms", "516664fad7b029539c86ad707a3a7b4a8715e3736b57913494e3"),
    "the mass of a number": (
        "mechanisms",
        "ba64bada5923939c4c6fe415a6ee7c565a8111e960940944657379ce7967f118b7d1d609",
    ),
    "a discrete Laplace with scale 2e-308": (
        "mechanisms",
        "3a43ac93d8275c0cb03e669cc642b811f392d9280ebdc00894d0a537ddc46ed1",
    ),
    "the best of runs that tell everything": (
        "mechanisms",
        (
            "71d1abc2e5a058da96b61728db1f57267e297e92932e51e49a1e40d4961640c1f5b0d1bbb3176b8750145250"
            "4afbc9416dad36bc8836"
        ),
    ),
    "the best of runs with losses of 1e9": (
        "mechanisms",
        (
            "ec15786b80eedacf3c8a009bb2480fa6beaff2d1dd1370433f80e1ad131f80c6aecac2204df8895655e76ac3"
            "ad3d"
        ),
    ),
    "the best of runs with a smoothness of 1e302": (
        "mechanisms",
        (
            "5491d27a917b1e86caf1afb40b72424800a86273925c4bcf08cbb37e71ddd1f0d0a470c308f92532cddd3ce1"
            "73c14d388fb49f13"
        ),
    ),
    "smooth sensitivity with noise beyond a double's square": (
        "mechanisms",
        "df4044ecd00ed65632199f8df3744468e54ee488c8156b0a84376357f3b55db38b03a8fe1aa3",
    ),
    "steps until a delta of 5e-324 without any loss": (
        "calibration",
        "5ca1aac9388494bc0018b8d7dd00febf1d094783f4535e63961d79b1e1dc7a6f",
    ),
    "a subnormal epsilon as Gaussian privacy": ("conversion", "203d98cd7c22e53e"),
    "the best of Laplace runs that hide nothing": (
        "mechanisms",
        (
            "391a25c2e118147ceb336d93579bc737dcf25c782196c8b1c6a915198748d74f9224dc368daaa569e433"
            "794ce836accd57da45071db3"
        ),
    ),
    "a discrete Gaussian wider than any table": (
        "ledgers",
        (
            "81089af0c46ddb724aaebbaff458703d03cb5e805472b437c14cdee933c31369bc2ee00807efd5e09985c8"
            "012cf0db75a21ccab376327dac395a4221c1d7c67a8ac5a02b5365"
        ),
    ),
    "a grid of 4e204 points": (
        "ledgers",
        (
            "0a0a0100006a6a666a6a6a6a6a6a6a6a6a6a6a6a6a6a6a6a6a0a0a0100006a6a666a6a6a6a6a6a6a6a6a"
            "6a6a6a6a6a6a6a6a6a6a6a6a6a6a6a0a016a6a6a6a6a6a6a6a6a6a6a00faffff6a6a6aff6a6a0a010000"
            "00006a6a6a6a6a00faffffff"
        ),
    ),
    "a loss of 5e-324 beside one of 0.2": (
        "ledgers",
        (
            "204620203d2020201c203420209a202000ffffffffffffffff0000000000000000000000000000000000"
            "00000000000000002e00000000000000000100000000000000000000209a2020202020202020201c2034"
            "20203e3e3e3e3e3e3e3e3e3e3e3e3e3e3e3e3e3e3e3e3e9a202020202b202020202020eb"
        ),
    ),
    "the best of a Poisson number of such searches": (
        "ledgers",
        "0affaeaeabffaeaeabaeaeaeaeaeaeaeaeaeae0affaeaeabaeaeaeaeaeaeaeaeaeaeaeaeaeaeaeae",
    ),
    "the best of searches, often": (
        "ledgers",
        (
            "0acccccccccccccccccc3accccfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfb"
            "fbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfc01"
            "fbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfb0a30"
        ),
    ),
    "the best of searches, charged to a budget": (
        "ledgers",
        (
            "313131313131313131313100000000003238212121212121212121212121212121212121212121212121"
            "212121212121212121212121212121212121212121212121212121212121212121212121212121212121"
            "212121212121212121212121212121212121212121212121212121212121212121212121212121212121"
            "212121212121"
        ),
    ),
    "a shuffle of losses of 2e-308": (
        "mechanisms",
        "3423ccccd83380069289c90e015de0932273850193e3cdd3285697812937024ba61f743a",
    ),
    "a sample of 5e-324": (
        "mechanisms",
        (
            "4f97f2a91cc896373e7fb09b76559a1b3dd8512b2e9cc6e9c6abc9805a6f1d418f2add44ceddb975f025"
            "25a78208089c9fbc946880933ace49584de08b3e04a2d30a"
        ),
    ),
    "discrete noise of 1e-300": (
        "mechanisms",
        "f1fa94b6e8164e055588cf0f4c37b840312ada87104562fd965a7c0814f1",
    ),
    "draws with replacement under noise of 5e-324": (
        "mechanisms",
        "2d0d5b3ed46dd452e034430b66f085ba5b319d7124e952962248ab50e2be03f3688d4fa5f40476",
    ),
    "the best of releases of draws with replacement": (
        "mechanisms",
        (
            "6792fea69e323820ad6f354e2e5d91830a31069be4643cc6024e9e213fe75a32ad9c67c2d0dd1ede73f3"
            "9ec15bb3b24a94e1c3b2383d"
        ),
    ),
    "the best of releases under replacement": (
        "mechanisms",
        (
            "29d3d1d3d3d3d3d3d327272727272727272727272727272727272727272727bdbdbdbdbdbdbd00d3d3d3"
            "d3d3d3d3d3d3d3d3000080"
        ),
    ),
    "the best of mixtures": (
        "mechanisms",
        (
            "44160738cbbb6193e3f01d8b570690e670dc103a34a4eb65c83764e5960d058d5f75e9bf6864a862eb56"
            "c7f78a2f518fe2c1ac89806c"
        ),
    ),
    "a thousand draws from seven records": (
        "mechanisms",
        "84a05be4d0ee2596db05285ff53cbbd038028a3d6723c790b3274872e0002bfdb2d9d8656b86",
    ),
    "an exponential beyond forty digits": ("conversion", "00000000d80aff"),
    "a search of next to one run": (
        "mechanisms",
        (
            "37b7f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3"
            "f3f3fcfcfcfcfcfcfcfcfcfcfcfcfcfcfcfcfcecececececececececec"
        ),
    ),
    "a budget that left its default orders nothing": (
        "trees_of_ledgers",
        "028c8c8c8c15ffffffff908c0000ff998c8c8cf015ffffff",
    ),
    "a batch of 1e12 draws of one record": (
        "mechanisms",
        "ae01005d77c53a3a3a3a3a010042290000ff3a3a3a3a26000000290000ff3a3a3a3a3aff4119",
    ),
}


@pytest.mark.long(keep=2)
@pytest.mark.parametrize("name", entries.TARGETS)
def test_random_inputs_find_nothing(name):
    generator, began = random.Random(name), time.monotonic()
    for _ in itertools.repeat(None, INPUTS[name]):
        entries.TARGETS[name](entries.Draw(generator.randbytes(400)))
        if time.monotonic() - began > 20.0:
            break  # a busy machine


@pytest.mark.long(keep=14)
@pytest.mark.parametrize("name", FOUND)
def test_what_was_found_once(name):
    target, data = FOUND[name]
    began = time.process_time()
    entries.TARGETS[target](entries.Draw(bytes.fromhex(data)))
    assert time.process_time() - began < 60.0  # some took minutes


def test_the_judge_sees_wrong_answers():
    def wrong(answer):
        return lambda: answer

    for answer in (float("nan"), -1.0, 2.0):
        with pytest.raises(entries.Finding):
            entries.judged(wrong(answer), most=1.0)
    with pytest.raises(entries.Finding, match="ZeroDivisionError"):
        entries.judged(lambda: 1 / 0)
