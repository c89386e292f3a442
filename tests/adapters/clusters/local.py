"""Scripts between the start and the end of a local cluster, for the tests of recipes."""

import os
import re
import subprocess
import sys
import textwrap

from ...oracle import ROOT

DASK_START = """
from distributed import Client, LocalCluster
cluster = LocalCluster(n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None)
client = Client(cluster)
"""
DASK_END = """
client.close()
cluster.close()
"""
# Ray gives up after 30 seconds where the processors are busy.
RAY_START = """
import ray
for attempt in range(5):
    try:
        ray.init(
            num_cpus=2,
            _node_ip_address="127.0.0.1",
            include_dashboard=False,
            object_store_memory=80 * 2**20,
        )
        break
    except Exception:
        ray.shutdown()
        if attempt == 4:
            raise
"""
RAY_OPTIONS = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "disabled"}
SPARK_START = """
from pyspark.sql import SparkSession
options = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
spark = SparkSession.builder.master("local[2]").config(map=options).getOrCreate()
"""
SPARK_OPTIONS = {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}


# Whose own warnings are not ours to answer for: of pandas 3, of parameters of workers, of ports.
THEIRS = ("/distributed/", "/lightgbm/", "/pyspark/", "/ray/", "/xgboost/")


def recipes_of(*pages):
    """Blocks of Python by the title of their section."""
    text = "\n".join((ROOT / "docs" / f"{page}.md").read_text("utf-8") for page in pages)
    sections = re.split(r"^###? ", text, flags=re.M)
    blocks = (re.findall(r"```python\n(.*?)```", section, re.S) for section in sections)
    return dict(zip((section.partition("\n")[0] for section in sections), blocks, strict=True))


def run_script(folder, *parts, timeout=300, **variables):
    """Run a script in a folder, and return what it prints; warnings of ours are failures."""
    body = textwrap.indent("\n".join(parts), "    ")
    (folder / "script.py").write_text(f"if __name__ == '__main__':\n{body}\n")
    # Workers must find the package, wherever the tests were started.
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))} | variables
    command = [sys.executable, "script.py"]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=timeout, env=environment
    )
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stderr.splitlines() if "Warning" in line]
    warned = [line for line in lines if not any(path in line for path in THEIRS)]
    assert not warned, warned
    return done.stdout
