import os
import shutil
import sys

import pytest


def missing():
    """What Spark needs and is not here."""
    try:
        import pyspark  # noqa: F401
    except ImportError:
        return "pyspark: pip install 'covey[spark]'"
    if not (shutil.which("java") or os.environ.get("JAVA_HOME")):
        return "Java 17 or newer, for example the package openjdk-17-jre-headless"
    return None


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    """Spark on this machine: two processors, and a task that fails is tried again."""
    if what := missing():
        if os.environ.get("COVEY_REQUIRE_SPARK") == "1":
            pytest.fail(f"Spark tests are required here and need {what}.")
        pytest.skip(f"Spark tests need {what}.")
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    folder = tmp_path_factory.mktemp("spark")
    options = {
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": f"-Dderby.system.home={folder} -XX:TieredStopAtLevel=1",
        "spark.local.dir": str(folder),
        "spark.log.level": "ERROR",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "40",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    session = SparkSession.builder.master("local[2,4]").config(map=options).getOrCreate()
    yield session
    session.stop()
