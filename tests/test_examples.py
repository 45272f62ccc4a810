import os
import re
import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parents[1] / "examples"


def run(name, *options):
    """What an example prints; it must end well, and warn of nothing that it does not expect."""
    command = [sys.executable, "-W", "error", str(EXAMPLES / name), *options]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"OPENBLAS_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_hospital_keeps_its_rules():
    printed = run("hospital.py")
    assert "most chronic diseases in a synthetic row: 3" in printed
    made = float(re.search(r"of true rows, ([\d.]+) of synthetic", printed)[1])
    assert 0.045 < made < 0.09  # 0.073 of true rows; 0.041 if the two diseases had nothing to do with each other


def test_survey_keeps_who_does_not_answer():
    printed = run("survey.py")
    rows = re.findall(r"(true|synthetic): income (\d+), satisfaction (\d+); ([\d.]+), ([\d.]+)", printed)
    true, made = ([float(x) for x in row[1:]] for row in rows)
    assert abs(made[0] - true[0]) < 300
    assert abs(made[1] - true[1]) < 300
    assert made[2] > made[3] + 0.03  # people with a degree are silent more often, by 0.1


def test_questionnaire_is_better_than_independence():
    printed = run("questionnaire.py", "--people", "4000", "--questions", "100")
    assert "4000 people × 100 questions" in printed
    error, independent = map(float, re.findall(r": (0\.\d+)$", printed, re.M))
    assert error < 0.6 * independent


def test_numeric_records_stay_in_their_set():
    printed = run("numeric_records.py")
    assert "every private row lies in K: True" in printed
    assert float(re.search(r"largest sum of shares in a row is ([\d.]+)", printed)[1]) <= 1
    means = re.findall(r"([\d.]+)/([\d.]+)", printed)
    assert len(means) == 4
    assert all(abs(float(a) - float(b)) < 0.01 for a, b in means)
    private = re.findall(r"([\d.]+)\|([\d.]+)", printed)
    assert len(private) == 4
    assert all(abs(float(a) - float(b)) < 0.02 for a, b in private)  # the paper's method is off by 0.3
    true, made = map(float, re.search(r"savings: (-?[\d.]+) confidential, (-?[\d.]+) private", printed).groups())
    assert abs(true - made) < 0.2
