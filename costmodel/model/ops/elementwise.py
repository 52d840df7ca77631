"""Cost of `elementwise` ops: bound by memory bandwidth."""

from costmodel.model.ops.work import moves

work = moves
