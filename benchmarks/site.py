"""The site of the documentation, as `make docs` builds it: every page judged by axe-core in both colour schemes, wide and narrow.

Pages are opened from the folder; nothing may be asked of another host, and the search must find something.

`make docs-look` runs it. It is no part of the suite, which does not install what builds the site.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Any

from playwright.sync_api import TimeoutError, sync_playwright

ROOT = Path(__file__).parents[1]
SCREENS = ((1280, "light"), (390, "dark"))
GRAVE = ("moderate", "serious", "critical")


def problems(page: Any, axe: str, width: int) -> list[str]:
    """What a reader of this page would stumble over."""
    page.evaluate(axe)
    found = page.evaluate("axe.run({resultTypes: ['violations']})")["violations"]
    words = [f"{f['id']} ({f['impact']}): {f['nodes'][0]['html'][:120]}" for f in found if f["impact"] in GRAVE]
    wide = page.evaluate("document.documentElement.scrollWidth")
    return words + ([f"{wide} wide on a screen of {width}"] if wide > width else [])


def searched(page: Any, site: Path) -> list[str]:
    """What is wrong with the search of a site that is read from a folder."""
    page.goto((site / "index.html").as_uri())
    try:
        page.locator("input.md-search__input").fill(
            "certificate", timeout=20_000
        )  # hidden where the search cannot work
        page.locator(".md-search-result__item").first.wait_for(timeout=20_000)
    except TimeoutError:
        return ["the search finds nothing"]
    return []


def main(site: Path) -> int:
    """Look at every page; the number of those with a problem."""
    axe = Path(os.environ.get("COVEY_AXE", ROOT / "build/axe-core/axe.min.js")).read_text()
    wrong, asked = 0, set[str]()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        for width, scheme in SCREENS:
            page = browser.new_page(viewport={"width": width, "height": 860}, color_scheme=scheme)
            page.on("request", lambda request: request.url.startswith("http") and asked.add(request.url))
            for path in sorted(p for p in site.rglob("*.html") if p.name != "404.html"):  # whose links want a server
                page.goto(path.as_uri())
                for words in problems(page, axe, width):
                    wrong += 1
                    print(f"{path.relative_to(site)}, {width} {scheme}: {words}", flush=True)
        page = browser.new_page(viewport={"width": 1280, "height": 860})
        others = [*searched(page, site), *(f"asks another host: {url}" for url in sorted(asked))]
        browser.close()
    for words in others:
        print(words)
    wrong += len(others)
    print(f"{wrong} problems")
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "site"))
