"""Cost of ``classifier`` ops: a small product and its loss."""

from costmodel.model.ops.work import fused

work = fused
