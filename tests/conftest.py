"""Settings for every test: timing is measured in benchmarks, never here."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile(
    "house", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=False
)
settings.register_profile("long", settings.get_profile("house"), max_examples=5_000)
settings.load_profile("house")
