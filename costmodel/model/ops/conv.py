"""Cost of ``conv`` ops: a convolution as one matrix product over unfolded windows."""

from costmodel.model.ops.work import fused

work = fused
