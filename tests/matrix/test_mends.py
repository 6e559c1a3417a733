"""Mistakes in a matrix that a newcomer makes, each with its mend."""

import pytest

import fpbench
from fpbench.base.errors import InputError

BASE = """
seeds = 2
[[dataset]]
use = "census-synthetic"
rows = 600
[[learner]]
use = "exponentiated-gradient"
[[disclosure]]
use = "published"
[[adversary]]
use = "a1"
[[corrector]]
use = "posterior"
"""


@pytest.mark.parametrize(("old", "new", "message"), [
    ('"posterior"\n', '"posterior"\nseeds = 3\n',
     r"\[\[corrector\]\] no. 1 .posterior.: unknown key 'seeds'; it is one of the matrix itself: write it "
     "at the top, above the first"),
    ('"posterior"\n', '"posterior"\nseads = 3\n', "unknown key 'seads'; valid: "),
    ('"a1"', '"exact"', "unknown adversary 'exact'; 'exact' is a corrector$"),
    ('"a1"', '"plain"', "unknown adversary 'plain'; 'plain' is a learner$"),
    ('"exponentiated-gradient"', '"exponentiated-gradient"\ntolerance = { swep = [0.1] }',
     "tolerance: unknown key 'swep'; did you mean 'sweep'"),
    ('"exponentiated-gradient"', '"exponentiated-gradient"\ntolerance = "5%"', "not '5%'; 5% is 0.05$"),
    ('"census-synthetic"\nrows = 600', '"table"\npath = "people.csv"',
     "unknown key 'path'; use = \"csv\" or use = \"parquet\" has it"),
    ("seeds = 2", "seeds = 2\njobs = 4", "jobs is no key of a matrix, but an option: .* --jobs 4$"),
    ("seeds = 2", "seeds = 2\nfresh = true", "fresh is no key of a matrix, but an option: .* --fresh$"),
    ('[[disclosure]]\nuse = "published"\n', "", r"names an adversary but no \[\[disclosure\]\]"),
    ('"census-synthetic"\nrows = 600', '"adult"\nsensitive = "gender"',
     "no column 'gender'; did you mean 'sex'.$"),
    ('"census-synthetic"', '"C:\\Users\\me\\x.csv"', "in a path write / for each .*, or put single quotes"),
    ('"census-synthetic"', '"C:\\data\\x.csv"', "in a path write / for each .*, or put single quotes"),
])  # fmt: skip
def test_a_mistake_in_a_matrix_names_its_mend(old, new, message, tmp_path):
    file = tmp_path / "m.toml"
    assert old in BASE
    file.write_text(BASE.replace(old, new))
    with pytest.raises(InputError, match=message):
        fpbench.plan(file)
