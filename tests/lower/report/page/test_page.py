"""The page of the stages: its links lead somewhere, and to what belongs together; no text of the user is markup."""

from __future__ import annotations

import html
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reading import read

import harp
import harp.numpy as hnp

X, W = np.ones((5, 4), np.float32), np.ones((4, 4), np.float32)


def softmax(x, w):
    e = hnp.exp(x @ w - hnp.max(x, axis=1, keepdims=True))
    return e / hnp.sum(e, axis=1, keepdims=True)


def mean_square(x, w):
    return hnp.mean((softmax(x, w) - x) ** 2)


def walk(x, w):
    def step(state, row):
        state = hnp.tanh(state @ w + row)
        return state, hnp.sum(state)

    return harp.scan(step, x[0], x)


def scattered(x, w):
    return hnp.zeros(x.shape).at[hnp.argsort(x[:, 0])].add(hnp.sort(x, axis=1)), hnp.cumsum(hnp.sin(x), axis=1)


def layers(x, w):
    for _ in range(6):
        x = hnp.tanh(x @ w)
    return x, x.T


def halving(x, w):
    return harp.while_loop(lambda y: hnp.max(y) > 0.1, lambda y: y / 2, x), x


PROGRAMS = {
    "elementwise": lambda x, w: hnp.exp(x) * 2,
    "softmax": softmax,
    "gradient": harp.value_and_grad(mean_square),
    "second derivative": harp.hessian(lambda x, w: mean_square(x, w)),
    "scan": walk,
    "gradient of a scan": harp.grad(lambda x, w: hnp.sum(walk(x, w)[1])),
    "scatter and sort": scattered,
    "layers": layers,
    "while": halving,
    "argument": lambda x, w: (x, w),
    "no array": lambda x, w: hnp.asarray(1.0),
    "half": lambda x, w: hnp.sum(x.astype(hnp.float16), axis=0),
    "logarithms": lambda x, w: hnp.log(x) + hnp.sin(x),
}


@pytest.fixture(scope="module", params=[*PROGRAMS, "checked"])
def both(request):
    """The stages of a program, and its page."""
    check = request.param == "checked"
    stages = harp.jit(PROGRAMS["softmax" if check else request.param], check=check).lower(X, W)
    return stages, read(stages.html())


def is_loop(line) -> bool:
    return re.match(r" *(?:for|repeat) ", line.text) is not None


def test_names_are_given_once_and_picks_lead_somewhere(both):
    _, page = both
    assert len(page.names) == len(set(page.names))
    keys = {key for line in page.lines for key in line.keys}
    assert [(line.text, key) for line in page.lines for key in line.picks if key not in keys] == []


def test_what_is_not_an_argument_leads_to_code(both):
    """Each node to a line of C, and each line of C in a loop to a node."""
    stages, page = both
    nodes = [line for line in page.pane("graph") if line.keys and " input " not in line.text]
    kernels = len(stages.schedule.groups)
    for line in nodes if kernels else ():
        picked = page.picked(line)
        assert {other.pane for other in picked} >= {"graph", "nests", "c"} or " iterate" in line.text, line.text
        if line.text.startswith(" "):  # in a body, whose nodes are numbered for themselves
            continue
        assert all(f"{line.text.split(' = ')[0]} " in other.text for other in picked if other.pane == "schedule")


def test_each_loop_of_the_c_is_one_of_the_loop_nests(both):
    _, page = both
    nests = {line.picks[0] for line in page.pane("nests") if is_loop(line)}
    loops = [line for line in page.pane("c") if line.text.lstrip().startswith("for (")]
    assert [line.text for line in loops if line.picks[0] not in nests] == []


def test_linked_loops_have_the_same_name_and_extent(both, request):
    """As far as both are names or numbers; the others are written differently."""
    _, page = both
    heads: dict[str, set[tuple[str, str]]] = {}
    routine = ""  # the indentation of the call of a routine, whose loops are not in the C
    for line in page.pane("nests"):
        indentation = line.text[: len(line.text) - len(line.text.lstrip())]
        routine = routine if len(indentation) > len(routine) else ""
        if line.text.strip().startswith("call "):
            routine = indentation
        found = re.match(r" *(?:for|repeat) (?:\w+ )?(\w+) < (\w+):", line.text)
        if found and not routine:
            heads.setdefault(line.picks[0], set()).add((found[1], found[2]))
    compared = 0
    for line in page.pane("c"):
        found = re.match(r" *for \(int64_t (\w+) = 0; \w+ < (\w+); ", line.text)
        if found and line.picks[0] in heads and not found[2].startswith("k"):
            compared += 1
            # The kernels of a checked program have the names of sizes that the program has.
            if request.node.callspec.params["both"] == "checked":
                assert found[1] in dict(heads[line.picks[0]])
            else:
                assert (found[1], found[2]) in heads[line.picks[0]], line.text
    assert compared or not heads


def test_panes_have_the_texts_of_the_stages(both):
    stages, page = both
    whole = "\n".join(line.text for line in page.pane("graph"))
    assert whole == str(stages.graph)
    steps = [line for line in str(stages.schedule).split("\n") if not line.startswith(("kernel ", "return "))]
    assert "\n".join(f"  {line.text}" for line in page.pane("schedule")) == "\n".join(steps)
    assert [line.text for line in page.pane("nests")] == stages.loops.split("\n")
    squeezed = sorted(line.strip() for line in stages.source.split("\n") if line.strip())
    assert sorted(line.text.strip() for line in page.pane("c") if line.text.strip()) == squeezed


def test_every_call_has_its_cost_and_its_line(both):
    stages, page = both
    rows = [call for line in page.lines if not line.pane for call in line.calls]
    assert len(rows) == len(set(rows)) == len(stages.cost().kernels)
    for name, start in (("nests", "call "), ("c", "")):
        made = [line for line in page.pane(name) if line.calls]
        assert [call for line in made for call in line.calls] == [str(k) for k in range(len(made))]
        assert all(line.text.startswith(start) for line in made) and len(made) >= len(rows)


def test_the_table_says_what_the_report_says(both):
    stages, page = both
    cost = stages.cost()
    rows = {call: line.text for line in page.lines if not line.pane for call in line.calls}
    first = stages.loops.count("\ncall ") - len(cost.kernels)  # a checked program has a call without a cost
    for number, (kernel, now) in enumerate(zip(cost.kernels, cost.at().kernels, strict=True), start=first):
        text = rows[str(number)]
        assert kernel.name in text
        for quantity in ("operations", "bytes_read", "bytes_written"):
            assert getattr(kernel, quantity).text(60) in text and f"{getattr(now, quantity):,}" in text
    assert f"{cost.at().operations:,}" in next(line.text for line in page.lines if line.text.startswith("in all"))


@pytest.mark.parametrize("name", ["softmax", "scan", "half", "while"])
def test_a_program_of_opencl_is_linked_loop_by_loop(name):
    if not any(device.startswith("opencl") for device in harp.devices()):
        pytest.skip("no OpenCL device")
    stages = harp.jit(PROGRAMS[name], device="opencl").lower(X, W)
    text = stages.html()
    page = read(text)
    assert "<summary>OpenCL C</summary>" in text and "HARP_INLINE" in stages.source and "HARP_INLINE" not in text
    nests = {line.picks[0] for line in page.pane("nests") if is_loop(line)}
    loops = [line for line in page.pane("c") if re.match(r" *for \(int64_t i|.* = get_(?:global|group)_id", line.text)]
    assert loops and [line.text for line in loops if line.picks[0] not in nests] == []
    for line in page.pane("nests"):
        if line.text.lstrip().startswith("for grid "):
            (name,) = re.findall(r"for grid (i\d+) ", line.text)
            assert any(f" {name} = " in other.text for other in page.picked(line) if other.pane == "c"), line.text
    made = [call for line in page.pane("c") for call in line.calls]
    assert made == [str(k) for k in range(stages.loops.count("\ncall "))]


def test_a_line_of_the_function_leads_to_its_nodes():
    def three_steps(x):
        a = hnp.exp(x)
        b = hnp.cumsum(a)
        return b * 2

    page = read(harp.jit(three_steps).lower(np.ones(3)).html())
    a, b, c = (line for line in page.pane("function") if line.keys)
    assert [line.text.split(" ", 2)[-1].strip() for line in (a, b, c)] == [
        "a = hnp.exp(x)",
        "b = hnp.cumsum(a)",
        "return b * 2",
    ]
    for line, word in ((a, "exp("), (b, "running sum"), (c, "mul(")):
        nodes = [other.text for other in page.picked(line) if other.pane == "graph"]
        assert len(nodes) == 1 and word in nodes[0]
    code = [other.text.strip() for other in page.picked(a) if other.pane == "c"]
    assert any("harp_exp_f64(" in text for text in code)


def test_a_statement_leads_to_the_nodes_that_it_computes():
    page = read(harp.jit(softmax).lower(X, W).html())
    line = next(line for line in page.pane("nests") if re.search(r"\] = div\(", line.text))
    nodes = [other.text for other in page.picked(line) if other.pane == "graph"]
    assert any("-> div(x0, x1)" in text for text in nodes) and not any("exp(" in text for text in nodes)


# --- text of the user


def looks_harmless(page: str) -> None:
    """Nothing is loaded, and only the page's own tags and attributes are there."""
    plain = read(harp.jit(lambda x: x + 1).lower(np.ones(3)).html())
    found = read(page)
    assert found.tags <= plain.tags | {"section", "details", "summary", "small", "b", "i", "u", "p"}
    assert found.attributes <= plain.attributes | {"data-c", "data-k", "data-p", "id", "open", "style", "title"}


def test_the_page_loads_nothing(both):
    stages, _ = both
    page = stages.html()
    looks_harmless(page)
    assert not re.search(r"https?:|@import|url\(|<link|<img|\bsrc=|\bhref=|fetch\(|XMLHttp", page)


@settings(deadline=None, max_examples=60)
@given(st.text(max_size=20), st.text(max_size=20))
def test_names_are_text(name, key):
    def f(given):
        return given[key] * 2

    f.__name__ = name
    page = harp.jit(f).lower({key: np.ones(3)}).html()
    looks_harmless(page)
    title = html.unescape(re.search(r"<h1>(.*?)</h1>", page, re.DOTALL)[1])
    assert title == name
    assert html.escape(repr(key)) in page or html.escape(key) in page


@pytest.mark.parametrize(
    "name", ["</script><script>alert(1)</script>", "<!--", "&lt;b&gt;", "a\x00b", "${title}", "\ud800"]
)
def test_odd_names(name, tmp_path):
    def f(x):
        return x[name] + 1

    f.__name__ = name
    stages = harp.jit(f).lower({name: np.ones(3)})
    assert stages.html(tmp_path / "page.html") is None
    page = stages.html()
    looks_harmless(page)
    assert (tmp_path / "page.html").read_text("utf-8").count("<script") == 1


def test_code_that_is_nowhere_to_be_read():
    namespace = {}
    exec(compile("def f(x):\n    return x + 1\n", "<b>nowhere</b>", "exec"), namespace)
    page = harp.jit(namespace["f"]).lower(np.ones(3)).html()
    looks_harmless(page)
    assert [line.text.strip() for line in read(page).pane("function") if line.keys] == ["2"]


def test_a_notebook_shows_the_page_in_a_frame_of_its_own():
    stages = harp.jit(softmax).lower(X, W)
    frame = stages._repr_html_()
    found = re.fullmatch(r'<iframe sandbox="allow-scripts" srcdoc="([^"]*)" style="[^"]*"></iframe>', frame, re.DOTALL)
    assert html.unescape(found[1]) == stages.html()


def test_a_page_of_many_kernels_is_a_few_times_its_texts():
    def many(x):
        for k in range(200):
            x = hnp.sort(x * (k + 1.5), axis=1)
        return x

    stages = harp.jit(many).lower(X)
    assert len(stages.schedule.groups) >= 200
    texts = "".join(map(str, (stages.graph, stages.schedule, stages.loops, stages.source)))
    assert len(stages.html()) < 8 * len(texts)


def test_lines_of_a_step_are_those_of_its_nodes():
    page = read(harp.jit(walk).lower(X, W).html())
    (line,) = [line for line in page.pane("function") if "hnp.tanh(state" in line.text]
    nodes = [other.text for other in page.pane("graph") if line.keys[0] in other.keys]
    assert any("tanh" in text for text in nodes) and any("sum over" in text for text in nodes)
    assert all(text.startswith("    ") for text in nodes)
    assert {other.pane for other in page.picked(line)} >= {"nests", "c"}


def test_scratch_is_that_of_the_summary():
    """Also where passes after fusion, such as sums by chunks, take some."""
    stages = harp.jit(lambda x: hnp.sum(x) + hnp.mean(hnp.sin(x))).lower(np.ones((40, 300)))
    assert stages.memory().scratch > 0
    assert f"<b>{stages.memory().scratch:,}</b> bytes of scratch" in stages.html()


def test_the_status_of_a_kernel_without_memory_is_no_value():
    """It stands outside of all loops, where a number of the kernel is stored, too."""

    def step(w, x, y):
        return w - 0.1 * harp.grad(lambda w: hnp.mean((hnp.tanh(x @ w) - y) ** 2))(w)

    page = harp.jit(step).lower(np.ones((3, 2)), np.ones((5, 3)), np.ones((5, 2))).html()
    lines = re.findall(r'<div id="c\d+\.\d+"([^>]*)> *status = 1;', page)
    assert lines and not any(re.search(r"\br\d", keys) for keys in lines)


def test_names_with_surrogates_make_a_page_that_can_be_written(tmp_path):
    """As of files whose name is no UTF-8, which Python gives so."""

    def f(x):
        return hnp.sin(x) + 1

    f.__name__ = f.__qualname__ = "f\udcff"
    stages = harp.jit(f).lower(X)
    assert r"f\udcff" in stages.html() and r"f\udcff" in stages._repr_html_().encode().decode()
    stages.html(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == stages.html()
