import pytest

import small_runs


@pytest.fixture(autouse=True)
def one_thread():
    """Models of a test are so small that threads only wait for each other; where they matter, a test asks for them."""
    with small_runs.threads(1):
        yield
