"""What is wrong with a file of data is named by its cause, and never by what it holds."""

import gzip

import numpy as np
import pytest

from accountant.cli import table
from accountant.errors import DomainError

SECRET = "8675309"

CAUSES = [
    (f"a;b\n1;2\n{SECRET};4\n", "separated by semicolons"),
    (f"a\tb\n1\t2\n{SECRET}\t4\n", "separated by tabs"),
    (f"a,b,y\n1,2,0\n{SECRET},,1\n", "record 2 .* cell 2 is empty. Fill"),
    (f"a,b,y\n1,True,0\n{SECRET},False,1\n", "record 1 .* cell 2 is true or false. Write 1 and 0"),
    (f"a,b,y\n1,x{SECRET},0\n", "record 1 .* cell 2 is no number"),
    (f"a,b,y\n1,{SECRET}\n", "record 1 .* it has 2 cells"),
    (f",a,y\n0,{SECRET},1\n1,3,0\n", "column 1 .* has no name: it is the index of a frame"),
    (f"Unnamed: 0,a,y\n0,{SECRET},1\n", "column 1 .* is called 'Unnamed: 0': it is the index"),
]


@pytest.mark.parametrize(("text", "cause"), CAUSES)
def test_the_cause_is_named_and_no_value(tmp_path, text, cause):
    path = tmp_path / "data.csv"
    path.write_text(text)
    with pytest.raises(DomainError, match=cause) as refused:
        table.read(path, None)
    assert SECRET not in str(refused.value)


def test_an_index_may_be_left_out_by_the_names_of_the_others(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text(",a,y\n0,5,1\n1,3,0\n")
    assert table.read(path, "y", "a").features.tolist() == [[5.0], [3.0]]


def test_a_compressed_file_and_objects_are_named(tmp_path):
    packed = tmp_path / "data.csv.gz"
    packed.write_bytes(gzip.compress(b"1,2\n3,4\n"))
    with pytest.raises(DomainError, match="compressed; unpack"):
        table.read(packed, None)
    objects = tmp_path / "data.npz"
    np.savez(objects, X=np.array([[1, SECRET]], dtype=object), y=np.zeros(1))
    with pytest.raises(DomainError, match=r"Python objects.* Save numbers") as refused:
        table.read(objects, None)
    assert SECRET not in str(refused.value)
