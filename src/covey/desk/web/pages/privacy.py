"""The fourth step: the guarantee, and what it will cost."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from math import log10, sqrt
from typing import Any

import numpy as np
from fastapi import APIRouter, Request
from fastapi.responses import Response

from covey.desk.web.forms import ANONYMOUS, PRIVATE, Order, number, read_budget, read_order
from covey.desk.web.pages.shared import CheckedForm, CurrentWork, CurrentWorkspace, go, page, redirect_if_early
from covey.desk.web.security import NO_FORM, Form, Refused, templates
from covey.desk.web.work import Work
from covey.desk.web.workspace import Workspace
from covey.engine.arrays import Floats
from covey.engine.budget import Budget, budget_for
from covey.engine.certificate import WORDS
from covey.engine.fractions import exact
from covey.engine.models.predict import COARSE, LEFT_AFTER_DENOISING, one_way_noise, pair_noise, predicted_misplaced
from covey.errors import CoveyError, LedgerError, ParameterError
from covey.release.contents import LARGE_EPSILON
from covey.release.places import check_disk
from covey.release.statements import risks, why
from covey.synthesizers import AnonymousSynthesizer
from covey.synthesizers.learning import expected_codec, with_known_domains
from covey.workflow import AnonymousOrder, PrivateOrder, public_description, synthesizer

CURVE = tuple(Fraction(repr(round(10 ** (k / 4), 3))) for k in range(-8, 5))  # the ε of the error curve, 0.01 to 10

SMALL_DELTA = Fraction(1, 10**9)  # what the other kind of guarantee is shown with until one is chosen

BARS = 16  # of the simulated histogram
TWO_BY_TWO = np.array([0.34, 0.16, 0.14, 0.36])  # a pair that clearly goes together, row by row
NAMED = 6  # pairs that are named as lost; of the others their number is told

router = APIRouter()


def privacy_values(workspace: Workspace, work: Work, order: Order) -> dict[str, Any]:
    """What the privacy step and its live panel show, from public numbers and the ledger alone."""
    private = isinstance(order, PrivateOrder)
    values: dict[str, Any] = {"work": work, "order": order, "private": private, "large": LARGE_EPSILON, "after": None}
    values["rows"] = values["n"] = work.table.rows
    try:
        values["datasets"] = workspace.ledger.datasets()
    except LedgerError as error:
        values |= {"datasets": [], "ledger_error": str(error)}
    if isinstance(order, AnonymousOrder):
        return values
    values["dataset"] = dataset = next((d for d in values["datasets"] if d.name == order.dataset), None)
    if dataset is not None:
        # What the ledger will say once this is charged, as it counts itself, or why it will refuse.
        with suppress(CoveyError):
            budget = promised(work, order)
            asked = budget.epsilon, budget.delta, budget.rows_covered, budget.gaussian_rho, order.neighbours
            try:
                values["after"] = dataset.after(*asked)
            except LedgerError as error:
                values["refusal"] = str(error)
    try:
        values["n"] = n = work.counted(order)
        values["expected" if work.link else "prediction"] = work.predict(order)
        if not work.link:
            values |= noise_values(work, order, n)
    except CoveyError as error:
        values["problem"] = str(error)
    return values


def promised(work: Work, order: PrivateOrder) -> Budget:
    """The promise that an order makes, and what may be spent under it."""
    labels = any(with_known_domains(part.schema).learns for part in work.described().tables)
    return budget_for(order.epsilon, order.delta, work.unit(order), labels=labels, neighbours=order.neighbours)


def noise_values(work: Work, order: PrivateOrder, n: int) -> dict[str, Any]:
    """What noise will do to a single table: the error over ε, and with both kinds of guarantee, and on simulated rows."""
    schema, small = work.described().unit.schema, exact(order.delta, "delta") or SMALL_DELTA
    codec = expected_codec(schema)
    sizes, names = codec.domain_sizes, codec.names

    def misplaced(epsilon: Any, delta: Any) -> float:
        return predicted_misplaced(sizes, n, budget_for(epsilon, delta, work.unit(order), neighbours=order.neighbours))

    kinds = {"pure ε": Fraction(0)} | ({f"δ = {number(small)}": small} if small * n < 1 else {})
    return {
        "curve": [on_axes(float(epsilon), misplaced(epsilon, order.delta)) for epsilon in CURVE],
        # The kind, the figure, and whether it is the one chosen.
        "kinds": [(kind, misplaced(order.epsilon, d), bool(order.delta) == bool(d)) for kind, d in kinds.items()],
        "noise": preview_noise(names, sizes, n, promised(work, order)),
    }


def preview_noise(names: Sequence[str], sizes: Sequence[int], n: int, budget: Budget) -> dict[str, Any] | None:
    """The picture for these public columns, or None where none of them varies.

    No true row comes near this: rows are simulated from the schema's columns and the declared size alone. The column is a
    bell, the pair a plain association; the noise on them has the size that the plan predicts for this table, and the same
    shape for every ε, so that moving the slider changes its height alone. Bars from 0 to 1 and percentages of a 2 × 2 table
    come as pairs, clean and noisy; of the pairs that noise will drown those of most cells come first.
    """
    live = [(name, size) for name, size in zip(names, sizes, strict=True) if size > 1]
    if not live:
        return None
    noise = np.random.default_rng(0).standard_normal(BARS + 4)
    name, size = max(live, key=lambda column: column[1])
    count = min(size, BARS)
    bell = np.exp(-0.5 * ((np.arange(count) - 0.42 * (count - 1)) / (0.22 * count)) ** 2)
    bell /= bell.sum()
    noisy = with_noise(bell, one_way_noise(sizes, n, budget) * sqrt(size / count) * noise[:count])
    bars = np.column_stack([bell, noisy]) / max(bell.max(), noisy.max())
    found: dict[str, Any] = {"column": name, "bars": bars.tolist(), "pair": None, "lost": [], "more": 0}
    if len(live) < 2:
        return found
    on_cell = LEFT_AFTER_DENOISING * pair_noise(sizes, n, budget)
    (one, c), (two, d) = live[:2]
    spread = on_cell * sqrt(min(c, COARSE) * min(d, COARSE) / 4)  # of a quarter of the cells together
    cells = 100 * np.column_stack([TWO_BY_TWO, with_noise(TWO_BY_TWO, spread * noise[BARS:])])
    # Drowned is a pair in whose table the noise on a cell is larger than the share of the mean cell.
    sized = [(min(c, COARSE) * min(d, COARSE), f"{a} × {b}") for (a, c), (b, d) in combinations(live, 2)]
    lost = [words for cells, words in sorted(sized, key=lambda x: -x[0]) if on_cell * cells > 1]
    more = max(0, len(lost) - NAMED)
    return found | {"pair": (one, two), "cells": cells.tolist(), "lost": lost[:NAMED], "more": more}


def with_noise(shares: Floats, noise: Floats) -> Floats:
    """Noisy shares as a release has them: none is negative, and they sum to 1, because the number of rows is public."""
    noisy = np.maximum(0.0, shares + noise - noise.mean())  # which sum to 1 or more
    return np.asarray(noisy / noisy.sum())


def on_axes(epsilon: float, error: float) -> tuple[float, float]:
    """A point of the error curve, on the axes of the picture: both logarithmic, 0 to 1."""
    across = (log10(epsilon) + 2) / 3
    up = (log10(max(error, 1e-4)) + 4) / 4
    return round(min(max(across, 0), 1), 4), round(min(max(up, 0), 1), 4)


templates.env.globals.update(on_axes=on_axes, risks=risks, why=why, words_of=WORDS)


@router.get("/work/{work_id}/privacy")
def privacy_page(request: Request, workspace: CurrentWorkspace, work: CurrentWork) -> Response:
    """Choose the guarantee."""
    return redirect_if_early(work, "privacy") or privacy_page_with(request, workspace, work, work.order)


def privacy_page_with(
    request: Request, workspace: Workspace, work: Work, order: Order, form: Form = NO_FORM, **wrong: Any
) -> Response:
    """The privacy step. After a refusal all stands as it was typed: `form` is what came, `wrong` what is wrong with it."""
    asked = order if isinstance(order, PrivateOrder) else PRIVATE
    groups = order if isinstance(order, AnonymousOrder) else ANONYMOUS
    important = [name for group in asked.important for name in group]
    values = privacy_values(workspace, work, order) | {
        "said": form.get,
        "asked": asked,
        "groups": groups,
        "sensitive": groups.sensitive if form is NO_FORM else form.all("sensitive"),
        "important": important if form is NO_FORM else form.all("important"),
        "large_confirmed": asked.confirm_large_epsilon if form is NO_FORM else form.has("confirm_large_epsilon"),
    }
    return page(request, "privacy.html", step="privacy", **values | wrong)


@router.get("/work/{work_id}/predict")
def predict_piece(request: Request, workspace: CurrentWorkspace, work: CurrentWork) -> Response:
    """The live panel: predicted error and remaining budget for what the form says now."""
    if not work.confirmed:
        raise Refused(409, "Confirm the columns first.")
    form = Form({key: request.query_params.getlist(key) for key in request.query_params})
    try:
        values = privacy_values(workspace, work, work.taken_of(read_order(form, work.order)))
    except CoveyError as error:
        values = privacy_values(workspace, work, work.order) | {"problem": str(error)}
    return page(request, "prediction_piece.html", **values)


@router.post("/work/{work_id}/privacy")
def choose_privacy(request: Request, workspace: CurrentWorkspace, work: CurrentWork, form: CheckedForm) -> Response:
    """Keep the order, or say what is wrong with it."""
    order = work.order
    try:
        with work.lock:  # what is checked is what is chosen, for the table that was checked
            order = work.taken_of(read_order(form, work.order))
            check_order(workspace, work, order)
            work.chosen = True
            work.choose(order)
    except CoveyError as error:
        return privacy_page_with(request, workspace, work, order, form, error=error)
    return go(f"/work/{work.id}/review")


def check_order(workspace: Workspace, work: Work, order: Order) -> None:
    """Refuse now what the release would refuse: from public numbers and the ledger alone."""
    rows = work.counted(order)
    check_disk(rows if order.rows is None else order.rows, len(work.kept), workspace.out)
    if isinstance(order, AnonymousOrder):
        if order.group_size > rows:
            raise ParameterError(f"the group size must not exceed the number of rows, {rows}.")
        AnonymousSynthesizer(order.group_size, schema=work.described().unit.schema)
        return
    asked = replace(order, out=workspace.out, ledger=workspace.ledger.path)
    synth = synthesizer(asked, public_description(work.described(), order))
    synth.check(rows)
    epsilon, delta = exact(order.epsilon, "epsilon"), exact(order.delta, "delta")
    if epsilon > LARGE_EPSILON and not order.confirm_large_epsilon:
        raise ParameterError(
            f"ε = {float(epsilon):g} is above {LARGE_EPSILON}, a weak guarantee. Under “More choices” you can confirm "
            "that you want it."
        )
    if not order.dataset:
        raise ParameterError("choose the dataset whose budget pays for this release, or open one.")
    workspace.ledger.check(order.dataset, epsilon, delta, work.unit(order), synth.rho, order.neighbours)


@router.post("/work/{work_id}/dataset")
def open_dataset(request: Request, workspace: CurrentWorkspace, work: CurrentWork, form: CheckedForm) -> Response:
    """Open a dataset in the ledger: a promise that is final."""
    with work.lock, suppress(CoveyError):  # what else the form says is kept; whether it is right is asked later
        work.choose(read_order(form, work.order))
    try:
        if not form.has("final"):
            raise ParameterError("tick the box first. A cap cannot be changed later.")
        name, *opened = read_budget(form)
        workspace.ledger.open_dataset(name, *opened)
    except CoveyError as error:
        return privacy_page_with(request, workspace, work, work.order, form, error=error, opening=True)
    with work.lock:
        if isinstance(work.order, PrivateOrder):
            work.choose(replace(work.order, dataset=name))
    return go(f"/work/{work.id}/privacy#dataset")
