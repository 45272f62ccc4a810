"""The app under load: twenty people at once for a minute, over loopback, each with a table of their own.

Everybody walks through the pages of every step, moves the slider, and reads for a moment before the next page. The server is
`covey serve` in a process of its own. Passes if no answer is a server error and 95% of them come within 300 ms; releases
themselves are jobs in other processes and are not part of this.

    python benchmarks/serve.py [--users 20] [--seconds 60] [--pause 0.2]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from fractions import Fraction
from pathlib import Path

import httpx
import numpy as np

from covey.ledger import Ledger

LIMIT_MS = 300


# What anyone could know about the example's numbers and dates, as the page's script sends it.
LIMITS = json.dumps(
    {
        0: [["type", "integer"], ["minimum", "0"], ["maximum", "120"], ["missing", "on"]],
        3: [["type", "number"], ["minimum", "0"], ["maximum", "60000"], ["bins", "9"], ["missing", "on"]],
        6: [["type", "date"], ["minimum", "2023-01-01"], ["maximum", "2025-12-31"], ["missing", "on"]],
    }
)


class Visitor:
    """One person: what they asked, and how long the answers took."""

    def __init__(self, client: httpx.AsyncClient, name: int) -> None:
        self.client, self.chance = client, random.Random(name)
        self.times: list[tuple[str, float]] = []
        self.codes: Counter[int] = Counter()
        self.work = self.csrf = ""

    async def ask(self, kind: str, path: str, data: dict[str, str] | None = None) -> httpx.Response:
        """Load a page, or send a form."""
        begin = time.perf_counter()
        if data is None:
            answer = await self.client.get(path)
        else:
            answer = await self.client.post(path, data={"csrf": self.csrf, **data})
        self.times.append((kind, 1000 * (time.perf_counter() - begin)))
        self.codes[answer.status_code] += 1
        return answer

    async def arrive(self) -> None:
        """Bring a table as far as its review."""
        home = await self.ask("home", "/")
        self.csrf = re.search(r'name="csrf" value="([^"]+)"', home.text)[1]  # type: ignore[index]
        made = await self.ask("new table", "/work", {})
        self.work = made.headers["location"].rpartition("/")[0]
        await self.ask("read the table", f"{self.work}/example", {})
        await self.ask("keep what is typed", f"{self.work}/columns", {"typed": LIMITS})
        shown = await self.ask("what becomes public", f"{self.work}/columns/confirm")
        key = re.search(r'name="key" value="(\w+)"', shown.text)[1]  # type: ignore[index]
        await self.ask("confirm", f"{self.work}/columns/confirm", {"public": "on", "key": key})
        choices = {"mode": "private", "epsilon": "1", "dataset": "people"}
        await self.ask("choose", f"{self.work}/privacy", choices)

    async def walk(self, until: float, pause: float) -> None:
        """Go through the pages again and again."""
        pages = ["table", "columns", "rules", "privacy", "review"]
        while time.perf_counter() < until:
            for step in pages:
                await self.ask(step, f"{self.work}/{step}")
                if step == "privacy":
                    for _ in range(4):  # the slider
                        epsilon = f"{10 ** (0.05 * self.chance.randint(-40, 20)):.2g}"
                        guarantee = self.chance.choice(["pure", "delta"])
                        query = f"mode=private&epsilon={epsilon}&guarantee={guarantee}&delta=1e-9&dataset=people"
                        await self.ask("slider", f"{self.work}/predict?{query}")
                        await asyncio.sleep(pause * self.chance.random())
                await asyncio.sleep(pause * 2 * self.chance.random())
            await self.ask("ledger", "/ledger")
            await self.ask("home", "/")


async def crowd(address: str, users: int, seconds: float, pause: float) -> list[Visitor]:
    home = address.partition("/?")[0]
    async with httpx.AsyncClient(base_url=home, headers={"origin": home}, timeout=60, trust_env=False) as client:
        await client.get(address)
        visitors = [Visitor(client, i) for i in range(users)]
        await asyncio.gather(*(visitor.arrive() for visitor in visitors))
        for visitor in visitors:
            visitor.times.clear()  # arriving reads a table: measured once, apart from the pages
        await asyncio.gather(*(visitor.walk(time.perf_counter() + seconds, pause) for visitor in visitors))
        return visitors


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--users", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--pause", type=float, default=0.2, help="seconds a person reads, about")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger(Path(folder) / "ledger.sqlite")
        ledger.open_dataset("people", Fraction(100))
        line = [sys.executable, "-m", "covey.desk.cli", "serve", "--no-browser", "--json", "--out", f"{folder}/out"]
        line += ["--ledger", str(ledger.path)]
        with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            address = json.loads(server.stdout.readline())["address"]
            try:
                visitors = asyncio.run(crowd(address, options.users, options.seconds, options.pause))
            finally:
                server.terminate()
    codes = sum((visitor.codes for visitor in visitors), Counter())
    everything = np.array([ms for visitor in visitors for _, ms in visitor.times])
    print(f"{'page':12}{'answers':>9}{'median ms':>11}{'95% ms':>9}")
    for kind in dict.fromkeys(kind for visitor in visitors for kind, _ in visitor.times):
        times = np.array([ms for visitor in visitors for k, ms in visitor.times if k == kind])
        print(f"{kind:12}{len(times):>9}{np.median(times):>11.1f}{np.quantile(times, 0.95):>9.1f}")
    p95 = float(np.quantile(everything, 0.95))
    failed = sum(count for code, count in codes.items() if code >= 500)
    rate = len(everything) / options.seconds
    print(f"{'all':12}{len(everything):>9}{np.median(everything):>11.1f}{p95:>9.1f}")
    print(f"{options.users} users, {rate:.0f} pages a second; answers by status: {dict(sorted(codes.items()))}")
    passed = not failed and p95 < LIMIT_MS
    print("passed" if passed else f"FAILED: no 5xx and a 95% quantile below {LIMIT_MS} ms were promised")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
