"""Weight gradients as passes of their own: the same gradients and bytes, and really later."""

import pytest
import torch
from torch import Tensor

from costmodel.layout.values import Pipeline, Schedule
from runner.apart import Later, product
from tests.runner.tiny import GPT, LLAMA, MOE, check, model, option, pipeline

ZERO_BUBBLE = Schedule(kind="zero-bubble")

PIPELINES: dict[str, tuple[Pipeline, ...]] = {
    "three stages": (pipeline((2, option()), (1, option()), (1, option()), microbatches=5),),
    "fewer micro-batches than stages": (
        pipeline((2, option()), (1, option()), (1, option()), microbatches=2),
    ),
    "tensor parallel": (
        pipeline((2, option(tp=2)), (2, option(tp=2, sequence_parallel=False)), microbatches=3),
    ),
    "sharded weights": (
        pipeline((2, option(zero=3)), (2, option(zero=3)), microbatches=3, count=2),
    ),
    "unlike pipelines": (
        pipeline((2, option(zero=1)), (2, option(zero=1)), microbatches=3),
        pipeline((4, option(zero=1)), microbatches=2),
    ),
}


def test_recomputation_comes_before_what_it_feeds() -> None:
    stages = (2, option(recompute="selective")), (2, option(recompute="full"))

    check(model([LLAMA] * 4), pipeline(*stages, microbatches=4), schedule=ZERO_BUBBLE)


@pytest.mark.parametrize("pipelines", PIPELINES.values(), ids=PIPELINES.keys())
def test_gradients_and_bytes_are_those_of_one_process(pipelines: tuple[Pipeline, ...]) -> None:
    check(model([LLAMA] * 4, tied=True), *pipelines, schedule=ZERO_BUBBLE)


def test_biases_and_experts() -> None:
    stages = (1, option(ep=2, replicas=2)), (1, option(replicas=2))

    check(model([MOE, GPT]), pipeline(*stages, microbatches=4), schedule=ZERO_BUBBLE)


def test_a_product_leaves_its_weight_gradient() -> None:
    later: Later = []
    x, weight = torch.rand(3, 4, requires_grad=True), torch.rand(5, 4, requires_grad=True)

    def times(value: Tensor, matrix: Tensor) -> Tensor:
        return value @ matrix.T

    torch.autograd.backward(product(times, x, weight, later).square().sum())
    there = x.grad
    assert weight.grad is None
    assert len(later) == 1
    later[0]()

    plain_x, plain = x.detach().requires_grad_(), weight.detach().requires_grad_()
    torch.autograd.backward(times(plain_x, plain).square().sum())
    assert there is not None
    assert weight.grad is not None
    torch.testing.assert_close(there, plain_x.grad)
    torch.testing.assert_close(weight.grad, plain.grad)


def test_frozen_weights_leave_nothing() -> None:
    later: Later = []
    x, weight = torch.rand(3, 4, requires_grad=True), torch.rand(4, 4)

    torch.autograd.backward(product(torch.matmul, x, weight, later).sum())

    assert later == []
    assert x.grad is not None
