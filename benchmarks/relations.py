"""Rows that can be believed: shares of synthetic rows that contradict themselves, with and without relations found by noise.

python -m benchmarks.relations [--rows 20000] [--settings "1:1e-9,2:1e-9"] [--seeds 1,2] [--tables flights,loans,…] [--out FOLDER]
                               [--runs 10]

Four kinds of tables are made here; court (compas) and customers (telco) are real and read from the folder in COVEY_DATA. Each has
checks that the search does not see. The search was developed on the two real ones. Everything is learned: names and types alone
are given. Last come `--runs` releases of the court records by the shortest road, and what `covey evaluate` says of each.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

import covey
from benchmarks.binary import DATA
from covey import workflow
from covey.evaluation.comparison import compare, contradictions


def number(rows, name):
    return pd.to_numeric(rows[name], errors="coerce").astype(float)


def clock(minutes):
    """Minutes of a day as hours and minutes, 1330 for half past one."""
    minutes = np.mod(minutes, 1440)
    return minutes // 60 * 100 + minutes % 60


def minutes(written):
    return written // 100 * 60 + written % 100


def flights(n, seed):
    """Departures: parts of a number, times that add up, a date and its parts, holes that go together."""
    draw = np.random.default_rng(seed)
    places = [f"{a}{b}{c}" for a in "ABCD" for b in "AEO" for c in "XTR"]
    far = dict(zip(places, draw.integers(180, 2600, len(places)), strict=True))
    dest, origin = draw.choice(places, n, p=draw.dirichlet(np.full(36, 0.6))), draw.choice(["E", "J", "L"], n)
    distance = np.array([far[d] for d in dest]) + np.where(origin == "J", 11, 0)
    planned = draw.choice(np.arange(300, 1380, 5), n)
    late = np.where(draw.random(n) < 0.6, draw.normal(-3, 4, n), draw.exponential(40, n)).round().astype(int)
    air = (distance / 7.5 + draw.normal(20, 8, n)).round().astype(int)
    arrival, later = planned + air + draw.integers(20, 50, n), late + draw.normal(-5, 10, n).round().astype(int)
    day = pd.Timestamp("2013-01-01") + pd.to_timedelta(draw.integers(0, 365, n), unit="D")
    rows = pd.DataFrame(
        {
            "month": day.month,
            "day": day.day,
            "sched_dep_time": clock(planned),
            "dep_time": clock(planned + late),
            "dep_delay": late,
            "sched_arr_time": clock(arrival),
            "arr_time": clock(arrival + later),
            "arr_delay": later,
            "carrier": draw.choice(["UA", "AA", "DL", "B6"], n),
            "origin": origin,
            "dest": dest,
            "air_time": air,
            "distance": distance,
            "hour": clock(planned) // 100,
            "minute": clock(planned) % 100,
            "date": day.strftime("%Y-%m-%d"),
        }
    )
    cancelled = draw.random(n) < 0.03
    for name in ("dep_time", "dep_delay", "arr_time", "arr_delay", "air_time"):
        rows[name] = rows[name].astype("Int64").mask(cancelled)
    return rows


def check_flights(rows):
    def off(time_of, planned, delay):
        gap = minutes(number(rows, time_of)) - minutes(number(rows, planned)) - number(rows, delay)
        return (np.mod(gap + 720, 1440) - 720).abs() > 1

    date = pd.to_datetime(rows["date"], errors="coerce")
    return {
        "hour against the planned time": number(rows, "hour") != number(rows, "sched_dep_time") // 100,
        "minute against the planned time": number(rows, "minute") != number(rows, "sched_dep_time") % 100,
        "a minute beyond 59": number(rows, "sched_dep_time") % 100 > 59,
        "delay against the times of departure": off("dep_time", "sched_dep_time", "dep_delay"),
        "delay against the times of arrival": off("arr_time", "sched_arr_time", "arr_delay"),
        "delay without departure, or the other way": number(rows, "dep_time").isna()
        != number(rows, "dep_delay").isna(),
        "month against date": date.dt.month != number(rows, "month"),
        "day against date": date.dt.day != number(rows, "day"),
    }


def loans(n, seed):
    """Loans: letters of codes, sums of four columns, orders, repayments by a formula."""
    draw = np.random.default_rng(seed)
    place = np.minimum(draw.poisson(9, n), 34)
    grade = np.array([f"{'ABCDEFG'[k // 5]}{k % 5 + 1}" for k in range(35)])[place]
    rate = (5.3 + 0.62 * place + draw.normal(0, 0.15, n)).round(2)
    term, amount = (
        draw.choice([36, 60], n, p=[0.74, 0.26]),
        np.clip(draw.lognormal(9.4, 0.6, n), 1000, 35000) // 25 * 25,
    )
    funded = np.where(draw.random(n) < 0.03, amount * draw.uniform(0.5, 1, n) // 25 * 25, amount)
    monthly = rate / 1200
    paid, interest = (funded * draw.beta(4, 1, n)).round(2), (funded * rate / 400 * draw.uniform(0.3, 1, n)).round(2)
    fee = np.where(draw.random(n) < 0.06, draw.uniform(15, 60, n).round(2), 0)
    issued = pd.Timestamp("2012-01-01") + pd.to_timedelta(draw.integers(0, 1400, n), unit="D")
    status = draw.choice(["paid", "current", "charged off"], n, p=[0.4, 0.45, 0.15])
    return pd.DataFrame(
        {
            "loan_amnt": amount.astype(int),
            "funded_amnt": funded.astype(int),
            "term": [f"{t} months" for t in term],
            "int_rate": rate,
            "installment": (funded * monthly / (1 - (1 + monthly) ** -term.astype(float))).round(2),
            "grade": [g[0] for g in grade],
            "sub_grade": grade,
            "annual_inc": draw.lognormal(11, 0.5, n).round().astype(int),
            "issue_d": issued.strftime("%Y-%m-%d"),
            "last_pymnt_d": (issued + pd.to_timedelta(draw.integers(60, 900, n), unit="D")).strftime("%Y-%m-%d"),
            "loan_status": status,
            "total_pymnt": (paid + interest + fee).round(2),
            "total_rec_prncp": paid,
            "total_rec_int": interest,
            "total_rec_late_fee": fee,
            "recoveries": np.where(status == "charged off", draw.exponential(500, n).round(2) + 1, 0),
        }
    )


def check_loans(rows):
    term = pd.to_numeric(rows["term"].astype(str).str[:2], errors="coerce")
    monthly = number(rows, "int_rate") / 1200
    due = number(rows, "funded_amnt") * monthly / (1 - (1 + monthly) ** -term)
    parts = number(rows, "total_rec_prncp") + number(rows, "total_rec_int") + number(rows, "total_rec_late_fee")
    return {
        # Labels that no noise would show are called other, and contradict nothing.
        "grade against sub-grade": (rows["sub_grade"].astype(str).str[0] != rows["grade"].astype(str))
        & (rows["sub_grade"] != "other"),
        "funded more than asked for": number(rows, "funded_amnt") > number(rows, "loan_amnt"),
        "installment off by a tenth": (number(rows, "installment") / due - 1).abs() > 0.1,
        "total against its parts": (number(rows, "total_pymnt") - parts).abs() > 1,
        "paid before it was issued": pd.to_datetime(rows["last_pymnt_d"]) < pd.to_datetime(rows["issue_d"]),
        "recovered what is not lost": (number(rows, "recoveries") > 0) & (rows["loan_status"] != "charged off"),
        "more principal than loan": number(rows, "total_rec_prncp") > number(rows, "loan_amnt") + 1,
    }


def orders(n, seed):
    """Orders: products, sums, dates and days between them, places, returns."""
    draw = np.random.default_rng(seed)
    quantity, price = np.minimum(draw.geometric(0.3, n), 30), draw.choice([4.5, 9.99, 14.25, 19.9, 49, 120.5], n)
    value = (quantity * price).round(2)
    discount = np.where(draw.random(n) < 0.2, (0.1 * value).round(2), 0)
    net = (value - discount).round(2)
    ordered = pd.Timestamp("2021-01-01") + pd.to_timedelta(draw.integers(0, 730, n), unit="D")
    wait, back = draw.poisson(3, n), draw.random(n) < 0.1
    country = pd.Series(draw.choice(["DE", "FR", "US", "JP"], n, p=[0.4, 0.3, 0.2, 0.1]))
    product = [f"{k}-{j:02d}" for k, j in zip(draw.choice(["EL", "BK", "TY"], n), draw.integers(1, 9, n), strict=True)]
    return pd.DataFrame(
        {
            "product": product,
            "category": [p[:2] for p in product],
            "quantity": quantity,
            "unit_price": price,
            "subtotal": value,
            "discount": discount,
            "net": net,
            "tax": (0.2 * net).round(2),
            "total": (net + (0.2 * net).round(2)).round(2),
            "order_date": ordered.strftime("%Y-%m-%d"),
            "ship_date": (ordered + pd.to_timedelta(wait, unit="D")).strftime("%Y-%m-%d"),
            "ship_days": wait,
            "country": country,
            "continent": country.map({"DE": "Europe", "FR": "Europe", "US": "America", "JP": "Asia"}),
            "status": np.where(back, "returned", "kept"),
            "return_reason": np.where(back, draw.choice(["size", "broken"], n), ""),
        }
    )


def check_orders(rows):
    first, last = (pd.to_datetime(rows[name]) for name in ("order_date", "ship_date"))
    made = number(rows, "quantity") * number(rows, "unit_price")
    given = rows["return_reason"].fillna("").astype(str) != ""
    return {
        "category against product": rows["product"].astype(str).str[:2] != rows["category"].astype(str),
        "value against quantity and price": (number(rows, "subtotal") - made).abs() > 0.05 * made + 0.02,
        "net against value and discount": (
            number(rows, "subtotal") - number(rows, "discount") - number(rows, "net")
        ).abs()
        > 0.02,
        "total against net and tax": (number(rows, "net") + number(rows, "tax") - number(rows, "total")).abs() > 0.02,
        "shipped before it was ordered": last < first,
        "days against dates": (last - first).dt.days != number(rows, "ship_days"),
        "continent against country": rows["country"].map(
            {"DE": "Europe", "FR": "Europe", "US": "America", "JP": "Asia"}
        )
        != rows["continent"],
        "a reason without a return, or the other way": (rows["status"] == "returned") != given,
    }


def surveys(n, seed):
    """Answers: questions that are skipped, ages and years, members of a household."""
    draw = np.random.default_rng(seed)
    age = np.clip(draw.normal(45, 18, n), 16, 95).round().astype(int)
    work = np.where(age > 67, "retired", draw.choice(["employed", "unemployed", "inactive"], n, p=[0.7, 0.08, 0.22]))
    has_work, smoker, married = work == "employed", draw.random(n) < 0.25, draw.random(n) < 0.5
    children = draw.poisson(1.2, n)
    adults = 1 + draw.integers(0, 3, n)
    return pd.DataFrame(
        {
            "age": age,
            "birth_year": 2023 - age,
            "age_group": pd.cut(age, [0, 24, 44, 64, 120], labels=["16-24", "25-44", "45-64", "65+"]).astype(str),
            "employment": work,
            "hours": pd.Series(np.clip(draw.normal(37, 9, n), 1, 70).round()).where(has_work).astype("Int64"),
            "hourly_wage": pd.Series(np.clip(draw.lognormal(3, 0.4, n), 8, 150).round(2)).where(has_work),
            "smoker": np.where(smoker, "yes", "no"),
            "cigarettes": np.where(smoker, draw.poisson(12, n) + 1, 0),
            "children": children,
            "adults": adults,
            "household": children + adults,
            "married": np.where(married, "yes", "no"),
            "years_married": pd.Series(draw.integers(0, 40, n)).where(married).astype("Int64"),
            "satisfaction": draw.integers(1, 11, n),
        }
    )


def check_surveys(rows):
    group = pd.cut(number(rows, "age"), [0, 24, 44, 64, 120], labels=["16-24", "25-44", "45-64", "65+"]).astype(str)
    return {
        "year of birth against age": (2023 - number(rows, "age") - number(rows, "birth_year")).abs() > 1,
        "group against age": group != rows["age_group"].astype(str),
        "hours without work, or the other way": (rows["employment"] == "employed") != number(rows, "hours").notna(),
        "a wage without work, or the other way": (rows["employment"] == "employed")
        != number(rows, "hourly_wage").notna(),
        "cigarettes of who does not smoke": (rows["smoker"] == "no") & (number(rows, "cigarettes") > 0),
        "household against its members": number(rows, "household") != number(rows, "children") + number(rows, "adults"),
        "years of marriage against marriage": (rows["married"] == "yes") != number(rows, "years_married").notna(),
        "retired before 60": (rows["employment"] == "retired") & (number(rows, "age") < 60),
    }


def court(n, seed):
    """Court records: copies, an age and a date of birth, ends of stays in jail, days between dates; n is what the file has."""
    return pd.read_csv(DATA / "compas.csv", dtype=str)


def check_court(rows):
    def day(name):
        return pd.to_datetime(rows[name], errors="coerce")

    def ends(one, two):
        """Where one of two dates is missing, and where the second comes before the first."""
        first, last = day(one), day(two)
        return first.isna() != last.isna(), last < first

    score, age, screened = number(rows, "decile_score"), number(rows, "age"), day("compas_screening_date")
    group = pd.cut(age, [0, 24, 45, 200], labels=["Less than 25", "25 - 45", "Greater than 45"]).astype(str)
    text = pd.cut(score, [0, 4, 7, 10], labels=["Low", "Medium", "High"]).astype(str)
    arrested, days = day("c_jail_in"), number(rows, "days_b_screening_arrest")
    apart = (arrested.dt.normalize() - screened).dt.days
    missing, turned = ends("c_jail_in", "c_jail_out")
    missing_again, turned_again = ends("r_jail_in", "r_jail_out")
    again = rows["is_recid"].astype(str).str.startswith("1")
    return {
        "copies of the date of screening": (day("screening_date") != screened) | (day("v_screening_date") != screened),
        "copy of the score": number(rows, "decile_score.1") != score,
        "age against date of birth": ((pd.Timestamp("2016-04-01") - day("dob")).dt.days / 365.25 - age).abs() > 2,
        "group against age": (group != rows["age_cat"].astype(str)) & ~age.isin([24, 25, 45, 46]),
        "text against score": (text != rows["score_text"].astype(str)) & (score > 0),
        "released before arrested": turned,
        "one end of a stay missing": missing,
        "released before arrested again": turned_again,
        "one end of the second stay missing": missing_again,
        "days against their dates": (days - apart).abs() > 2,
        "another offence without its date": again != day("r_offense_date").notna(),
    }


def customers(n, seed):
    """Customers of a telephone company: services that exclude each other, charges that multiply; n is what the file has."""
    return pd.read_csv(DATA / "telco.csv")


def check_customers(rows):
    paid, due = number(rows, "TotalCharges"), number(rows, "MonthlyCharges") * number(rows, "tenure")
    line, net = rows["InternetService"] == "No", "No internet service"
    more = ("OnlineSecurity", "OnlineBackup", "DeviceProtection", "TechSupport", "StreamingTV", "StreamingMovies")
    return {
        "total against months times charge": (paid - due).abs() > 0.5 * due.clip(lower=20),
        "lines without a telephone": (rows["PhoneService"] == "Yes") == (rows["MultipleLines"] == "No phone service"),
        "services without internet": pd.concat([line != (rows[name] == net) for name in more], axis=1).any(axis=1),
        "dear without internet": line & (number(rows, "MonthlyCharges") > 40),
    }


TABLES = {
    "court": (court, check_court),
    "customers": (customers, check_customers),
    "flights": (flights, check_flights),
    "loans": (loans, check_loans),
    "orders": (orders, check_orders),
    "surveys": (surveys, check_surveys),
}


def distance(true, rows):
    """The mean distance of tables of two columns, numbers in tenths of the true ones."""
    codes = []
    for name in true:
        one, two = true[name], rows[name]
        if pd.api.types.is_numeric_dtype(one) and one.nunique() > 12:
            cuts = np.unique(np.nanquantile(one.astype(float), np.linspace(0.1, 0.9, 9)))
            put = [np.where(x.isna(), -1, np.searchsorted(cuts, x.astype(float), side="right")) for x in (one, two)]
        else:
            if pd.api.types.is_numeric_dtype(one):  # 1 and 1.0 are one value
                one, two = one.astype(float), pd.to_numeric(two, errors="coerce").astype(float)
            words = {word: j for j, word in enumerate(one.astype(str).value_counts().index[:20])}
            put = [x.astype(str).map(words).fillna(20).astype(int).to_numpy() for x in (one, two)]
        codes.append([x + 1 for x in put])
    found = []
    for i in range(len(codes)):
        for j in range(i):
            tables = [np.bincount(codes[i][k] * 32 + codes[j][k], minlength=1024) / len(codes[i][k]) for k in (0, 1)]
            found.append(np.abs(tables[0] - tables[1]).sum() / 2)
    return float(np.mean(found))


def released(path, setting, seed, related):
    """Synthetic rows, as many as true ones, and what was found; nothing but names and types is known."""
    epsilon, delta = map(float, setting.split(":"))
    schema = covey.Schema.draft(path).to_learn()
    schema = schema if related else replace(schema, relations="none")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        begun = time.process_time()
        synth = covey.PrivateSynthesizer(epsilon, delta, schema=schema, seed=seed).fit(path)
        seconds = time.process_time() - begun
        rows = synth.sample(synth.privacy.n)
    with tempfile.TemporaryDirectory() as folder:
        (rows if isinstance(rows, pd.DataFrame) else rows.to_pandas()).to_csv(f"{folder}/rows.csv", index=False)
        return pd.read_csv(f"{folder}/rows.csv"), synth.schema.found, seconds


def shortest_road(runs):
    """Each run: its seed, the mean share of rows that break a check, the worst check, and the worst that `evaluate` names."""
    table, found = DATA / "compas.csv", []
    true = pd.read_csv(table)
    for seed in range(1, runs + 1):
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            out = Path(folder) / "release"
            order = workflow.PrivateOrder(table, None, out, epsilon=1, delta=1e-9, learn=True, seed=seed)
            workflow.release(order)
            rows = pd.read_csv(out / "synthetic.csv").reindex(columns=true.columns)
            compared = compare(table, out)
            named = contradictions(compared.codec, (compared.read, compared.drawn))["worst"][0]
        shares = {key: float(np.mean(bad)) for key, bad in check_court(rows).items()}
        worst = max(shares, key=shares.get)
        found.append((seed, float(np.mean(list(shares.values()))), worst, shares[worst], named))
        print(found[-1], flush=True)
    return found


def road_lines(found):
    """These runs as a table of the page."""
    if not found:
        return []
    lines = ["", f"## {len(found)} releases of court by the shortest road", ""]
    lines += [
        f"`covey release compas.csv --learn --epsilon 1 --delta 1e-9`, one seed after the other: on average over the checks "
        f"{100 * np.mean([mean for _, mean, *_ in found]):.1f}% of the rows contradict themselves, in the worst run "
        f"{100 * max(mean for _, mean, *_ in found):.1f}%.",
        "",
        "| seed | mean of the checks, % | the worst check | % | the worst relation that `covey evaluate` names | % |",
        "|---|---|---|---|---|---|",
    ]
    return lines + [
        f"| {seed} | {100 * mean:.1f} | {worst} | {100 * share:.1f} | {named['relation']} | {100 * named['synthetic']:.1f} |"
        for seed, mean, worst, share, named in found
    ]


def main():
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--settings", default="1:1e-9,2:1e-9")
    parser.add_argument("--seeds", default="1,2")
    parser.add_argument("--tables", default=",".join(TABLES))
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--out", type=Path, default=Path("docs/benchmarks"))
    said = parser.parse_args()
    lines, summary = [], []
    for name in said.tables.split(","):
        make, check = TABLES[name]
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/{name}.csv"
            make(said.rows, 7).to_csv(path, index=False)
            true = pd.read_csv(path)
            for setting in said.settings.split(","):
                shares, apart, times = {False: [], True: []}, {False: [], True: []}, {False: [], True: []}
                found = ()
                for seed in map(int, said.seeds.split(",")):
                    for related in (False, True):
                        rows, told, seconds = released(path, setting, seed, related)
                        rows = rows.reindex(columns=true.columns)
                        shares[related].append({key: float(np.mean(bad)) for key, bad in check(rows).items()})
                        apart[related].append(distance(true, rows))
                        times[related].append(seconds)
                        found = told or found
                means = {related: pd.DataFrame(own).mean() for related, own in shares.items()}
                line = [means[False].mean(), means[True].mean(), np.mean(apart[False]), np.mean(apart[True])]
                summary.append((name, setting, *line, np.mean(times[True]) - np.mean(times[False])))
                print(summary[-1], flush=True)
                lines += ["", f"### {name}, ε = {setting.split(':')[0]}, δ = {setting.split(':')[1]}", ""]
                lines += ["| rows that contradict themselves, % | without | with |", "|---|---|---|"]
                lines += [
                    f"| {key} | {100 * means[False][key]:.1f} | {100 * means[True][key]:.1f} |"
                    for key in means[True].index
                ]
                lines += ["", "Found in the last release:", "", *(f"- {relation}" for relation in found)]
    write_page(said, summary, lines + road_lines(shortest_road(said.runs)))


def write_page(said, summary, lines):
    """docs/benchmarks/relations.md."""
    head = [
        "# Rows that can be believed",
        "",
        "Shares of synthetic rows that contradict themselves, by checks that the search does not see, of releases of which "
        "nothing but names and types of columns was given (`--learn`), with and without the search for relations; means over "
        f"seeds {said.seeds}. Court records (compas, 11,757 rows) and customers (telco, 7,043) are real, and the search was "
        f"developed on them; the other tables, of {said.rows:,} rows, are made by `benchmarks/relations.py`. Columns that a "
        "release leaves out count as missing.",
        "",
        "| table | ε, δ | without, % | with, % | distance of pairs without | with | more seconds |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, setting, plain, related, before, after, seconds in summary:
        shown = setting.replace(":", ", ")
        head.append(
            f"| {name} | {shown} | {100 * plain:.1f} | {100 * related:.1f} | {before:.4f} | {after:.4f} | {seconds:.1f} |"
        )
    said.out.mkdir(parents=True, exist_ok=True)
    (said.out / "relations.md").write_text("\n".join([*head, *lines]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
