"""Cost of ``scan`` ops: a recurrence along the sequence, fused, at the rate of an attention core."""

from costmodel.model.ops.work import fused

work = fused
