"""The fourth step: the guarantee, and what it will cost."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from math import log10
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from covey.errors import CoveyError, LedgerError, ParameterError
from covey.methods.persons.certify import WORDS
from covey.orders import PrivateOrder
from covey.privacy.ledger import DatasetStatus
from covey.release.agreement import risks, why
from covey.release.contents import LARGE_EPSILON
from covey.release.places import check_disk
from covey.synthesizers import AnonymousSynthesizer
from covey.web.choices import Choices
from covey.web.export import number
from covey.web.forms import read_budget, read_choices
from covey.web.pages.shared import (
    CheckedForm,
    CurrentWork,
    CurrentWorkspace,
    go,
    page,
    redirect_if_early,
    status,
    templates,
)
from covey.web.security import Form, Refused
from covey.web.work import Work, prediction
from covey.web.workspace import Workspace
from covey.workflow import public_description, synthesizer

CURVE = tuple(Fraction(repr(round(10 ** (k / 4), 3))) for k in range(-8, 5))  # the ε of the error curve, 0.01 to 10

SMALL_DELTA = Fraction(1, 10**9)  # what the other kind of guarantee is shown with until one is chosen

router = APIRouter()


def privacy_values(workspace: Workspace, work: Work, choices: Choices) -> dict[str, Any]:
    """What the privacy step and its live panel show, from public numbers and the ledger alone."""
    values: dict[str, Any] = {"work": work, "choices": choices, "large": LARGE_EPSILON}
    values["rows"] = rows = work.table.rows if work.table else 1
    try:
        rows = work.counted(choices)
    except CoveyError as error:
        values["problem"] = str(error)
    values["n"] = rows
    try:
        datasets = workspace.datasets()
    except LedgerError as error:
        datasets, values["ledger_error"] = [], str(error)
    values["datasets"] = datasets
    chosen = next((d for d in datasets if d.name == choices.dataset), None)
    values["dataset"] = chosen
    values |= after_charge(work, choices, chosen) if chosen and choices.mode == "private" else {"after": None}
    if choices.mode == "private" and "problem" not in values:
        try:
            if work.link:
                values["expected"] = work.expect(choices)
                return values
            values["prediction"] = work.predict(choices)
            values["curve"] = error_curve(work, choices, rows)
            values["kinds"] = both_kinds(work, choices, rows)
            values["noise"] = work.noise_preview(choices)
        except CoveyError as error:
            values["problem"] = str(error)
    return values


def after_charge(work: Work, choices: Choices, dataset: DatasetStatus) -> dict[str, Any]:
    """What the ledger will say of a dataset once this release is charged, as the ledger itself counts, or why it will refuse."""
    with suppress(CoveyError):
        budget = work.budget(choices)
        asked = budget.epsilon, budget.delta, budget.rows_covered, budget.gaussian_rho
        return {"after": dataset.after(*asked), "refusal": dataset.refusal(*asked)}
    return {"after": None}


def both_kinds(work: Work, choices: Choices, rows: int) -> list[tuple[str, float, bool]]:
    """The error with pure ε and with a δ, side by side: the kind, the figure, and whether it is the one chosen."""
    sizes, small = work.sizes(), choices.delta or SMALL_DELTA
    return [
        (
            words,
            prediction(sizes, rows, choices.epsilon, delta, choices.unit, choices.neighbours).misplaced,
            bool(choices.delta) == bool(delta),
        )
        for words, delta in (("pure ε", Fraction(0)), (f"δ = {number(small)}", small))
        if delta * rows < 1
    ]


def error_curve(work: Work, choices: Choices, rows: int) -> list[tuple[float, float]]:
    """The predicted error over ε, on the axes of the picture: both logarithmic, 0 to 1."""
    sizes = work.sizes()
    errors = [prediction(sizes, rows, e, choices.delta, choices.unit, choices.neighbours).misplaced for e in CURVE]
    return [on_axes(float(e), error) for e, error in zip(CURVE, errors, strict=True)]


def on_axes(epsilon: float, error: float) -> tuple[float, float]:
    """A point of the error curve."""
    across = (log10(epsilon) + 2) / 3
    up = (log10(max(error, 1e-4)) + 4) / 4
    return round(min(max(across, 0), 1), 4), round(min(max(up, 0), 1), 4)


templates.env.globals.update(on_axes=on_axes, risks=risks, why=why, words_of=WORDS)


@router.get("/work/{work_id}/privacy")
def privacy_page(request: Request, workspace: CurrentWorkspace, work: CurrentWork) -> Response:
    """Choose the guarantee."""
    away = redirect_if_early(work, "privacy")
    if away is not None:
        return away
    return privacy_page_with(request, workspace, work, work.choices)


def privacy_page_with(
    request: Request,
    workspace: Workspace,
    work: Work,
    choices: Choices,
    form: Form | None = None,
    code: int = 200,
    **words: str,
) -> Response:
    """The privacy step. After a refusal everything stands as it was typed: `form` is what came, `words` say what is wrong."""
    given = form or Form({})
    values = privacy_values(workspace, work, choices) | {
        "said": given.get,
        "sensitive": choices.sensitive if form is None else given.all("sensitive"),
        "important": choices.important if form is None else given.all("important"),
        "large_confirmed": choices.confirm_large_epsilon if form is None else given.has("confirm_large_epsilon"),
        **words,
    }
    return page(request, "privacy.html", code, step="privacy", **values)


def chosen_for(work: Work, form: Form) -> Choices:
    """What a form chooses, as far as these tables take it."""
    return read_choices(form, work.choices).without(work.not_taken)


@router.get("/work/{work_id}/predict")
def predict_piece(request: Request, workspace: CurrentWorkspace, work: CurrentWork) -> Response:
    """The live panel: predicted error and remaining budget for what the form says now."""
    if not work.confirmed:
        raise Refused(409, "Confirm the columns first.")
    form = Form({key: request.query_params.getlist(key) for key in request.query_params})
    try:
        values = privacy_values(workspace, work, chosen_for(work, form))
    except CoveyError as error:
        values = {**privacy_values(workspace, work, work.choices), "problem": str(error)}
    return page(request, "prediction_piece.html", **values)


@router.post("/work/{work_id}/privacy")
def choose_privacy(request: Request, workspace: CurrentWorkspace, work: CurrentWork, form: CheckedForm) -> Response:
    """Keep the choices, or say what is wrong with them."""
    choices = work.choices
    try:
        with work.lock:  # what is checked is what is chosen, for the table that was checked
            choices = chosen_for(work, form)
            check_choices(workspace, work, choices)
            work.chosen = True
            work.choose(choices)
    except CoveyError as error:
        return privacy_page_with(request, workspace, work, choices, form, status(error), error=str(error))
    return go(f"/work/{work.id}/review")


def check_choices(workspace: Workspace, work: Work, choices: Choices) -> None:
    """Refuse now what the release would refuse: from public numbers and the ledger alone."""
    rows = work.counted(choices)
    check_disk(rows if choices.rows is None else choices.rows, len(work.kept), workspace.out)
    if choices.mode == "anonymous":
        if choices.group_size > rows:
            raise ParameterError(f"the group size must not exceed the number of rows, {rows}.")
        AnonymousSynthesizer(choices.group_size, schema=work.schema())
        return
    order = choices.order(Path(), None, workspace.out, work.kept)
    assert isinstance(order, PrivateOrder)  # nosec B101 # for the type checker; the other mode is done with
    synth = synthesizer(order, public_description(work.described(), order))
    synth.check(rows)
    if choices.epsilon > LARGE_EPSILON and not choices.confirm_large_epsilon:
        raise ParameterError(
            f"ε = {float(choices.epsilon):g} is above {LARGE_EPSILON}, a weak guarantee. Under “More choices” you can confirm "
            "that you want it."
        )
    if not choices.dataset:
        raise ParameterError("choose the dataset whose budget pays for this release, or open one.")
    workspace.ledger.check(choices.dataset, choices.epsilon, choices.delta, work.unit(choices), synth.rho)


@router.post("/work/{work_id}/dataset")
def open_dataset(request: Request, workspace: CurrentWorkspace, work: CurrentWork, form: CheckedForm) -> Response:
    """Open a dataset in the ledger: a promise that is final."""
    with work.lock, suppress(CoveyError):  # what else the form says is kept; whether it is right is asked later
        work.choose(chosen_for(work, form))
    try:
        if not form.has("final"):
            raise ParameterError("tick the box first. A cap cannot be changed later.")
        name, *opened = read_budget(form)
        workspace.ledger.open_dataset(name, *opened)
    except CoveyError as error:
        return privacy_page_with(request, workspace, work, work.choices, form, status(error), dataset_error=str(error))
    with work.lock:
        work.choose(replace(work.choices, dataset=name))
    return go(f"/work/{work.id}/privacy#dataset")
