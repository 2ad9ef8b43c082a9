"""A short version of the load test; `python tests/web/abuse.py --minutes 5` is the long one."""

import importlib.util
import sys
from pathlib import Path


def test_abuse_does_no_harm_and_no_accepted_request_is_lost():
    path = Path(__file__).parent / "abuse.py"
    spec = importlib.util.spec_from_file_location("abuse", path)
    abuse = sys.modules["abuse"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(abuse)
    record = abuse.abuse(4)
    assert record.wrong == []
    assert record.counts["proper"] and record.counts["answered while stopping"]
