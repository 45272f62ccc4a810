"""The ruler that `make check` reads: it measures statements, and is red for packed files alone."""

from trust.readability import MOST_TOKENS, became_too_dense, main, measure_text

PLAIN = "\n".join(f"length_{i} = width_{i} + 1" for i in range(30))
PACKED = "\n".join(
    f"a_{i} = f(b[{i}], c[d(e({i}) + 1)] if g else h, k=[m for m in n if m > o and m < p])" for i in range(30)
)


def test_statements_are_measured_and_not_lines():
    broken = PACKED.replace("f(b", "f(\n    b")
    assert measure_text(broken) == measure_text(PACKED)
    assert measure_text(PACKED).density > MOST_TOKENS > measure_text(PLAIN).density
    assert measure_text("own = found = 1\nlength = 2").placeholders == 2


def test_only_a_file_that_became_packed_is_red():
    assert became_too_dense(PACKED, None)
    assert became_too_dense(PACKED, PLAIN)
    assert not became_too_dense(PLAIN, None)
    # Somebody else packed it: a small change beside it is not red.
    assert not became_too_dense(PACKED + "\nlength = 2", PACKED)
    # One constructor in a file of few statements decides nothing.
    assert not became_too_dense(PACKED.splitlines()[0], None)


def test_the_figures_of_a_file_are_printed(tmp_path, capsys):
    path = tmp_path / "plain.py"
    path.write_text(PLAIN, encoding="utf-8")
    assert main([str(path)]) == 0
    assert "30 statements of 5.0 tokens" in capsys.readouterr().out
