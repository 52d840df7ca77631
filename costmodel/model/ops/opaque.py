"""Cost of ``opaque`` ops: an op of which only weights and arithmetic are known."""

from costmodel.model.ops.work import fused

work = fused
