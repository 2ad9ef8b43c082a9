"""What holds for all tests."""

import os

from hypothesis import HealthCheck, settings

# A thread of torch that waits for its next piece of work sleeps, and does not keep a core busy: tests run side by side
# on few cores, with models so small that waiting would be most of what they do. To be said before torch is loaded.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

# A busy machine is no failure.
settings.register_profile(
    "busy", deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
settings.load_profile("busy")
