"""The tour in pictures: the app walked by a script, so that its pictures cannot show what is no longer there.

`make tour` renews docs/pictures/tour-*.png, which docs/guides/app.md shows, the small ones on the app's first page, and
docs/pictures/demo.png, what `make demo` ends with. The tables are fictitious.
"""

from __future__ import annotations

import shutil
import sys
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import sync_playwright

from covey.desk.demo import demonstrate, example_visits
from tests.desk.web.conftest import PUBLIC_LIMITS, opened_workspace, served

ROOT = Path(__file__).parents[1]
PLACE, SMALL = ROOT / "docs" / "pictures", ROOT / "src" / "covey" / "web" / "static" / "tour"
ON_THE_FIRST_PAGE = ("columns", "privacy", "review", "report")
SIZE = {"width": 1200, "height": 1000}
STEPS = ("columns", "privacy", "review", "bundle", "report", "evaluation", "ledger")


def tour(place: Path, width: int = SIZE["width"], scheme: str = "light", full: bool = False) -> list[Path]:
    """A picture of every stop, in order."""
    taken: list[Path] = []
    with TemporaryDirectory() as folder, opened_workspace(Path(folder)) as workspace, sync_playwright() as playwright:
        workspace.ledger.open_dataset("visits", Fraction(3))
        with served(workspace) as visitor:
            visitor.enter()
            said = {
                "title": "Hospital visits",
                "owner": "Data office, St. Example",
                "purpose": "Teaching biostatistics",
            }
            # No steps: amounts are kept at their own precision, as the app advises.
            limits = PUBLIC_LIMITS.replace('["bins", "9"]', '["bins", ""]')
            work = visitor.ready_work(3000, limits, guarantee="delta", delta="1e-9", **said)
            browser = playwright.chromium.launch(
                executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
            )
            page = browser.new_page(viewport={**SIZE, "width": width}, color_scheme=scheme)
            page.goto(visitor.address)

            def shoot(name: str, at: str = "") -> None:
                if at:
                    page.goto(f"{visitor.home}{at}")
                page.wait_for_load_state("networkidle")
                if place == PLACE and name in ON_THE_FIRST_PAGE:
                    SMALL.mkdir(exist_ok=True)
                    page.screenshot(path=SMALL / f"{name}.jpg", type="jpeg", quality=60, scale="css")
                taken.append(place / f"tour-{name}.png")
                page.screenshot(path=taken[-1], full_page=full)

            drafted = visitor.new_work()
            example = Path(folder) / "visits.csv"
            example_visits(example, 3000)
            visitor.upload(drafted, example.read_bytes())
            shoot("columns", f"/work/{drafted}/columns")
            shoot("privacy", f"/work/{work}/privacy")
            shoot("review", f"/work/{work}/review")
            visitor.post(f"/work/{work}/release", {"review": visitor.review(work)})
            assert visitor.finished(work).state == "done"
            shoot("bundle", f"/work/{work}/bundle")
            shoot("report", f"/work/{work}/bundle/report")
            page.set_content(visitor.post(f"/work/{work}/evaluate").text)
            shoot("evaluation")
            page.goto(f"{visitor.home}/ledger")
            page.locator("details").first.click()
            shoot("ledger")
            browser.close()
    return taken


def demonstration(place: Path) -> Path:
    """What `make demo` ends with: the first screen of its report."""
    with TemporaryDirectory() as folder, sync_playwright() as playwright:
        demonstrate(Path(folder) / "demo", 5000, force=False)
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page(viewport={"width": 1060, "height": 1060})
        page.goto((Path(folder) / "demo" / "release" / "report.html").as_uri())
        page.screenshot(path=place / "demo.png")
        browser.close()
    return place / "demo.png"


if __name__ == "__main__":
    where = Path(sys.argv[1]) if len(sys.argv) > 1 else PLACE
    options = {"width": int(sys.argv[2]), "scheme": sys.argv[3], "full": True} if len(sys.argv) > 3 else {}
    for path in [demonstration(where), *tour(where, **options)]:
        print(path)
