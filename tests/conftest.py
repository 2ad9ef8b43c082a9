"""What holds for all tests."""

import os

# A thread of torch that waits for its next piece of work sleeps, and does not keep a core busy: tests run side by side
# on few cores, with models so small that waiting would be most of what they do. To be said before torch is loaded.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
