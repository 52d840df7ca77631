"""Cost of ``scan`` ops: a fused recurrence along the sequence, at an attention core's rate."""

from costmodel.model.ops.work import fused

work = fused
