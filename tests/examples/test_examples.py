"""The classifier and the minimiser, small: one epoch or two, few dimensions. `make demo` is the whole run."""

import re
import shutil

import pytest

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(scope="module")
def digits(load):
    return load("digits")


@pytest.fixture(scope="module")
def rosenbrock(load):
    return load("rosenbrock")


@pytest.mark.slow
@pytest.mark.usefixtures("processor")  # which the example chooses unless it is told otherwise
@pytest.mark.parametrize("epochs", [1, 3])
def test_digits(digits, epochs, tmp_path, capsys):
    picture = tmp_path / "picture.png"
    assert digits.main(["--epochs", str(epochs), "--seed", "1", "--output", str(picture)]) == 0
    printed = capsys.readouterr().out
    assert picture.read_bytes().startswith(PNG)
    accuracy = re.search(r"^test accuracy: (\d+\.\d+)% of 450 digits$", printed, re.MULTILINE)
    assert 50 < float(accuracy[1]) <= 100  # a tenth would be chance
    assert "programs compiled: 1 for the train step, 1 for prediction" in printed
    assert digits.train_step.compilations == digits.predict.compilations == 1
    if epochs == 3:  # one epoch with each batch size, and two sizes of last batches
        assert "batch sizes: 32, 64, 128; the last batch of an epoch: 3, 67" in printed


@pytest.mark.parametrize("device", ["opencl"], indirect=True)
def test_digits_on_a_device(device, digits, tmp_path, capsys):
    accuracies = []
    for backend in ("c", "opencl"):
        assert digits.main(["--epochs", "2", "--backend", backend, "--output", str(tmp_path / "picture.png")]) == 0
        printed = capsys.readouterr().out
        assert "programs compiled: 1 for the train step, 1 for prediction" in printed
        accuracies.append(float(re.search(r"^test accuracy: (\d+\.\d+)%", printed)[1]))
    assert abs(accuracies[0] - accuracies[1]) < 1


def test_digits_is_reproducible(digits, tmp_path, capsys):
    lines = []
    for run in range(2):
        digits.main(["--epochs", "1", "--output", str(tmp_path / f"{run}.png")])
        lines.append(capsys.readouterr().out.splitlines()[0])
    assert lines[0] == lines[1]


def test_digits_splits_alike_for_every_class(digits):
    data = digits.load_data(seed=0)
    assert (len(data.train_x), len(data.test_x)) == (1347, 450)
    for label in range(10):
        share = (data.test_y == label).mean() / (data.train_y == label).mean()
        assert 0.95 < share < 1.05


def test_digits_needs_an_epoch(digits, capsys):
    with pytest.raises(SystemExit):
        digits.main(["--epochs", "0"])
    assert "--epochs" in capsys.readouterr().err


def test_digits_in_c(load, capsys):
    if not shutil.which("gcc"):
        pytest.skip("needs gcc")
    assert load("export_digits").main(["--epochs", "3"]) == 0
    assert "all weights have the same bits: True" in capsys.readouterr().out


def test_rosenbrock(rosenbrock, capsys):
    assert rosenbrock.main(["--dimensions", "2", "5"]) == 0
    printed = capsys.readouterr().out
    rows = [line.split() for line in printed.splitlines()[1:-1]]
    assert [row[0] for row in rows] == ["2", "5"]
    assert all(float(row[-1]) < 1e-6 for row in rows)
    assert printed.splitlines()[-1] == "programs compiled: 1"


def test_rosenbrock_says_when_it_does_not_converge(rosenbrock, monkeypatch, capsys):
    monkeypatch.setattr(rosenbrock, "TOLERANCE", -1.0)
    assert rosenbrock.main(["--dimensions", "2"]) == 1
    assert "converge" in capsys.readouterr().err


def test_rosenbrock_needs_two_dimensions(rosenbrock, capsys):
    with pytest.raises(SystemExit):
        rosenbrock.main(["--dimensions", "1"])
    assert "--dimensions" in capsys.readouterr().err
