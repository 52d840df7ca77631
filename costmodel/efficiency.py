"""Shares of hardware peaks that software reaches: the defaults of an unnamed training stack."""

from costmodel.software.read import DEFAULT, software_profile
from costmodel.software.values import Efficiency

__all__ = ["DEFAULT_EFFICIENCY", "Efficiency"]

DEFAULT_EFFICIENCY = software_profile(DEFAULT).efficiency
"""``cluster_profiles/software/default.yaml``."""
